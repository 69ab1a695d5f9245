# ruff: noqa: E501 - lists of words
"""Parsers of source code: no file ends this process."""

from __future__ import annotations

from functools import partial

from bot.code.parsing.parser_process import NotParsed
from bot.code.parsing.syntax import fingerprint, outline
from bot.code.symbols.imports import FileNames
from bot.code.symbols.languages import rules_of
from tests.parsers.parser import Parser

_TOKENS = (
    "a<", "&;", "(", "[", "{", "}", "a.", "a(", "`${", "`", "<a>", "<", "@A ", "?:", "a?", "=>", "(a)=>", "'", "/*", "//", "*/",
    "a:", "a,", ";", "&", "*", "!", "-", "/", "if(a)", "else ", "class A{", "fn a(", "|a|", "::", "a<b,", "<T>(", "->", "#[", '"',
    'r#"', "b'", "=", "async ", "yield ", "{}", "()", "[]", "case a:", "import a;", "#define a ", "#include <a>\n", "typedef ", "struct a{", "use a::{", "from a import ", "func ", "<-", "map[", "impl ", "a as ", "</",
    "...", "f'{", "lambda:", "def f():\n", "x=1\n", "a,", "x;", "if a:\n ", "\\u000a", "\n", " ", "a ", "1",
)  # fmt: skip


def _read(text: str, path: str) -> object:
    try:
        parsed = outline(text, path, frozenset({"a", "b"}), frozenset({1, 2}))
    except NotParsed:
        return None
    for statement in parsed.imports:
        list(rules_of(path).imports(statement.text, path, FileNames(["a.py", "b/a.rs"])))
    return parsed, fingerprint(text, path)


PARSERS: tuple[Parser, ...] = tuple(
    Parser(f"code: {path}", partial(_read, path=path), words=_TOKENS, limit=40_000, apart=True)
    for path in ("a.py", "a.js", "a.ts", "a.tsx", "a.go", "A.java", "a.rs", "a.c")
)
