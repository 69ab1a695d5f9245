"""A drafted Python test, taken apart: what it imports, what helps it, and the one test. Pure."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from bot.reproduction.language import DraftRejected
from bot.reproduction.python.names import Binding, free_names, import_bindings

if TYPE_CHECKING:
    from bot.reproduction.python.host import Case

_FENCED = re.compile(
    r"^(?:```|~~~)[ \t]*(?:python|py|python3)?[ \t]*\n(.*?)^(?:```|~~~)", re.DOTALL | re.MULTILINE
)
#: Calls of a script that start tests or print: of no use in a test file, and harmless to leave out.
_SCRIPT_CALLS = frozenset({"print", "unittest.main", "pytest.main", "main"})

#: Larger than any test that a model was seen to write: characters, and steps down its syntax tree.
MAX_LENGTH, MAX_DEPTH = 20_000, 100

#: What reading Python ends with where it cannot be read: TypeError is libcst's of ``or(lambda: x)``.
UNREADABLE = (ValueError, TypeError, RecursionError, MemoryError, cst.ParserSyntaxError)
#: Statements of a module, as libcst has them.
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(frozen=True)
class PythonDraft:
    """The parts of a draft, as drafted or in the form in which they will stand. Helpers are those alone that the
    test needs, in their order.
    """

    imports: tuple[Binding, ...]
    helpers: tuple[Statement, ...]
    test: cst.FunctionDef
    holder: cst.ClassDef | None
    """The class that the test is a method of, without its other tests and with the test in it."""
    case: Case | None = None
    """Set where the test becomes a method of a class of the host."""

    @property
    def nodes(self) -> tuple[Statement, ...]:
        """Everything but the imports, as it would stand at module level."""
        return (*self.helpers, self.holder or self.test)

    @property
    def test_id(self) -> str:
        """The test as its runner names it: ``TestA::test_b``."""
        name = self.test.name.value
        if self.holder is not None:
            return f"{self.holder.name.value}::{name}"
        return f"{self.case.name}::{name}" if self.case else name

    def with_nodes(self, nodes: tuple[Statement, ...]) -> PythonDraft:
        """The same with rewritten ``nodes``."""
        *helpers, last = nodes
        if isinstance(last, cst.ClassDef):
            return replace(self, helpers=tuple(helpers), holder=last, test=_methods(last)[0])
        assert isinstance(last, cst.FunctionDef)
        return replace(self, helpers=tuple(helpers), test=last)

    def named(self, name: str) -> PythonDraft:
        """The same with the test called ``name``."""
        test = self.test.with_changes(name=cst.Name(name))
        if self.holder is None:
            return replace(self, test=test)
        body = [test if is_test(each) else each for each in self.holder.body.body]
        holder = self.holder.with_changes(body=self.holder.body.with_changes(body=body))
        return replace(self, test=test, holder=holder)


def code_of(reply: str) -> str:
    """The code in a model's reply: the first fenced block that holds a test, or else the text as it is."""
    reply = reply.replace("\r\n", "\n")
    blocks: list[str] = _FENCED.findall(reply)
    text = next((block for block in blocks if "def test" in block), blocks[0] if blocks else reply)
    return textwrap.dedent(text).strip("\n") + "\n"


def parse(code: str) -> cst.Module:
    """The syntax tree of code that compiles, too; raises DraftRejected with line and reason."""
    if len(code) > MAX_LENGTH:
        raise DraftRejected(f"it has {len(code):,} characters: a test has {MAX_LENGTH:,} at most")
    try:
        with warnings.catch_warnings():
            # What a draft's odd escapes deserve is decided by its outcome, not here.
            warnings.simplefilter("ignore")
            tree = ast.parse(code, "<draft>")
            _measure(tree)
            compile(tree, "<draft>", "exec", dont_inherit=True)
        module = cst.parse_module(code)
        str(module.code)  # what is nested too deeply for libcst to write is refused here
        return module
    except SyntaxError as error:
        raise DraftRejected(f"it does not parse: line {error.lineno}: {error.msg}") from error
    except UNREADABLE as error:
        raise DraftRejected(f"it does not parse: {str(error).partition(chr(10))[0]}") from error


def _measure(tree: ast.Module) -> None:
    """Refuse what is nested deeply: compiler and libcst take time in proportion to its square."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise DraftRejected(f"it is nested more than {MAX_DEPTH} deep (line {getattr(level[0], 'lineno', 1)})")


def render(nodes: Sequence[Statement], indent: str = "    ") -> str:
    """The source of statements at module level."""
    return cst.Module(body=nodes, default_indent=indent).code


def take_apart(reply: str) -> PythonDraft:
    """Split the draft in a model's reply into its parts.

    Of several tests the first is kept; code that would run on import is refused.

    Raises DraftRejected.
    """
    imports: list[Binding] = []
    helpers: list[Statement] = []
    tests: list[tuple[cst.FunctionDef, cst.ClassDef | None]] = []
    for node in parse(code_of(reply)).body:
        if bound := _imports(node):
            imports.extend(bound)
        elif is_test(node):
            tests.append((node, None))
        elif isinstance(node, cst.ClassDef) and (methods := _methods(node)):
            tests.append((methods[0], _only(node, methods[0])))
        elif not _negligible(node):
            helpers.append(_helper(node))
    if not tests:
        raise DraftRejected("it defines no test: a function or method whose name starts with test")
    test, holder = tests[0]
    return PythonDraft(imports=tuple(imports), helpers=_needed(helpers, holder or test), test=test, holder=holder)


def bound_names(node: Statement) -> frozenset[str]:
    """The names that a statement binds where it stands."""
    found: set[str] = set()
    for each in ast.parse(render([node])).body:
        for inner in [each] if isinstance(each, ast.ClassDef | ast.FunctionDef) else ast.walk(each):
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(inner.name)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                found.add(inner.id)
            elif isinstance(inner, ast.Import | ast.ImportFrom):
                found.update(binding.name for binding in import_bindings(inner))
    return frozenset(found)


def _imports(node: Statement) -> tuple[Binding, ...]:
    if not isinstance(node, cst.SimpleStatementLine):
        return ()
    found: list[Binding] = []
    for each in ast.parse(render([node.with_changes(leading_lines=[])])).body:
        if not isinstance(each, ast.Import | ast.ImportFrom):
            return ()
        if not (isinstance(each, ast.ImportFrom) and each.module == "__future__"):
            found.extend(import_bindings(each))
    if star := next((binding for binding in found if binding.name == "*"), None):
        raise DraftRejected(f"it says `{star.statement}`: import the names that the test needs")
    return tuple(found)


def is_test(node: object) -> TypeGuard[cst.FunctionDef]:
    """Whether a node is a test function or method."""
    return isinstance(node, cst.FunctionDef) and node.name.value.startswith("test")


def _methods(node: cst.ClassDef) -> list[cst.FunctionDef]:
    return [each for each in node.body.body if is_test(each)]


def _only(node: cst.ClassDef, test: cst.FunctionDef) -> cst.ClassDef:
    """The class with this one of its tests."""
    kept = [each for each in node.body.body if each is test or not is_test(each)]
    return node.with_changes(body=node.body.with_changes(body=kept))


def _helper(node: Statement) -> Statement:
    if isinstance(node, cst.SimpleStatementLine) and any(isinstance(each, cst.Expr) for each in node.body):
        source = render([node.with_changes(leading_lines=[])]).strip()
        raise DraftRejected(f"`{source[:60]}` runs on import: put everything into the test")
    return node


def _needed(helpers: Sequence[Statement], test: Statement) -> tuple[Statement, ...]:
    """The helpers that the test reads, directly or through another helper. Autouse fixtures act unread."""
    sources = [render([node]) for node in helpers]
    binding: dict[str, list[int]] = {}
    for index, node in enumerate(helpers):
        for name in bound_names(node):
            binding.setdefault(name, []).append(index)
    kept: set[int] = set()
    fresh = {index for index, source in enumerate(sources) if "autouse" in source}
    wanted = set(free_names(render([test]))) | _parameters(test)
    while fresh := fresh.union(*(binding.pop(name, ()) for name in wanted)) - kept:
        kept |= fresh
        wanted = set().union(*(free_names(sources[index]) | _parameters(helpers[index]) for index in fresh))
        fresh = set()
    return tuple(helpers[index] for index in sorted(kept))


def _parameters(node: Statement) -> set[str]:
    """Parameter names: a test and a fixture get fixtures by them."""
    return {
        argument.arg
        for inner in ast.walk(ast.parse(render([node])))
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
        for argument in (*inner.args.args, *inner.args.kwonlyargs)
    }


def _negligible(node: Statement) -> bool:
    if isinstance(node, cst.If):
        return "__name__" in render([node]).partition(":")[0]
    if not isinstance(node, cst.SimpleStatementLine):
        return False
    return all(_idle(each) for each in node.body)


def _idle(node: cst.BaseSmallStatement) -> bool:
    if isinstance(node, cst.Pass):
        return True
    if not isinstance(node, cst.Expr):
        # ``from __future__ import ...`` alone: the host decides about its own.
        return isinstance(node, cst.ImportFrom)
    if isinstance(node.value, cst.Call):
        return cst.Module(body=[]).code_for_node(node.value.func) in _SCRIPT_CALLS
    return isinstance(node.value, cst.SimpleString | cst.ConcatenatedString | cst.Ellipsis)
