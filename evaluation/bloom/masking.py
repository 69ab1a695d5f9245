"""New names for functions and methods of a Python code base: what resolves to them, and nothing else. Pure.

The paper renames declarations and invocations by name (section 3.3). A name is more than its text: a keyword
argument, a parameter, another library's method or a word of prose may look the same. Plain names are resolved by
scope, attributes by what their receiver was imported from. What cannot be told apart is refused with the reason,
and so is what code outside of the repository calls.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import inspect
import io
import keyword
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any, Literal

import libcst as cst
from libcst.metadata import ImportAssignment, MetadataWrapper, Scope, ScopeProvider

from bot.reproduce.python.draft import UNREADABLE
from bot.reproduce.python.language import Python

PREFIX = "func_"

#: What a patched declaration is: a function's new name leaves methods of the same name alone, and vice versa.
Kind = Literal["function", "method"]

_BUILTIN_TYPES = (
    object, str, bytes, int, float, list, dict, set, tuple, type, BaseException, io.StringIO, frozenset,
)  # fmt: skip
#: Names that values of Python itself have: code outside of the repository calls them, too.
_FOREIGN = frozenset(name for each in _BUILTIN_TYPES for name in dir(each)) | frozenset(dir(builtins))
#: Modules of the standard library that do something when they are imported.
_LOUD = frozenset({"antigravity", "this", "idlelib", "turtle", "turtledemo", "tkinter", "lib2to3", "test"})
_BY_NAME = frozenset({"getattr", "hasattr", "setattr", "delattr", "methodcaller", "attrgetter"})
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)*")
#: Letters that the fixed part of a built name needs before it says anything.
_TELLING = 3


class CannotMask(ValueError):
    """A name that cannot be changed without breaking the program; the message says why."""


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
    patched there. Tests are none of the program's methods.
    """
    found: dict[str, frozenset[Kind]] = {}
    for path in sorted(set(before) | set(after)):
        old, new = before.get(path, ""), after.get(path, "")
        if old != new and not Python().is_test_file(path):
            left, right = _functions(old), _functions(new)
            changed = [name for name in (*left, *right) if left.get(name) != right.get(name)]
            for name in _innermost(changed):
                kind = (left.get(name) or right[name])[0]
                short = name.rpartition(".")[2]
                found[short] = found.get(short, frozenset()) | {kind}
    return found


def _innermost(names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if not any(other.startswith(f"{name}.") for other in names)]


def _functions(text: str) -> dict[str, tuple[Kind, str]]:
    """Kind and syntax of each function by dotted name; nothing where the text cannot be parsed."""
    found: dict[str, tuple[Kind, str]] = {}
    tree = _parsed(text)
    if tree is not None:
        _collect(tree, "", "function", found)
    return found


def _collect(node: ast.AST, prefix: str, kind: Kind, found: dict[str, tuple[Kind, str]]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}{child.name}"
            # A name may be defined twice, in both branches of an ``if``.
            found[name] = (kind, found.get(name, (kind, ""))[1] + ast.dump(child))
            _collect(child, f"{name}.", "function", found)
        elif isinstance(child, ast.ClassDef):
            _collect(child, f"{prefix}{child.name}.", "method", found)
        else:
            _collect(child, prefix, kind, found)


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True)
class CodeBase:
    """Python sources by path, and what can be told from all of them together."""

    sources: Mapping[str, str]

    @cached_property
    def modules(self) -> dict[str, str]:
        """Path by dotted name: from the package's root folder, and from the repository's."""
        found: dict[str, str] = {}
        for path in self.sources:
            parts = PurePosixPath(path).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            first = len(PurePosixPath(path).parts) - 1
            while first and "/".join((*PurePosixPath(path).parts[:first], "__init__.py")) in self.sources:
                first -= 1
            for start in {0, first}:
                found.setdefault(".".join(parts[start:]), path)
        return found

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Syntax trees of what can be parsed."""
        trees = ((path, _parsed(text)) for path, text in self.sources.items())
        return {path: tree for path, tree in trees if tree is not None}

    @cached_property
    def classes(self) -> dict[str, list[tuple[str, ast.ClassDef]]]:
        """Path and definition of each class, by its plain name."""
        found: dict[str, list[tuple[str, ast.ClassDef]]] = {}
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append((path, node))
        return found

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Dotted names of the modules of the standard library that the repository imports."""
        named = {target for path in self.trees for target in self.imports(path).values()}
        own = {name.partition(".")[0] for name in self.modules}
        known = {name for name in named if name.partition(".")[0] in sys.stdlib_module_names - _LOUD}
        return frozenset(name for name in known if name.partition(".")[0] not in own)

    def absolute(self, path: str, module: str, level: int) -> str:
        """The dotted name that ``from <level dots><module>`` means in a file."""
        if not level:
            return module
        name = max((name for name, place in self.modules.items() if place == path), key=len)
        parts = name.split(".") if path.endswith("__init__.py") else name.split(".")[:-1]
        kept = parts[: len(parts) - level + 1]
        return ".".join((*kept, *([module] if module else ())))

    def imports(self, path: str) -> dict[str, str]:
        """Dotted names of what a file imports, by the names that it gets there; ``*module`` for a star."""
        found: dict[str, str] = {}
        for node in ast.walk(self.trees[path]):
            if isinstance(node, ast.Import):
                for each in node.names:
                    found[each.asname or each.name.partition(".")[0]] = (
                        each.name if each.asname else (each.name.partition(".")[0])
                    )
                    found[each.name] = each.name
            elif isinstance(node, ast.ImportFrom):
                module = self.absolute(path, node.module or "", node.level)
                for each in node.names:
                    found[f"*{module}" if each.name == "*" else each.asname or each.name] = f"{module}.{each.name}"
        return found

    def exposes(self, module: str, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether an own module has ``name`` as a function that the repository itself defines."""
        path = self.modules.get(module)
        if path is None or path in seen or path not in self.trees:
            return False
        if any(_in_module(self.trees[path], name)):
            return True
        imports = self.imports(path)
        target = imports.get(name)
        sources = [target.rpartition(".")[::2]] if target else []
        stars = [(key[1:], name) for key in imports if key.startswith("*")]
        return any(self.exposes(m, n, seen | {path}) for m, n in (*sources, *stars) if n == name)

    def is_own(self, dotted: str) -> bool:
        """Whether a dotted name begins with a module of the repository."""
        top = dotted.partition(".")[0]
        return any(name == top or name.startswith(f"{top}.") for name in self.modules)


def _in_module(tree: ast.AST, name: str) -> Iterator[ast.AST]:
    """Functions of that name at the level of the module, behind ``if`` and ``try`` too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == name:
                yield node
        elif not isinstance(node, ast.ClassDef | ast.Lambda):
            yield from _in_module(node, name)


def check(name: str, kinds: frozenset[Kind], code: CodeBase) -> None:
    """Raises CannotMask where ``name`` is not the repository's own to change."""
    if keyword.iskeyword(name) or not name.isidentifier():
        raise CannotMask(f"{name} is no name of a method")
    if name.startswith("__") and name.endswith("__"):
        raise CannotMask(f"{name} is called by Python itself")
    if name in _FOREIGN:
        raise CannotMask(f"{name} is a name of Python's own types, too")
    for path, tree in code.trees.items():
        if built := _built(name, tree):
            raise CannotMask(f"{path} builds names like {built}, and may find {name} by one")
    if "method" in kinds:
        _check_classes(name, code)
        _check_receivers(name, code)


def _check_classes(name: str, code: CodeBase) -> None:
    for path, node in _with_method(name, code):
        for base in _foreign_bases(path, node, code, frozenset()):
            told = _of_library(base, name)
            if told is None:
                raise CannotMask(f"{node.name} in {path} inherits from {base}, of which nothing is known here")
            if told:
                raise CannotMask(f"{node.name} in {path} inherits from {base}, which calls {name} itself")
    for found in code.classes.values():
        for path, node in found:
            if any(name in _fields(each) for each in node.body):
                raise CannotMask(f"{name} is a field of {node.name} in {path}, too")


def _with_method(name: str, code: CodeBase) -> Iterator[tuple[str, ast.ClassDef]]:
    """Own classes that define the method, and those that inherit from one."""
    family: set[str] = set()
    while True:
        found = [
            (path, node)
            for each in code.classes.values()
            for path, node in each
            if name in {n.name for n in _defined(node)} or family & {_last(base) for base in node.bases}
        ]
        grown = family | {node.name for _, node in found}
        if grown == family:
            yield from found
            return
        family = grown


def _defined(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each
        elif not isinstance(each, ast.ClassDef):
            waiting += ast.iter_child_nodes(each)


def _last(base: ast.expr) -> str:
    base = base.value if isinstance(base, ast.Subscript) else base
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _foreign_bases(path: str, node: ast.ClassDef, code: CodeBase, seen: frozenset[str]) -> Iterator[str]:
    """Dotted names of the bases, own ones followed, that the repository does not define."""
    imports = code.imports(path)
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        text = ast.unparse(base)
        root, _, rest = text.partition(".")
        target = imports.get(root, "")
        dotted = f"{target}.{rest}" if target and rest else target or text
        if _last(base) in code.classes and (not target or code.is_own(target)):
            for place, other in code.classes[_last(base)]:
                if other.name not in seen:
                    yield from _foreign_bases(place, other, code, seen | {node.name})
        elif not hasattr(builtins, dotted):
            yield dotted


def _fields(node: ast.stmt) -> set[str]:
    targets = (
        node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    )
    return {each.id for each in targets if isinstance(each, ast.Name)}


@lru_cache(maxsize=4096)
def _of_library(dotted: str, name: str) -> bool | None:
    """Whether a class of the standard library has the name, or finds it by a built one; None for another class."""
    module, _, attribute = dotted.rpartition(".")
    loaded = _library(module)
    found = getattr(loaded, attribute, None)
    if loaded is None or found is None:
        return None
    if name in dir(found):
        return True
    try:
        tree = _parsed(inspect.getsource(sys.modules[found.__module__]))
    except (OSError, TypeError, AttributeError, KeyError):
        return False
    return tree is not None and bool(_built(name, tree))


@lru_cache(maxsize=512)
def _library(module: str) -> ModuleType | None:
    if module.partition(".")[0] not in sys.stdlib_module_names - _LOUD:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError:
        return None


def _check_receivers(name: str, code: CodeBase) -> None:
    """Refuse what objects of the libraries at hand have, too, where a receiver's type is not known."""
    holder = next((each for module in sorted(code.foreign | {"io"}) if (each := _class_with(module, name))), None)
    for path, tree in code.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == name:
                if isinstance(node.ctx, ast.Store | ast.Del):
                    raise CannotMask(f"{path} sets {name} as an attribute")
                known = isinstance(node.value, ast.Name) and (
                    node.value.id in ("self", "cls") or node.value.id in code.imports(path)
                )
                if holder and not known:
                    raise CannotMask(f"{path} uses {ast.unparse(node)}, which may be {holder}.{name}")


@lru_cache(maxsize=4096)
def _class_with(module: str, name: str) -> str:
    """The class of a library's module that has the name; ``module`` may name something in a module."""
    for dotted in (module, module.rpartition(".")[0]):
        loaded = _library(dotted) if dotted else None
        for each in vars(loaded).values() if loaded else ():
            if isinstance(each, type) and each.__module__ != "builtins" and name in dir(each):
                return f"{dotted}.{each.__name__}"
    return ""


def _built(name: str, tree: ast.AST) -> str:
    """The pattern of a name that is put together in a file which looks names up, where ``name`` fits it."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1]
    if not any(
        isinstance(node.func, ast.Name) and node.func.id in _BY_NAME and not isinstance(node.args[1], ast.Constant)
        for node in calls
    ):
        return ""
    for node in ast.walk(tree):
        pieces = _pieces(node)
        if pieces is not None and len(re.findall(r"\w", "".join(p for p in pieces if p))) >= _TELLING:
            pattern = "".join(r"\w*" if each is None else re.escape(each) for each in pieces)
            if re.fullmatch(pattern, name):
                return "".join("*" if each is None else each for each in pieces)
    return ""


def _pieces(node: ast.AST) -> list[str | None] | None:
    """The fixed parts of a text that is put together, None for the others; None where it is no such text."""
    if isinstance(node, ast.JoinedStr):
        return [str(each.value) if isinstance(each, ast.Constant) else None for each in node.values]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [each.value if isinstance(each, ast.Constant) else None for each in (node.left, node.right)]
        texts = [each if isinstance(each, str) else None for each in sides]
        return texts if any(texts) and not all(texts) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        return _cut(node.left.value, r"%[sr]")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _cut(getattr(node.func.value, "value", None), r"\{[^{}]*\}")
    return None


def _cut(text: object, place: str) -> list[str | None] | None:
    if not isinstance(text, str) or not re.search(place, text):
        return None
    parts = re.split(place, text)
    return [*chain.from_iterable((part, None) for part in parts[:-1]), parts[-1]]


def mask_python(path: str, names: Mapping[str, tuple[str, frozenset[Kind]]], code: CodeBase) -> str:
    """A file of ``code`` with the new names of ``names`` (old name -> new name, what it names).

    Strings that are nothing but a name follow where they are used as one: in ``__all__``, as an argument of
    ``getattr`` and the like, and behind the dotted name of an own module. Raises CannotMask where a name means
    an own function in one branch and a foreign one in the other. A file that cannot be parsed stays as it is.
    """
    text = code.sources[path]
    wanted = {name: each for name, each in names.items() if name in text}
    if not wanted or path not in code.trees:
        return text
    try:
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    except UNREADABLE:
        return text
    return wrapper.visit(_Renamer(path, wanted, code)).code


@dataclass
class _Renamer(cst.CSTTransformer):
    """Changes what resolves to a declaration."""

    path: str
    names: Mapping[str, tuple[str, frozenset[Kind]]]
    code: CodeBase
    around: list[Literal["class", "function"]] = field(default_factory=list)
    METADATA_DEPENDENCIES = (ScopeProvider,)

    def __post_init__(self) -> None:
        super().__init__()
        self.imports = self.code.imports(self.path)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.around.append("class")

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self.around.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.around.append("function")

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.around.pop()
        return updated_node

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        scope = self.get_metadata(ScopeProvider, original_node, None)
        if original_node.value in self.names and scope is not None and self._own(original_node.value, scope):
            return updated_node.with_changes(value=self.names[original_node.value][0])
        return updated_node

    def leave_NameItem(self, original_node: cst.NameItem, updated_node: cst.NameItem) -> cst.NameItem:
        """``global name``: the module's function, where it has one."""
        name = original_node.name.value
        if (
            name in self.names
            and "function" in self.names[name][1]
            and any(_in_module(self.code.trees[self.path], name))
        ):
            return updated_node.with_changes(name=cst.Name(self.names[name][0]))
        return updated_node

    def _own(self, name: str, scope: Scope) -> bool:
        """Whether a plain name means one of the declarations that are renamed."""
        kinds = self.names[name][1]
        assigned = scope[name]
        if not assigned:
            stars = (key[1:] for key in self.imports if key.startswith("*"))
            return "function" in kinds and any(self.code.exposes(module, name) for module in stars)
        own = foreign = False
        for each in assigned:
            node = getattr(each, "node", None)
            if isinstance(each, ImportAssignment):
                ours = "function" in kinds and self._imported(name, self.imports.get(name, ""))
                own, foreign = own or ours, foreign or not ours
            elif isinstance(node, cst.FunctionDef):
                inside = type(each.scope).__name__ == "ClassScope"
                own = own or ("method" if inside else "function") in kinds
        if own and foreign:
            raise CannotMask(f"{self.path}: {name} is an own function or an imported one, as it comes")
        return own

    def _imported(self, name: str, target: str) -> bool:
        module, _, last = target.rpartition(".")
        return last == name and self.code.exposes(module, name)

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        if isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        dotted = cst.Module([]).code_for_node(original_node.module) if original_node.module else ""
        module = self.code.absolute(self.path, dotted, len(original_node.relative))
        aliases = [self._alias(each, module) for each in updated_node.names]
        return updated_node.with_changes(names=aliases)

    def _alias(self, alias: cst.ImportAlias, module: str) -> cst.ImportAlias:
        name = alias.name.value if isinstance(alias.name, cst.Name) else ""
        if name in self.names and "function" in self.names[name][1] and self.code.exposes(module, name):
            return alias.with_changes(name=cst.Name(self.names[name][0]))
        return alias

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        name = original_node.attr.value
        if name in self.names and self._meant(name, original_node.value):
            return updated_node.with_changes(attr=cst.Name(self.names[name][0]))
        return updated_node

    def _meant(self, name: str, receiver: cst.BaseExpression) -> bool:
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
        """What an import makes of a receiver; None where it is no imported name."""
        parts: list[str] = []
        while isinstance(receiver, cst.Attribute):
            parts.insert(0, receiver.attr.value)
            receiver = receiver.value
        if not isinstance(receiver, cst.Name):
            return None
        scope = self.get_metadata(ScopeProvider, receiver, None)
        if scope is None or not any(isinstance(each, ImportAssignment) for each in scope[receiver.value]):
            return None
        return ".".join((self.imports.get(receiver.value, receiver.value), *parts))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        targets = {getattr(each.target, "value", "") for each in original_node.targets}
        if "__all__" not in targets:
            return updated_node
        listed = updated_node.value.visit(
            _Strings({n: new for n, (new, k) in self.names.items() if "function" in k})
        )
        return updated_node.with_changes(value=listed)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = getattr(original_node.func, "attr", original_node.func)
        if getattr(function, "value", "") not in _BY_NAME:
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
        """A dotted name that begins with an own module: what ``mock.patch`` and the like are given."""
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
