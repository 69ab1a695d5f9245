"""New names for functions and methods of a Python code base: what resolves to them, and nothing else. Pure.

The paper renames declarations and invocations by name (section 3.3). A name is more than its text: a keyword
argument, a parameter, another library's method or a word of prose may look the same. Plain names are resolved by
scope, attributes by what their receiver was imported from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import libcst as cst
from libcst.metadata import ImportAssignment, MetadataWrapper, Scope, ScopeProvider

from bot.code.parsing.syntax import definitions, fingerprint
from bot.reproduction.java.language import Java
from bot.reproduction.python.draft import UNREADABLE
from bot.reproduction.python.language import Python
from evaluation.bloom.code_base import BY_NAME, CannotMask, CodeBase, Kind, defined_in
from evaluation.bloom.masking_java import unescaped
from evaluation.brt.patching import python_tree

PREFIX = "func_"

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)*")


def hash_name(name: str) -> str:
    """``func_`` and the SHA-256 of the name: nothing of its meaning is left (section 3.3)."""
    return PREFIX + hashlib.sha256(name.encode()).hexdigest()


def meaningful_name(proposed: str) -> str:
    """A model's proposal as a name: ``func_`` makes it unique and no keyword. Raises CannotMask."""
    if not proposed.isidentifier() or len(proposed) > 80:
        raise CannotMask(f"{proposed!r} is no name")
    return PREFIX + proposed


def mask_report(report: str, names: Mapping[str, str]) -> str:
    """A report with the same names changed, as whole words."""
    for name, new in names.items():
        report = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", new, report)
    return report


def patched_methods(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, frozenset[Kind]]:
    """The functions and methods whose code differs between two versions, by name, in order of files.

    The innermost one around each difference, wherever it is defined; those that only one version has count as
    patched there. Tests are none of the program's methods, and comments are no code.
    """
    methods: dict[str, frozenset[Kind]] = {}
    for path in sorted(set(before) | set(after)):
        old, new = before.get(path, ""), after.get(path, "")
        if old != new and not (Java() if path.endswith(".java") else Python()).is_test_file(path):
            left, right = _functions(old, path), _functions(new, path)
            changed = dict.fromkeys(
                name for name in (*left, *right) if not _is_same(left.get(name), right.get(name), path)
            )
            for name in changed:
                if any(other.startswith(f"{name}.") for other in changed):
                    continue  # the innermost one counts
                kind = (left.get(name) or right[name])[0]
                short = name.rpartition(".")[2]
                methods[short] = methods.get(short, frozenset()) | {kind}
    return methods


def _functions(text: str, path: str) -> dict[str, tuple[Kind, str]]:
    """Kind and text of each function by dotted name; nothing of Python that cannot be parsed."""
    functions: dict[str, tuple[Kind, str]] = {}
    if path.endswith(".py") and python_tree(text) is None:
        return functions
    if path.endswith(".java"):
        text = unescaped(text)
    candidates, lines = definitions(text, path), text.split("\n")
    classes = {candidate.qualified for candidate in candidates if candidate.kind == "class"}
    for candidate in candidates:
        # A constructor of Java has the name of its class.
        if candidate.kind == "function" and candidate.name and candidate.name != candidate.owner:
            kind: Kind = "method" if candidate.within in classes else "function"
            body = dedent("\n".join(lines[candidate.first - 1 : candidate.last]))
            # A name may be defined twice: in both branches of an ``if``, or with other parameters.
            before = functions.get(candidate.qualified, (kind, ""))[1]
            functions[candidate.qualified] = (kind, f"{before}{body}\n")
    return functions


def _is_same(left: tuple[Kind, str] | None, right: tuple[Kind, str] | None, path: str) -> bool:
    """Return True if two versions of a function differ in layout and comments at most."""
    if left is None or right is None or left == right:
        return left == right
    code = fingerprint(left[1], path, comments=False)
    return code is not None and code == fingerprint(right[1], path, comments=False)


def mask_python(path: str, names: Mapping[str, tuple[str, frozenset[Kind]]], code: CodeBase) -> str:
    """A file of ``code`` with the new names of ``names`` (old name -> new name, what it names).

    Strings that are nothing but a name follow where they are used as one: in ``__all__``, as an argument of
    ``getattr`` and the like, and behind the dotted name of an own module. Raises CannotMask if a name means
    an own function in one branch and a foreign one in the other. A file that cannot be parsed stays as it is.
    """
    text = code.sources[path]
    relevant = {name: target for name, target in names.items() if name in text}
    if not relevant or path not in code.trees:
        return text
    try:
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    except UNREADABLE:
        return text
    return wrapper.visit(_Renamer(path, relevant, code)).code


@dataclass
class _Renamer(cst.CSTTransformer):
    """Changes what resolves to a declaration."""

    path: str
    names: Mapping[str, tuple[str, frozenset[Kind]]]
    code: CodeBase
    METADATA_DEPENDENCIES = (ScopeProvider,)

    def __post_init__(self) -> None:
        super().__init__()
        self.imports = self.code.imports(self.path)
        self.functions = {name: new for name, (new, kinds) in self.names.items() if "function" in kinds}

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        scope = self.get_metadata(ScopeProvider, original_node, None)
        if original_node.value in self.names and scope is not None and self._own(original_node.value, scope):
            return updated_node.with_changes(value=self.names[original_node.value][0])
        return updated_node

    def leave_NameItem(self, original_node: cst.NameItem, updated_node: cst.NameItem) -> cst.NameItem:
        """``global name``: the module's function, where it has one."""
        name = original_node.name.value
        if name in self.functions and any(defined_in(self.code.trees[self.path], name)):
            return updated_node.with_changes(name=cst.Name(self.functions[name]))
        return updated_node

    def _own(self, name: str, scope: Scope) -> bool:
        """Return True if a plain name means one of the declarations that are renamed."""
        kinds = self.names[name][1]
        assigned = scope[name]
        if not assigned:
            stars = (key[1:] for key in self.imports if key.startswith("*"))
            return name in self.functions and any(self.code.exposes(module, name) for module in stars)
        own = foreign = False
        for assignment in assigned:
            node = getattr(assignment, "node", None)
            if isinstance(assignment, ImportAssignment):
                module, _, last = self.imports.get(name, "").rpartition(".")
                ours = name in self.functions and last == name and self.code.exposes(module, name)
                own, foreign = own or ours, foreign or not ours
            elif isinstance(node, cst.FunctionDef):
                inside = type(assignment.scope).__name__ == "ClassScope"
                own = own or ("method" if inside else "function") in kinds
        if own and foreign:
            raise CannotMask(f"{self.path}: {name} is an own function or an imported one, as it comes")
        return own

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        if isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        dotted = cst.Module([]).code_for_node(original_node.module) if original_node.module else ""
        module = self.code.absolute(self.path, dotted, len(original_node.relative))
        aliases: list[cst.ImportAlias] = []
        for alias in updated_node.names:
            name = alias.name.value if isinstance(alias.name, cst.Name) else ""
            if name in self.functions and self.code.exposes(module, name):
                alias = alias.with_changes(name=cst.Name(self.functions[name]))
            aliases.append(alias)
        return updated_node.with_changes(names=aliases)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        name = original_node.attr.value
        if name in self.names and self._is_target(name, original_node.value):
            return updated_node.with_changes(attr=cst.Name(self.names[name][0]))
        return updated_node

    def _is_target(self, name: str, receiver: cst.BaseExpression) -> bool:
        kinds = self.names[name][1]
        if isinstance(receiver, cst.BaseString | cst.BaseNumber | cst.BaseList | cst.BaseDict | cst.Tuple):
            return False
        dotted = self._dotted(receiver)
        if dotted is None:
            return "method" in kinds
        if dotted in self.code.modules:
            return "function" in kinds and self.code.exposes(dotted, name)
        return "method" in kinds and self.code.is_own(dotted)

    def _dotted(self, receiver: cst.BaseExpression) -> str | None:
        """Return the dotted name that a receiver was imported from; None if it was not imported."""
        parts: list[str] = []
        while isinstance(receiver, cst.Attribute):
            parts.insert(0, receiver.attr.value)
            receiver = receiver.value
        if not isinstance(receiver, cst.Name):
            return None
        scope = self.get_metadata(ScopeProvider, receiver, None)
        if scope is None or not any(isinstance(node, ImportAssignment) for node in scope[receiver.value]):
            return None
        return ".".join((self.imports.get(receiver.value, receiver.value), *parts))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        targets = {getattr(target.target, "value", "") for target in original_node.targets}
        if "__all__" not in targets:
            return updated_node
        return updated_node.with_changes(value=updated_node.value.visit(_Strings(self.functions)))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = getattr(original_node.func, "attr", original_node.func)
        if getattr(function, "value", "") not in BY_NAME:
            return updated_node
        at = 0 if getattr(function, "value", "") in ("methodcaller", "attrgetter") else 1
        changed = _Strings({name: new for name, (new, _) in self.names.items()})
        args: list[Any] = [
            arg.with_changes(value=arg.value.visit(changed)) if index == at else arg
            for index, arg in enumerate(updated_node.args)
        ]
        return updated_node.with_changes(args=args)

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.BaseExpression:
        """A dotted name that begins with an own module: what a test replaces, for instance."""
        content = original_node.raw_value
        head, _, last = content.replace(":", ".").rpartition(".")
        if last not in self.names or not head or not _DOTTED.fullmatch(content):
            return updated_node
        kinds = self.names[last][1]
        module = head in self.code.modules
        if ("function" in kinds and module and self.code.exposes(head, last)) or (
            "method" in kinds and not module and self.code.is_own(head)
        ):
            return _with_text(updated_node, content[: -len(last)] + self.names[last][0])
        return updated_node


class _Strings(cst.CSTTransformer):
    """Changes strings that are nothing but one of the names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.names = names

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.BaseExpression:
        new = self.names.get(original_node.raw_value)
        return updated_node if new is None else _with_text(updated_node, new)


def _with_text(node: cst.SimpleString, text: str) -> cst.SimpleString:
    return node.with_changes(value=f"{node.prefix}{node.quote}{text}{node.quote}")
