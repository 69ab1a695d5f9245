"""Python behind the language seam."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from bot.reproduce.language import Excerpt, Injected, Names
from bot.reproduce.python.definitions import DefinedNames, resolve, tests_in
from bot.reproduce.python.draft import code_of, render, take_apart
from bot.reproduce.python.inject import add_to, alone
from bot.reproduce.python.invert import invert

_TEST_FILE = re.compile(r"(test_.*|.*_tests?|tests?)\.py")
_SILENT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})
_PROBE = """\
import unittest


class TestProbe(unittest.TestCase):
    def test_probe(self):
        pass
"""


class Python:
    """pytest functions and classes, unittest and Django test cases."""

    name = "python"
    suffixes = frozenset({".py"})

    def is_test_file(self, path: str) -> bool:
        return _TEST_FILE.fullmatch(PurePosixPath(path).name) is not None

    def names(self, sources: Mapping[str, str], tests: Mapping[str, str]) -> Names:
        return DefinedNames(sources, tests)

    def definitions(self, names: Sequence[str], sources: Mapping[str, str], limit: int) -> tuple[Excerpt, ...]:
        return resolve(names, sources, limit)

    def tests_in(self, source: str) -> tuple[tuple[str, str], ...]:
        return tests_in(source)

    def check(self, draft: str) -> None:
        take_apart(code_of(draft))

    def inject(self, draft: str, host: str, test_name: str | None, names: Names) -> Injected:
        return add_to(take_apart(code_of(draft)), host, test_name, names)

    def new_file(self, draft: str, test_name: str | None, names: Names, path: str) -> Injected:
        return alone(take_apart(code_of(draft)), test_name, names)

    def new_path(self, beside: str | None, stem: str, taken: Mapping[str, str]) -> str:
        folder = PurePosixPath(beside).parent if beside else _usual_folder(taken)
        path, number = folder / f"{stem}.py", 2
        while str(path) in taken:
            path, number = folder / f"{stem}_{number}.py", number + 1
        return str(path)

    def syntax(self, draft: str) -> str:
        parts = take_apart(code_of(draft))
        tree = ast.parse(render(parts.nodes))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                _forget(node)
        return ast.dump(tree)

    def length(self, code: str) -> int:
        try:
            return sum(token.type not in _SILENT for token in tokenize.generate_tokens(io.StringIO(code).readline))
        except (tokenize.TokenError, SyntaxError):
            return len(code.split())

    def probe(self, path: str, names: Names) -> tuple[str, str]:
        return _PROBE, "TestProbe::test_probe"

    def inverted(self, draft: str) -> str | None:
        return invert(code_of(draft))


def _forget(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
    """Take out what two drafts of one test differ in: its name, and what is written about it."""
    if node.name.startswith(("test", "Test")):
        node.name = "test"
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(node.body) > 1:
        del node.body[0]


def _usual_folder(taken: Mapping[str, str]) -> PurePosixPath:
    folders = {PurePosixPath(path).parent.parts[:1] for path in taken}
    return next((PurePosixPath(name) for name in ("tests", "test") if (name,) in folders), PurePosixPath("tests"))
