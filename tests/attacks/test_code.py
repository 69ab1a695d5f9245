# ruff: noqa: E501 - one attack a line
"""Whatever a source file holds, the other threads go on, and what runs otherwise is reviewed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bot.code.change.diff import parse
from bot.code.change.packing import pack
from bot.code.parsing.syntax import definitions, fingerprint
from bot.code.symbols.names import names_in
from bot.core.redaction import redact
from bot.features.review.meaning import same
from bot.features.shared.links import closing_links
from bot.reproduction.report import facts, parse_report
from bot.router import SLASH_COMMANDS
from evaluation.bloom.components import presence
from evaluation.bouncerbench.tasks import repository_of
from tests.attacks.corpus import params
from tests.builders import diff_of
from tests.parsers.pulse import beats

#: Path, what is repeated, and to how many characters.
SLOW: dict[str, dict[str, tuple[str, str, int]]] = {
    "a source file holds up the jobs beside it": {
        "Java, comparisons": ("A.java", "a<", 40_000),
        "Rust, references": ("a.rs", "&;", 40_000),
        "TypeScript, type arguments": ("a.ts", "a<b,", 40_000),
        "TypeScript with elements, type arguments": ("a.tsx", "a<b,", 40_000),
        "JavaScript, arrows": ("a.js", "->", 40_000),
        "Go, cases": ("a.go", "case a:", 40_000),
        "Python, arrows": ("a.py", "<-", 40_000),
        "Python, statements": ("a.py", "x=1\n", 999_000),
        "Python, a tuple": ("a.py", "a,", 999_000),
        "Java, 1 MB": ("A.java", "a<", 999_000),
    },
}
#: Path, and the text before and after.
DISGUISED: dict[str, dict[str, tuple[str, str, str]]] = {
    "a change of what runs counts as layout": {
        "a cgo preamble": (
            "a.go", 'package a\n// int f();\nimport "C"\n', 'package a\n// int f() { g(); }\nimport "C"\n'
        ),
        "cgo by an escaped name": ("a.go", 'package a\nimport "\\x43"\nvar a = 1\n', 'package a\nimport "\\x43"\nvar a  = 1\n'),
        "a Java comment that an escape ends": (
            "A.java", "class A { /* a */ int x; }", "class A { /* \\u002a/ static { f(); } /* */ int x; }"
        ),
        "a Java line comment that an escape ends": ("A.java", "class A { // a\n }", "class A { // \\u000a int x;\n }"),
        "a Java character that becomes a string": ("A.java", "class A { int x = f('a'); }", 'class A { int x = f("a"); }'),
        "a C brace in a line comment": ("a.c", "if (a) // b\n{\nc;\n}", "if (a) // b {\n\nc;\n}"),
        "a PHP semicolon in a line comment": ("a.php", "f() // b\n;", "f() // b ;\n"),
        "a Kotlin call in a line comment": ("a.kt", "// b\nf()", "// b f()\n"),
        "a blank in a Swift regular expression": ("a.swift", "let r = /a  b/\n", "let r = /a b/\n"),
        "a blank that belongs to a name in CSS": ("a.css", "a\u00a0b {}\n", "a b {}\n"),
        "a C line that is continued": ("a.c", "// a\nf();", "// a \\\nf();"),
        "a Go build constraint": ("a.go", "//go:build linux\n\npackage a\n", "//go:build !linux\n\npackage a\n"),
        "a linter that is switched off": ("a.py", "f()\n", "f()  # noqa\n"),
        "a line break behind return": ("a.js", "function f() { return a }", "function f() { return\na }"),
        "an HTML comment in a script": ("a.js", "x = a --> b", "x = a\n--> b"),
    },
}  # fmt: skip

#: A reader, what is repeated, and to how many characters.
SLOW_TEXTS: dict[str, dict[str, tuple[Callable[[str], object], str, int]]] = {
    "a text holds up the jobs beside it": {
        "a comment, commands with an entity": (
            lambda text: SLASH_COMMANDS.read(_numbered(text)),
            "/bounce&#114; a\n",
            48_000,
        ),
        "a pull request, backticks": (
            lambda text: closing_links(f"a{text}", "a/b", "https://github.com"),
            "`",
            65_000,
        ),
        "an issue, links to code": (lambda text: facts(parse_report(text)), "a/blob/", 65_000),
        "a text, starts of a key": (
            lambda text: redact(text, ("-----BEGIN KEY-----\nabcd", "sk-proj-123")),
            "sk-proj-",
            200_000,
        ),
        "a name of a file": (
            lambda text: pack(parse(diff_of({}, {f"repro{text}.longer": "a\n"})), 9, 1),
            "reproduc_",
            8_000,
        ),
        "a phrase, a path": (lambda text: names_in(f"a/ {text}"), "_", 30_000),
        "a task's id": (lambda text: repository_of(f"{text}!"), "a__", 65_000),
        "a report, empty lines": (lambda text: presence("a", f"{text}!"), "\n", 30_000),
    },
}

TABLES = (SLOW, SLOW_TEXTS, DISGUISED)


def _numbered(text: str) -> str:
    return "".join(f"{line} {number}\n" for number, line in enumerate(text.splitlines())) + "\n/bouncer help\n"


@pytest.mark.parametrize(("never", "attack"), params(SLOW))
def test_slow(never: str, attack: tuple[str, str, int]) -> None:
    path, unit, size = attack
    text = unit * (size // len(unit))
    start = time.process_time()
    with beats() as longest:
        definitions(text, path)
        if path == "a.py":  # which Python's own parser reads as well
            fingerprint(text, path)
    assert time.process_time() - start < 2, never
    assert longest() < 2, never


@pytest.mark.parametrize(("never", "attack"), params(SLOW_TEXTS))
def test_slow_texts(never: str, attack: tuple[Callable[[str], object], str, int]) -> None:
    read, unit, size = attack
    start = time.process_time()
    read(unit * (size // len(unit)))
    assert time.process_time() - start < 2, never


@pytest.mark.parametrize(("never", "attack"), params(DISGUISED))
def test_disguised(never: str, attack: tuple[str, str, str]) -> None:
    path, before, after = attack
    assert not same(before, after, path), never
    assert not same(after, before, path), never
