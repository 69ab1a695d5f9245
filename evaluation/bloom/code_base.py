"""A Python code base whose names may be changed: what its sources define and import, and which names are its own.

What cannot be told apart is refused with the reason, and so is what code outside of the repository calls. Pure.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import io
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import PurePosixPath
from types import ModuleType
from typing import Literal

from evaluation.brt.patching import python_tree

#: What a patched declaration is: a function's new name leaves methods of the same name alone, and vice versa.
Kind = Literal["function", "method"]

_BUILTIN_TYPES = (
    object, str, bytes, int, float, list, dict, set, tuple, type, BaseException, io.StringIO, frozenset,
)  # fmt: skip
#: Names that values of Python itself have: code outside of the repository calls them, too.
_FOREIGN = frozenset(name for builtin_type in _BUILTIN_TYPES for name in dir(builtin_type)) | frozenset(
    dir(builtins)
)
#: Modules of the standard library that do something when they are imported.
_LOUD = frozenset({"antigravity", "this", "idlelib", "turtle", "turtledemo", "tkinter", "lib2to3", "test"})
BY_NAME = frozenset({"getattr", "hasattr", "setattr", "delattr", "methodcaller", "attrgetter"})
#: Letters that the fixed part of a built name needs before it says anything.
_TELLING = 3


class CannotMask(ValueError):
    """A name that cannot be changed without breaking the program; the message says why."""


@dataclass(frozen=True)
class CodeBase:
    """Python sources by path, and what can be told from all of them together."""

    sources: Mapping[str, str]

    @cached_property
    def modules(self) -> dict[str, str]:
        """Path by dotted name: from the package's root folder, and from the repository's."""
        by_name: dict[str, str] = {}
        for path in self.sources:
            parts = PurePosixPath(path).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            first = len(PurePosixPath(path).parts) - 1
            while first and "/".join((*PurePosixPath(path).parts[:first], "__init__.py")) in self.sources:
                first -= 1
            for start in {0, first}:
                by_name.setdefault(".".join(parts[start:]), path)
        return by_name

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Syntax trees of what can be parsed."""
        trees = ((path, python_tree(text)) for path, text in self.sources.items())
        return {path: tree for path, tree in trees if tree is not None}

    @cached_property
    def classes(self) -> dict[str, list[tuple[str, ast.ClassDef]]]:
        """Path and definition of each class, by its plain name."""
        by_name: dict[str, list[tuple[str, ast.ClassDef]]] = {}
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    by_name.setdefault(node.name, []).append((path, node))
        return by_name

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Dotted names of the modules of the standard library that the repository imports."""
        targets = {target for path in self.trees for target in self.imports(path).values()}
        own = {name.partition(".")[0] for name in self.modules}
        standard = {name for name in targets if name.partition(".")[0] in sys.stdlib_module_names - _LOUD}
        return frozenset(name for name in standard if name.partition(".")[0] not in own)

    def absolute(self, path: str, module: str, level: int) -> str:
        """The dotted name that ``from <level dots><module>`` means in a file."""
        if not level:
            return module
        name = max((name for name, place in self.modules.items() if place == path), key=len)
        parts = name.split(".") if path.endswith("__init__.py") else name.split(".")[:-1]
        parents = parts[: len(parts) - level + 1]
        return ".".join((*parents, *([module] if module else ())))

    def imports(self, path: str) -> dict[str, str]:
        """Dotted names of what a file imports, by the names that it gets there; ``*module`` for a star."""
        targets: dict[str, str] = {}
        for node in ast.walk(self.trees[path]):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    targets[alias.asname or top] = alias.name if alias.asname else top
                    targets[alias.name] = alias.name
            elif isinstance(node, ast.ImportFrom):
                module = self.absolute(path, node.module or "", node.level)
                for imported in node.names:
                    targets[f"*{module}" if imported.name == "*" else imported.asname or imported.name] = (
                        f"{module}.{imported.name}"
                    )
        return targets

    def exposes(self, module: str, name: str, ancestors: frozenset[str] = frozenset()) -> bool:
        """Return True if an own module has ``name`` as a function that the repository itself defines."""
        path = self.modules.get(module)
        if path is None or path in ancestors or path not in self.trees:
            return False
        if any(defined_in(self.trees[path], name)):
            return True
        imports = self.imports(path)
        target = imports.get(name)
        sources = [target.rpartition(".")[::2]] if target else []
        stars = [(key[1:], name) for key in imports if key.startswith("*")]
        return any(self.exposes(m, n, ancestors | {path}) for m, n in (*sources, *stars) if n == name)

    def is_own(self, dotted: str) -> bool:
        """Return True if a dotted name begins with a module of the repository."""
        top = dotted.partition(".")[0]
        return any(name == top or name.startswith(f"{top}.") for name in self.modules)


def defined_in(tree: ast.AST, name: str) -> Iterator[ast.AST]:
    """Functions of that name directly in a module or class, behind ``if`` and ``try`` too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == name:
                yield node
        elif not isinstance(node, ast.ClassDef | ast.Lambda):
            yield from defined_in(node, name)


def check(name: str, kinds: frozenset[Kind], code: CodeBase) -> None:
    """Raises CannotMask if ``name`` is not the repository's own to change."""
    if name.startswith("__") and name.endswith("__"):
        raise CannotMask(f"{name} is called by Python itself")
    if name in _FOREIGN:
        raise CannotMask(f"{name} is a name of Python's own types, too")
    for path, tree in code.trees.items():
        if pattern := _built(name, tree):
            raise CannotMask(f"{path} builds names like {pattern}, and may find {name} by one")
    if "method" in kinds:
        _check_classes(name, code)
        _check_receivers(name, code)


def _check_classes(name: str, code: CodeBase) -> None:
    for path, node in _with_method(name, code):
        for base in _foreign_bases(path, node, code, frozenset()):
            is_called = _of_library(base, name)
            if is_called is None:
                raise CannotMask(f"{node.name} in {path} inherits from {base}, of which nothing is known here")
            if is_called:
                raise CannotMask(f"{node.name} in {path} inherits from {base}, which calls {name} itself")
    for definitions in code.classes.values():
        for path, node in definitions:
            for statement in node.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    raise CannotMask(f"{name} is a field of {node.name} in {path}, too")


def _with_method(name: str, code: CodeBase) -> Iterator[tuple[str, ast.ClassDef]]:
    """Own classes that define the method, and those that inherit from one."""
    family: set[str] = set()
    while True:
        matches = [
            (path, node)
            for definitions in code.classes.values()
            for path, node in definitions
            if any(defined_in(node, name)) or family & {_last(base) for base in node.bases}
        ]
        larger_family = family | {node.name for _, node in matches}
        if larger_family == family:
            yield from matches
            return
        family = larger_family


def _last(base: ast.expr) -> str:
    base = base.value if isinstance(base, ast.Subscript) else base
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _foreign_bases(path: str, node: ast.ClassDef, code: CodeBase, ancestors: frozenset[str]) -> Iterator[str]:
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
                if other.name not in ancestors:
                    yield from _foreign_bases(place, other, code, ancestors | {node.name})
        elif not hasattr(builtins, dotted):
            yield dotted


@lru_cache(maxsize=4096)
def _of_library(dotted: str, name: str) -> bool | None:
    """Return True if a standard library class has the name, or looks up a built one; None for other classes."""
    module, _, attribute = dotted.rpartition(".")
    loaded = _library(module)
    value = getattr(loaded, attribute, None)
    if loaded is None or value is None:
        return None
    if name in dir(value):
        return True
    try:
        tree = python_tree(inspect.getsource(sys.modules[value.__module__]))
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
    holder = next(
        (class_name for module in sorted(code.foreign | {"io"}) if (class_name := _class_with(module, name))), None
    )
    for path, tree in code.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == name:
                if isinstance(node.ctx, ast.Store | ast.Del):
                    raise CannotMask(f"{path} sets {name} as an attribute")
                is_resolved = isinstance(node.value, ast.Name) and (
                    node.value.id in ("self", "cls") or node.value.id in code.imports(path)
                )
                if holder and not is_resolved:
                    raise CannotMask(f"{path} uses {ast.unparse(node)}, which may be {holder}.{name}")


@lru_cache(maxsize=4096)
def _class_with(module: str, name: str) -> str:
    """The class of a library's module that has the name; ``module`` may name something in a module."""
    for dotted in (module, module.rpartition(".")[0]):
        loaded = _library(dotted) if dotted else None
        for value in vars(loaded).values() if loaded else ():
            if isinstance(value, type) and value.__module__ != "builtins" and name in dir(value):
                return f"{dotted}.{value.__name__}"
    return ""


def _built(name: str, tree: ast.AST) -> str:
    """The pattern of a name that is put together in a file which looks names up, where ``name`` fits it."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1]
    if not any(
        isinstance(node.func, ast.Name) and node.func.id in BY_NAME and not isinstance(node.args[1], ast.Constant)
        for node in calls
    ):
        return ""
    for node in ast.walk(tree):
        pieces = _pieces(node)
        if pieces is not None and len(re.findall(r"\w", "".join(p for p in pieces if p))) >= _TELLING:
            pattern = "".join(r"\w*" if piece is None else re.escape(piece) for piece in pieces)
            if re.fullmatch(pattern, name):
                return "".join("*" if piece is None else piece for piece in pieces)
    return ""


def _pieces(node: ast.AST) -> list[str | None] | None:
    """The fixed parts of a text that is put together, None for the others; None if it is no such text."""
    if isinstance(node, ast.JoinedStr):
        return [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [
            operand.value if isinstance(operand, ast.Constant) else None for operand in (node.left, node.right)
        ]
        texts = [side if isinstance(side, str) else None for side in sides]
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
