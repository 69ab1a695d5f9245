"""The names that Python code binds, and those that it needs from elsewhere. Pure."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator

from pydantic import Field

from bot.core.frozen import Frozen

BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__spec__"}


class Binding(Frozen):
    """One name that an import statement binds."""

    name: str
    origin: tuple[str, ...] = Field(description="(module,) for a module, (module, name) for something in it")
    statement: str = Field(description="an import statement that binds this name and nothing else")

    @property
    def package(self) -> bool:
        """True for ``import a`` and ``import a.b``: several of them can share the name ``a``."""
        return len(self.origin) == 1 and self.origin[0].partition(".")[0] == self.name


def import_bindings(statements: Iterable[ast.AST]) -> tuple[Binding, ...]:
    """Return the bindings of the import statements among these; a star import has the name ``*``."""
    return tuple(
        _binding(node, alias)
        for node in statements
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


def _binding(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Binding:
    suffix = f" as {alias.asname}" if alias.asname else ""
    if isinstance(node, ast.Import):
        parent, _, last = alias.name.rpartition(".")
        # ``import a.b`` binds ``a`` and loads ``a.b``; ``import a.b as c`` binds what ``from a import b`` does.
        origin = (parent, last) if alias.asname and parent else (alias.name,)
        name = alias.asname or alias.name.partition(".")[0]
        return Binding(name=name, origin=origin, statement=f"import {alias.name}{suffix}")
    module = "." * node.level + (node.module or "")
    return Binding(
        name=alias.asname or alias.name,
        origin=(module, alias.name),
        statement=f"from {module} import {alias.name}{suffix}",
    )


def module_imports(tree: ast.Module) -> dict[str, set[tuple[str, ...]]]:
    """Return the origins of names that imports bind at module level, including ``if`` and ``try``."""
    imports: dict[str, set[tuple[str, ...]]] = {}
    for binding in import_bindings(_module_level(tree.body)):
        imports.setdefault(binding.name, set()).add(binding.origin)
    return imports


def module_names(source: str) -> frozenset[str]:
    """Return every name that a module binds or reads at module level, or that its code reads as a global.

    Binding any other name in the module changes nothing in it. Raises SyntaxError.
    """
    symbols = _symbols(symtable.symtable(source, "<host>", "exec"))
    return frozenset(symbol.get_name() for symbol, is_top in symbols if is_top or symbol.is_global())


def free_names(source: str) -> frozenset[str]:
    """Return the names that code reads as globals and does not bind, including builtins."""
    table = symtable.symtable(source, "<draft>", "exec")
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    globals_read = (symbol for symbol, is_top in _symbols(table) if is_top or symbol.is_global())
    return frozenset(symbol.get_name() for symbol in globals_read if symbol.is_referenced()) - bound


def _symbols(table: symtable.SymbolTable) -> Iterator[tuple[symtable.Symbol, bool]]:
    """Yield the symbols of all scopes, and True for those of the module."""
    for symbol in table.get_symbols():
        yield symbol, table.get_type() == "module"
    for child in table.get_children():
        yield from _symbols(child)


def _module_level(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            yield from _module_level(ast.iter_child_nodes(node))
