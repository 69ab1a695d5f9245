"""Where in a host a drafted test belongs, and in which form. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

import libcst as cst

from bot.reproduce.python.draft import PythonDraft, Statement, bound_names, render
from bot.reproduce.python.host import Case, Host
from bot.reproduce.python.names import free_names
from bot.reproduce.python.rewrite import as_function, as_method


@dataclass(frozen=True)
class Placement:
    """The draft's parts in the form in which they will stand."""

    helpers: tuple[Statement, ...]
    test: cst.FunctionDef
    holder: cst.ClassDef | None = None
    """Set where the test brings its own class."""
    case: Case | None = None
    """Set where the test becomes a method of a class of the host."""

    @property
    def nodes(self) -> tuple[Statement, ...]:
        """Everything that is added, as it would stand at module level."""
        return (*self.helpers, self.holder or self.test)

    def with_nodes(self, nodes: tuple[Statement, ...]) -> Placement:
        """The same with rewritten ``nodes``."""
        *helpers, last = nodes
        if isinstance(last, cst.ClassDef):
            test = next(each for each in last.body.body if _is_test(each))
            assert isinstance(test, cst.FunctionDef)
            return replace(self, helpers=tuple(helpers), holder=last, test=test)
        assert isinstance(last, cst.FunctionDef)
        return replace(self, helpers=tuple(helpers), test=last)

    def named(self, name: str) -> Placement:
        """The same with the test called ``name``."""
        test = self.test.with_changes(name=cst.Name(name))
        if self.holder is None:
            return replace(self, test=test)
        body = [test if _is_test(each) else each for each in self.holder.body.body]
        holder = self.holder.with_changes(body=self.holder.body.with_changes(body=body))
        return replace(self, test=test, holder=holder)


def place(draft: PythonDraft, host: Host) -> Placement:
    """Follow the host's own style: functions beside functions, methods among methods.

    A method that uses its object only moves into a class with the same base, because what ``self`` offers is
    decided there; where the host has none, the draft's own class comes along.
    """
    as_drafted = Placement(helpers=draft.helpers, test=draft.test, holder=draft.holder)
    if draft.holder is None:
        return _place_function(as_drafted, host)
    if _only_tests(draft.holder):
        if base := _base(draft.holder):
            case = host.case_for(render(draft.nodes), unittest=True, base=base)
            return replace(as_drafted, holder=None, case=case) if case else as_drafted
        if function := as_function(draft.test):
            return _place_function(replace(as_drafted, test=function, holder=None), host)
    return as_drafted


def _place_function(placement: Placement, host: Host) -> Placement:
    if not host.only_unittest or _decorated_with_helpers(placement):
        return placement
    method = as_method(placement.test)
    case = host.case_for(render(placement.nodes), unittest=True)
    return placement if method is None or case is None else replace(placement, test=method, case=case)


def _decorated_with_helpers(placement: Placement) -> bool:
    """A decorator runs when the class is made, before helpers that stand below it exist."""
    bound = {name for helper in placement.helpers for name in bound_names(helper)}
    bare = placement.test.with_changes(body=cst.IndentedBlock([cst.SimpleStatementLine([cst.Pass()])]))
    return bool(bound & free_names(render([bare])))


def _only_tests(holder: cst.ClassDef) -> bool:
    if holder.decorators or holder.keywords:
        return False
    return all(_is_test(each) or _is_docstring(each) for each in holder.body.body)


def _base(holder: cst.ClassDef) -> str:
    if not holder.bases:
        return ""
    node = ast.parse(cst.Module(body=[]).code_for_node(holder.bases[0].value), mode="eval").body
    return ast.unparse(node).rpartition(".")[2].removesuffix("object")


def _is_test(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.FunctionDef) and node.name.value.startswith("test")


def _is_docstring(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(each, cst.Pass) or (isinstance(each, cst.Expr) and isinstance(each.value, cst.SimpleString))
        for each in node.body
    )
