"""Python tests: test files, origins of names, and placing of drafts."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

from bot.code.parsing.parser_process import NotParsed, parse_apart
from bot.reproduction.language import Excerpt, Names, first_free
from bot.reproduction.protocol import Injected
from bot.reproduction.python.draft import code_of, invert, render, take_apart
from bot.reproduction.python.host import read_definitions
from bot.reproduction.python.inject import add_to, to_new_file
from bot.reproduction.python.names import Binding, import_bindings

_TOP_LEVEL = re.compile(r"^(?:async +def|def|class) +(\w+)|^(\w+)(?: *:[^=\n]+)? *=(?!=)", re.MULTILINE)
_MEMBER = re.compile(r"^[ \t]+(?:async +def|def) +(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import [\w. ]+|from [\w.]+ import [\w, ]+)$", re.MULTILINE)
_SOURCE_FOLDERS = ("src", "lib")
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
        return PythonNames(sources, tests)

    def definitions(self, names: Sequence[str], sources: Mapping[str, str], limit: int) -> tuple[Excerpt, ...]:
        """Return definitions; ``a.b.C.m`` is looked up by its last part, ``m``.

        Among several definitions of a name, those whose class or module is named as well are preferred. A name
        with more than five equally good definitions is left out.
        """
        index: dict[str, list[str]] = {}
        for path, text in sources.items():
            for name in {*_top_level(text), *_MEMBER.findall(text)}:
                index.setdefault(name, []).append(path)
        results: dict[tuple[str, int], Excerpt] = {}
        for name in names:
            *context, last = name.split(".")
            candidates = _candidates(last, context, index, sources)
            if 0 < len(candidates) <= 5:
                results.update({(excerpt.path, excerpt.line): excerpt for excerpt in candidates[:2]})
            if len(results) >= limit:
                break
        return tuple(results.values())[:limit]

    def tests_in(self, source: str) -> tuple[tuple[str, str], ...]:
        return tuple(
            (definition.name.replace(".", "::"), definition.source)
            for definition in _definitions("", source)
            if definition.name.rpartition(".")[2].startswith("test")
        )

    def inject(self, draft: str, host: str, test_name: str | None, names: Names) -> Injected:
        text = host.removeprefix("\ufeff")  # a byte order mark, which Python reads in files only
        injected = add_to(take_apart(draft), text, test_name, names)
        return injected.model_copy(update={"content": host[: len(host) - len(text)] + injected.content})

    def new_file(self, draft: str, test_name: str | None, names: Names, path: str) -> Injected:
        return to_new_file(take_apart(draft), test_name, names)

    def new_path(self, beside: str | None, stem: str, existing: Mapping[str, str]) -> str:
        tops = {PurePosixPath(path).parent.parts[:1] for path in existing}
        usual = PurePosixPath("test" if ("test",) in tops and ("tests",) not in tops else "tests")
        folder = PurePosixPath(beside).parent if beside else usual
        return first_free(str(folder / stem), ".py", "_", existing.__contains__)

    def syntax(self, draft: str) -> str:
        tree = ast.parse(render(take_apart(draft).nodes))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if node.name.startswith(("test", "Test")):
                    node.name = "test"
                first = node.body[0]
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(node.body) > 1:
                    del node.body[0]  # a docstring
        return ast.dump(tree)

    def length(self, code: str) -> int:
        try:
            return sum(token.type not in _SILENT for token in tokenize.generate_tokens(io.StringIO(code).readline))
        except (tokenize.TokenError, SyntaxError):
            return len(code.split())

    def probe(self, path: str, names: Names) -> tuple[str, str]:
        return _PROBE, "TestProbe::test_probe"

    def invert(self, draft: str) -> str | None:
        return invert(code_of(draft))


def module_of(path: str) -> str:
    """Return the dotted name under which a file is imported: ``src/pkg/a.py`` is ``pkg.a``."""
    parts = list(PurePosixPath(path).with_suffix("").parts)
    if parts and parts[0] in _SOURCE_FOLDERS:
        parts = parts[1:]
    if parts and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


class PythonNames:
    """Import statements for names, from the repository's definitions and the imports of its tests."""

    def __init__(self, sources: Mapping[str, str], tests: Mapping[str, str]) -> None:
        self._defined: dict[str, set[str]] = {}
        for path, text in sources.items():
            if path not in tests:
                for name in _top_level(text):
                    self._defined.setdefault(name, set()).add(module_of(path))
        self._imported: dict[str, Counter[str]] = defaultdict(Counter)
        for text in tests.values():
            for binding in _imports(text):
                self._imported[binding.name][binding.statement] += 1

    def provider(self, name: str) -> str | None:
        """Return the most frequent import of ``name`` in the tests, else that from its only module."""
        if counts := self._imported.get(name):
            return max(sorted(counts), key=lambda statement: counts[statement])
        modules = self._defined.get(name, set())
        public = {module for module in modules if not re.search(r"(^|\.)_", module)} or modules
        return f"from {next(iter(public))} import {name}" if len(public) == 1 else None


def _candidates(
    last: str, context: Sequence[str], index: Mapping[str, Sequence[str]], sources: Mapping[str, str]
) -> list[Excerpt]:
    paths = index.get(last, ())
    if not paths or len(paths) > 30:
        return []
    matches = [match for path in paths for match in _definitions(path, sources[path]) if match.name.endswith(last)]
    exact = [match for match in matches if match.name.rpartition(".")[2] == last]
    if not context:
        return exact
    parts = {part for part in context if len(part) > 2}
    best = [match for match in exact if parts & {*match.name.split(".")[:-1], *module_of(match.path).split(".")}]
    return best or exact


def _definitions(path: str, text: str) -> tuple[Excerpt, ...]:
    try:
        return parse_apart(read_definitions, path, text)
    except NotParsed:
        return ()


def _top_level(text: str) -> set[str]:
    return {function or variable for function, variable in _TOP_LEVEL.findall(text)}


def _imports(text: str) -> Iterator[Binding]:
    """Yield what the absolute imports of one line bind."""
    for line in _IMPORT.findall(text):
        with suppress(SyntaxError):
            for binding in import_bindings(ast.parse(line).body):
                if not binding.origin[0].startswith((".", "__future__")):
                    yield binding
