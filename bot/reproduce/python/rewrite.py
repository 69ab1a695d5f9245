"""Small rewrites of drafted code: other names, other quotes, a method from a function and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import libcst as cst

Node = TypeVar("Node", bound=cst.CSTNode)


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """``node`` with variables, functions, classes and parameters called otherwise; attributes keep their names."""
    return _visited(node, _Rename(names)) if names else node


def requoted(node: Node, quote: str) -> Node:
    """``node`` with plain one-line strings in the given quotation marks, where that needs no escaping."""
    return _visited(node, _Requote(quote))


def as_method(test: cst.FunctionDef) -> cst.FunctionDef | None:
    """A test function as a method; None where it takes parameters, which a unittest class would not give it."""
    if not _parameterless(test.params):
        return None
    return test.with_changes(params=cst.Parameters(params=[cst.Param(cst.Name("self"))]))


def as_function(test: cst.FunctionDef) -> cst.FunctionDef | None:
    """A test method as a function; None where it makes use of its object."""
    parameters = list(test.params.params)
    if not parameters or parameters[0].name.value != "self" or test.decorators:
        return None
    bare = test.with_changes(params=test.params.with_changes(params=parameters[1:]))
    return None if _Reads.any(bare.body, "self") or _Reads.any(bare.body, "super") else bare


def tidy(node: Node) -> Node:
    """A statement without blank lines above it; comments above it stay."""
    above = getattr(node, "leading_lines", None)
    if not above:
        return node
    return _same(node.with_changes(leading_lines=[line for line in above if line.comment is not None]), node)


def _visited(node: Node, transformer: cst.CSTTransformer) -> Node:
    return _same(node.visit(transformer), node)


def _same(changed: object, node: Node) -> Node:
    assert isinstance(changed, type(node))
    return changed


def _parameterless(parameters: cst.Parameters) -> bool:
    variadic = isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg is not None
    return not (parameters.params or parameters.posonly_params or parameters.kwonly_params or variadic)


class _Rename(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self._names.get(updated_node.value, updated_node.value))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


class _Requote(cst.CSTTransformer):
    def __init__(self, quote: str) -> None:
        super().__init__()
        self._quote = quote
        self._inside = 0

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        # Before Python 3.12 a string within an f-string must use the other quotation mark.
        self._inside += 1

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.FormattedString:
        self._inside -= 1
        return updated_node

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        content = updated_node.raw_value
        if self._inside or len(updated_node.quote) != 1 or any(mark in content for mark in "'\"\\"):
            return updated_node
        return updated_node.with_changes(value=f"{updated_node.prefix}{self._quote}{content}{self._quote}")


class _Reads(cst.CSTVisitor):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.found = False

    def visit_Name(self, node: cst.Name) -> None:
        self.found = self.found or node.value == self._name

    @classmethod
    def any(cls, node: cst.CSTNode, name: str) -> bool:
        reader = cls(name)
        node.visit(reader)
        return reader.found
