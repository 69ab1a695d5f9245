"""The parts of a drafted Python test: imports, helpers, and one test; and its inversion. Pure."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard, TypeVar, cast

import libcst as cst
import libcst.matchers as m

from bot.reproduction.language import DraftRejected
from bot.reproduction.python.host import Case
from bot.reproduction.python.names import Binding, import_bindings

_FENCED = re.compile(
    r"^(?:```|~~~)[ \t]*(?:python|py|python3)?[ \t]*\n(.*?)^(?:```|~~~)", re.DOTALL | re.MULTILINE
)
#: Calls of a script that start tests or print.
_SCRIPT_CALL = m.Call(
    m.Name("print") | m.Name("main") | m.Attribute(m.Name("unittest") | m.Name("pytest"), m.Name("main"))
)
_UNUSED: m.OneOf[Any] = m.OneOf(_SCRIPT_CALL, m.SimpleString(), m.ConcatenatedString(), m.Ellipsis())
#: ``ImportFrom`` is only met for ``__future__``: the host has its own.
_NEGLIGIBLE = m.SimpleStatementLine([m.ZeroOrMore(m.Pass() | m.ImportFrom() | m.Expr(_UNUSED))])
_RUNS_ON_IMPORT = m.SimpleStatementLine([m.ZeroOrMore(), m.Expr(), m.ZeroOrMore()])

#: Limits above any test that a model has written: characters, and depth of the syntax tree.
MAX_LENGTH, MAX_DEPTH = 20_000, 100

#: Errors of parsing invalid Python; libcst raises TypeError for ``or(lambda: x)``.
UNREADABLE = (ValueError, TypeError, RecursionError, MemoryError, cst.ParserSyntaxError)
#: Statements of a module in libcst.
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
StatementType = TypeVar("StatementType", bound=Statement)


@dataclass(frozen=True)
class PythonDraft:
    """The parts of a draft, as drafted or adapted to a host."""

    imports: tuple[Binding, ...]
    helpers: tuple[Statement, ...]
    test: cst.FunctionDef
    holder: cst.ClassDef | None
    """The class of the test, with no other tests."""
    case: Case | None = None
    """The class of the host to which the test is added as a method."""

    @property
    def nodes(self) -> tuple[Statement, ...]:
        """Everything but the imports, as statements of a module."""
        return (*self.helpers, self.holder or self.test)

    @property
    def test_id(self) -> str:
        """The test in its runner's notation: ``TestA::test_b``."""
        name = self.test.name.value
        if self.holder is not None:
            return f"{self.holder.name.value}::{name}"
        return f"{self.case.name}::{name}" if self.case else name

    def tidied(self, test_name: str) -> PythonDraft:
        """Return the draft with another name of its test, and without blank lines above its statements."""
        test = self.test.with_changes(name=cst.Name(test_name))
        helpers = tuple(map(_tidy, self.helpers))
        if self.holder is None:
            return replace(self, helpers=helpers, test=_tidy(test))
        body = [test if is_test(node) else node for node in self.holder.body.body]
        holder = self.holder.with_changes(body=self.holder.body.with_changes(body=body))
        return replace(self, helpers=helpers, test=test, holder=_tidy(holder))


def _tidy(node: StatementType) -> StatementType:
    """Remove blank lines above a statement; comments stay."""
    lines = [line for line in node.leading_lines if line.comment is not None]
    return cast(StatementType, node.with_changes(leading_lines=lines))


def code_of(reply: str) -> str:
    """Return the code in a model's reply: the first fenced block with a test, or else the whole text."""
    reply = reply.replace("\r\n", "\n").replace("\r", "\n")
    blocks: list[str] = _FENCED.findall(reply)
    text = next((block for block in blocks if "def test" in block), blocks[0] if blocks else reply)
    return textwrap.dedent(text).strip("\n") + "\n"


def parse(code: str) -> cst.Module:
    """Parse code and check that it compiles. Raises DraftRejected with line and reason."""
    _compiled(code)
    try:
        module = cst.parse_module(code)
        str(module.code)  # raises if the code is nested too deeply for libcst to write
        return module
    except UNREADABLE as error:
        raise DraftRejected(f"it does not parse: {str(error).partition(chr(10))[0]}") from error


def _compiled(code: str) -> ast.Module:
    if len(code) > MAX_LENGTH:
        raise DraftRejected(f"it has {len(code):,} characters: a test has {MAX_LENGTH:,} at most")
    try:
        with warnings.catch_warnings():
            # Warnings about odd escapes are irrelevant here: the outcome of the draft decides.
            warnings.simplefilter("ignore")
            tree = ast.parse(code, "<draft>")
            _measure(tree)
            compile(tree, "<draft>", "exec", dont_inherit=True)
        return tree
    except SyntaxError as error:
        raise DraftRejected(f"it does not parse: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise DraftRejected(f"it does not parse: {error}") from error


def _measure(tree: ast.Module) -> None:
    """Refuse deeply nested code: compiler and libcst take quadratic time."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise DraftRejected(f"it is nested more than {MAX_DEPTH} deep (line {getattr(level[0], 'lineno', 1)})")


def render(nodes: Sequence[Statement], indent: str = "    ") -> str:
    return cst.Module(body=nodes, default_indent=indent).code


def take_apart(reply: str) -> PythonDraft:
    """Split the draft in a model's reply into its parts.

    Only the first of several tests is kept. Raises DraftRejected, also for code that would run on import.
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
            body = [part for part in node.body.body if part is methods[0] or not is_test(part)]
            tests.append((methods[0], node.with_changes(body=node.body.with_changes(body=body))))
        elif not _negligible(node):
            if m.matches(node, _RUNS_ON_IMPORT):
                source = render([node.with_changes(leading_lines=[])]).strip()
                raise DraftRejected(f"`{source[:60]}` runs on import: put everything into the test")
            if "pytestmark" in bound_names(node):
                raise DraftRejected("`pytestmark` would mark the other tests of its file: mark the test itself")
            helpers.append(node)
    if not tests:
        raise DraftRejected("it defines no test: a function or method whose name starts with test")
    test, holder = tests[0]
    return PythonDraft(imports=tuple(imports), helpers=tuple(helpers), test=test, holder=holder)


def bound_names(node: Statement) -> frozenset[str]:
    """Return the names that a statement binds in its scope."""
    bound: set[str] = set()
    for statement in ast.parse(render([node])).body:
        for inner in [statement] if isinstance(statement, ast.ClassDef | ast.FunctionDef) else ast.walk(statement):
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                bound.add(inner.name)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                bound.add(inner.id)
            bound.update(binding.name for binding in import_bindings([inner]))
    return frozenset(bound)


def _imports(node: Statement) -> tuple[Binding, ...]:
    if not isinstance(node, cst.SimpleStatementLine):
        return ()
    statements = ast.parse(render([node.with_changes(leading_lines=[])])).body
    if not all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in statements):
        return ()
    bindings = [binding for binding in import_bindings(statements) if binding.origin[0] != "__future__"]
    if star := next((binding for binding in bindings if binding.name == "*"), None):
        raise DraftRejected(f"it says `{star.statement}`: import the names that the test needs")
    return tuple(bindings)


def is_test(node: object) -> TypeGuard[cst.FunctionDef]:
    return isinstance(node, cst.FunctionDef) and node.name.value.startswith("test")


def _methods(node: cst.ClassDef) -> list[cst.FunctionDef]:
    return [statement for statement in node.body.body if is_test(statement)]


def _negligible(node: Statement) -> bool:
    """Return True for statements without a use in a test: script parts, docstrings, ``__future__`` imports."""
    if isinstance(node, cst.If):
        return "__name__" in render([node]).partition(":")[0]
    return m.matches(node, _NEGLIGIBLE)


_OPPOSITES = {
    "assertEqual": "assertNotEqual",
    "assertTrue": "assertFalse",
    "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone",
    "assertIn": "assertNotIn",
    "assertIsInstance": "assertNotIsInstance",
    "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual",
    "assertAlmostEqual": "assertNotAlmostEqual",
    "assertRegex": "assertNotRegex",
}
_OPPOSITES |= {negative: positive for positive, negative in _OPPOSITES.items()}
_OPERATORS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
_RAISES = frozenset({"raises", "pytest.raises", "self.assertRaises"})


def invert(code: str) -> str | None:
    """Return the code with the last assertion of its first test inverted, or None without an assertion.

    A model that cannot write a failing test can often write a passing one that shows the wrong behaviour. With its
    last assertion inverted, it fails exactly while the bug exists (the idea of AssertFlip).

    Supports ``assert``, unittest's comparisons and ``with pytest.raises(...)``, which is replaced by its body so
    that the exception fails the test. Raises DraftRejected.
    """
    functions = (
        node for node in ast.walk(_compiled(code)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    tests = [function for function in functions if function.name.startswith("test")]
    statements = ast.walk(min(tests, key=lambda test: test.lineno)) if tests else ()
    inverses = [(node, text) for node in statements if isinstance(node, ast.stmt) and (text := _inverse(node))]
    if not inverses:
        return None
    node, text = max(inverses, key=lambda pair: (pair[0].lineno, pair[0].col_offset))
    lines, end = code.encode().split(b"\n"), node.end_lineno or node.lineno
    before, after = lines[node.lineno - 1][: node.col_offset], lines[end - 1][node.end_col_offset :]
    # A statement of several lines is a block, with nothing but white space before it.
    lines[node.lineno - 1 : end] = [before + text.encode().replace(b"\n", b"\n" + before) + after]
    return b"\n".join(lines).decode()


def _inverse(node: ast.stmt) -> str:
    """Return the opposite of an assertion; empty for any other statement."""
    if isinstance(node, ast.Assert):
        return ast.unparse(ast.Assert(_negated(node.test), node.msg))
    if isinstance(node, ast.Expr) and isinstance(call := node.value, ast.Call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in _OPPOSITES:
            return ast.unparse(node).replace(name, _OPPOSITES[name], 1)
    if isinstance(node, ast.With) and len(node.items) == 1 and node.items[0].optional_vars is None:
        manager = node.items[0].context_expr
        if isinstance(manager, ast.Call) and ast.unparse(manager.func) in _RAISES:
            return ast.unparse(ast.Module(node.body, []))
    return ""


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPERATORS:
        return ast.Compare(test.left, [_OPERATORS[type(test.ops[0])]], test.comparators)
    return ast.UnaryOp(ast.Not(), test)
