"""Facts about the Python files of a repository, read in child processes.

This module does not import libcst: a child would spend most of its processor time on that.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.code.parsing.parser_process import NotParsed, parse_apart
from bot.reproduction.language import DraftRejected, Excerpt
from bot.reproduction.lexical import most_alike
from bot.reproduction.python.names import module_imports, module_names

#: Lines of one definition that are shown.
MAX_LINES = 60


@dataclass(frozen=True)
class Case:
    """A class of tests in the host that can take one more method."""

    name: str
    unittest: bool
    base: str
    """Last part of the name of its first base: ``TestCase``; empty for a class without one."""
    asynchronous: bool
    """True if it awaits its tests. Any other unittest class passes an asynchronous test without running it."""
    end: int
    """Line after which a method is added, from 1."""
    indent: str
    source: str


@dataclass(frozen=True)
class Host:
    """The facts about a file for adding a test without side effects. Lines count from 1."""

    lines: tuple[str, ...]
    """With their line ends."""
    newline: str
    indent: str
    names: frozenset[str]
    """Names that the module binds or reads as globals, and the name of every function in it."""
    imports: dict[str, set[tuple[str, ...]]]
    cases: tuple[Case, ...]
    functions: bool
    """True if the file has tests that are plain functions."""
    after_imports: int
    """New imports go after this line; 0 = before everything."""
    end: int
    """New definitions go after this line: the last before a ``__main__`` block."""

    def case_for(self, query: str, base: str | None = None, *, asynchronous: bool = False) -> Case | None:
        """Return the fitting unittest class that is most similar to ``query``, or None if none fits."""
        fitting = {
            case.name: case
            for case in self.cases
            if case.unittest and base in (None, case.base) and (case.asynchronous or not asynchronous)
        }
        best = most_alike(query, {name: case.source for name, case in fitting.items()}, 1)
        # Without a common word: people usually add to the last class.
        return fitting[best[0]] if best else next(reversed(fitting.values()), None)

    @property
    def only_unittest(self) -> bool:
        """True if all tests of the file are in unittest classes: its runner may support nothing else."""
        return not self.functions and any(case.unittest for case in self.cases)


def read_host(source: str) -> Host:
    """Analyse a test file. Raises DraftRejected if this interpreter cannot parse it."""
    try:
        host = parse_apart(host_or_reason, source)
    except NotParsed as error:
        raise DraftRejected(f"the test file cannot be read: {error}") from error
    if isinstance(host, str):
        raise DraftRejected(host)
    return host


def host_or_reason(source: str) -> Host | str:
    """Analyse a test file in a child process. Return the reason if no test can be added."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            names = module_names(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        return f"the test file cannot be read: {error}"
    if re.search(r"\r(?!\n)|\f", source):
        return "the test file has line ends that cannot be kept"
    # Not splitlines(): it also splits where Python's tokenizer does not.
    lines = tuple(re.findall(r"[^\n]*\n|[^\n]+$", source))
    return Host(
        lines=lines,
        newline="\r\n" if "\r\n" in source else "\n",
        indent=_indent(tree, lines),
        names=names
        | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)},
        imports=module_imports(tree),
        cases=_cases(tree, lines),
        functions=any(_is_test_function(node) for node in tree.body),
        after_imports=_after_imports(tree, lines),
        end=_end(tree, lines),
    )


def _indent(tree: ast.Module, lines: tuple[str, ...]) -> str:
    """Return the indentation of the file's first block."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and isinstance(node, ast.stmt) and body[0].lineno > node.lineno:
            outer, inner = (re.match(r"[ \t]*", lines[statement.lineno - 1]) for statement in (node, body[0]))
            if outer and inner and len(inner[0]) > len(outer[0]):
                return inner[0].removeprefix(outer[0])
    return "    "


def _cases(tree: ast.Module, lines: tuple[str, ...]) -> tuple[Case, ...]:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    parents = {_last(base) for node in classes.values() for base in node.bases}
    cases = []
    for name, node in classes.items():
        # A parent's tests run again in each child; decorators may require arguments; one-liners have no room.
        if name in parents or node.decorator_list or node.body[0].lineno == node.lineno:
            continue
        if any(_is_test_function(statement) for statement in node.body):
            first = lines[node.body[0].lineno - 1]
            end = node.end_lineno or node.lineno
            base = _last(node.bases[0]) if node.bases else ""
            tests = filter(_is_test_function, node.body)
            case = Case(
                name=name,
                unittest=_is_unittest(node, classes, set()),
                base=base,
                asynchronous=base == "IsolatedAsyncioTestCase"
                or any(isinstance(test, ast.AsyncFunctionDef) for test in tests),
                end=end,
                indent=first[: len(first) - len(first.lstrip(" \t"))],
                source="".join(lines[node.lineno - 1 : end]),
            )
            cases.append(case)
    return tuple(cases)


def _is_unittest(node: ast.ClassDef, classes: dict[str, ast.ClassDef], visited: set[str]) -> bool:
    for base in map(_last, node.bases):
        if re.search(r"Test(Case|s|Base)?$", base) and base not in classes:
            return True
        if base in classes and base not in visited and _is_unittest(classes[base], classes, visited | {base}):
            return True
    return False


def _last(base: ast.expr) -> str:
    return ast.unparse(base).rpartition(".")[2]


def _is_test_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _after_imports(tree: ast.Module, lines: tuple[str, ...]) -> int:
    after = 0
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            break
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            after = node.end_lineno or node.lineno
    if after == 0:
        # Shebang, encoding and licence stay at the top.
        while after < len(lines) and lines[after].startswith("#"):
            after += 1
    return after


def _end(tree: ast.Module, lines: tuple[str, ...]) -> int:
    end = len(lines)
    last = tree.body[-1] if tree.body else None
    script = isinstance(last, ast.If) and "__name__" in ast.unparse(last.test)
    if last is not None and script:
        end = last.lineno - 1
    # Blank lines, and comments above a __main__ block, stay below the addition.
    while end > 0 and (not lines[end - 1].strip() or (script and lines[end - 1].startswith("#"))):
        end -= 1
    return end


def read_definitions(path: str, text: str) -> tuple[Excerpt, ...]:
    """Return the functions and classes of a file, each cut after ``MAX_LINES``; for a child process."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    lines = text.splitlines()
    results: list[Excerpt] = []
    for node, name in _walk(tree.body, ""):
        start = node.lineno
        source_lines = lines[start - 1 : min(node.end_lineno or start, start + MAX_LINES - 1)]
        results.append(Excerpt(name=name, path=path, line=start, source="\n".join(source_lines)))
    return tuple(results)


def _walk(
    body: Sequence[ast.stmt], prefix: str
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node, f"{prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from _walk(node.body, f"{prefix}{node.name}.")
