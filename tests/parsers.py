# ruff: noqa: E501 - texts to be repeated, one list a reader
"""Every reader of text that strangers, repositories, models or data sets write: what it raises, what is hard for it.

One registry for the benchmark (``python -m tests.bench parsers``) and the property tests.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bot.bouncers import linked
from bot.core import commands, config_file
from bot.core.markdown import clean, clean_line, code_span, fence
from bot.core.redaction import redact
from bot.errors import OperatorError
from bot.forge.github import webhook
from bot.forge.github.payloads import readable
from bot.models import conversation as replies
from bot.models.conversation import Unusable
from bot.prompts import untrusted
from bot.reproduce import console, junit, lexical, tracebacks
from bot.reproduce.examples import mentioned
from bot.reproduce.failure import Failure, signature
from bot.reproduce.java.language import Java
from bot.reproduce.language import DraftRejected
from bot.reproduce.match import match
from bot.reproduce.python import Python, draft
from bot.reproduce.report import facts, parse_report
from bot.review import diff, quotes
from bot.review.packing import pack
from evaluation.bloom.masking import mask_report, patched_methods
from evaluation.bouncerbench.leaderboard import read_config
from evaluation.bouncerbench.tasks import input_task
from evaluation.brt.cases import read_candidates, read_cases
from evaluation.crbench.golden import read_golden
from evaluation.crbench.task import read_tasks
from evaluation.dataset import read_rows

#: A text as it grows: what stands before, what is repeated, what stands behind.
Growing = tuple[str, str, str]


@dataclass(frozen=True)
class Parser:
    """A reader, the errors that it is documented to raise, and the texts that could be hard for it."""

    name: str
    read: Callable[[str], object]
    raises: tuple[type[Exception], ...] = ()
    hard: tuple[Growing, ...] = ()
    words: tuple[str, ...] = ()
    limit: int = 64_000
    """Characters that are worth measuring: readers with a cap of their own refuse more."""

    def texts(self, size: int) -> Iterator[tuple[str, str]]:
        """What is repeated, and a text of about ``size`` characters of it."""
        for start, unit, end in (*(("", unit, "") for unit in COMMON), *self.hard):
            yield f"{start}{unit}{end}"[:40], start + unit * max(1, size // len(unit)) + end

    def random(self, dice: random.Random) -> str:
        """A short text of this reader's own words and some of everybody's."""
        words = (*self.words * 4, *(unit for each in self.hard for unit in each), *COMMON)
        return "".join(dice.choice(words) for _ in range(dice.randrange(24)))


#: Repeated for every reader.
COMMON = (
    "a", " ", "\n", "\t", "\r", "\0", "\ud800", "\u200b", "\u2028", "é", "\U0001f600", "`", "``` \n", "~~~\n", "\\", "'",
    '"', "(", "[", "{", "<", ">", "<a ", "<!--", "</", "&", "&#x", "|", "> ", "- ", "* ", "#", "#1 ", "@a ", "//", "../",
    "a.", "a(", "a_", "aA", "A ", "0", "1.", "0x", "-", "=", "_", ":", ": ", "a: ", "a=", ",", ";", "/a", "http://a/",
    "![](", "](", "*a", "a b ", "ab\n", "\n\n", " \n", "  a\n", "E ", "at ", "1 is 1 ", "fix ", "{}", "[]", "a\\", '\\"',
)  # fmt: skip


def _diff(text: str) -> object:
    parsed = diff.parse(text)
    for file in parsed.files[:20]:
        quotes.Index(file).find("a b")
    return pack(parsed, 24_000, 4, ("*.lock", "**/gen/*")), parsed


def _glob(text: str) -> object:
    config, problems = config_file.load(f"review: {{ignore: [{text!r}]}}\npulls: {{branches: [{text!r}]}}")
    path = "a" * 250 + "/b"
    header = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
    pack(diff.parse(header), 24_000, 4, config.review.ignore)
    return config, problems


def _event(text: str) -> object:
    payload = webhook.load(text.encode("utf-8", "surrogatepass"), "application/json")
    for name in ("issues", "issue_comment", "pull_request", "check_run", "installation"):
        webhook.parse(name, payload)
    return payload


def _file(read: Callable[[str], object], suffix: str = ".jsonl") -> Callable[[str], object]:
    """A reader of files as one of texts."""

    def stored(text: str) -> object:
        with tempfile.NamedTemporaryFile(suffix=suffix) as file:
            Path(file.name).write_bytes(text.encode("utf-8", "surrogatepass"))
            return read(file.name)

    return stored


def _golden(source: str) -> object:
    return [list(read_golden(read_rows(source), kind, defects_only=False)) for kind in ("aacr", "martian")]


def _tracebacks(text: str) -> object:
    return (
        tracebacks.split_exception(text),
        tracebacks.shown_exception(text),
        tracebacks.last_frame(text),
        tracebacks.raised(text),
    )


def _matched(text: str) -> object:
    return match(Failure(exception_type="AssertionError", message=text), facts(parse_report(text)))


_HUNK = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n"
_RULER = "=" * 70

# fmt: off
PARSERS: tuple[Parser, ...] = (
    Parser(
        "commands",
        commands.read,
        hard=tuple(
            ("/bouncer recheck\n" if not end else "", unit, end or "\n\n/bouncer recheck")
            for unit in ("`", "`a``", "<!--", "<pre>\n\n", "> ", "- ", "[a](", "\\`", "/bouncer help\n", "1. ", "a\n===\n")
            for end in ("", "\n/bouncer accept\n")
        ),
        words=(
            "/bouncer ", "recheck", "verify --run ", "abcdef1", "\n", "<pre>", "</pre>", "<!--", "-->", "```\n",
        ),
    ),
    Parser(
        "configuration",
        config_file.load,
        hard=(
            ("", "[", ""), ("", "{a: ", ""), ("", "- ", ""), ("", "a: &a\n", ""), ("", "a: *a\n", ""),
            ("", "? ", ""), ("triage: {mode: !!bool ", "x", "}"), ("a: ", "!!str ", "x"), ("", "a: b\n", ""),
            ("triage: ", "!!map {", ""),
        ),
        words=(
            "triage:", "\n  ", "mode: ", "off", "!!bool ", "!!python/object:a ", "&a ", "*a", "[", "]", "{", "}",
            "? ", "review: {ignore: [", "]}", "\n", "1", "<<: ", "!!binary ", "!!timestamp ", "!!int ", "!!set ",
            "- ",
        ),
        limit=64_000,
    ),
    Parser(
        "globs",
        _glob,
        hard=(
            ("", "*a", "b"), ("", "**/", "b"), ("", "[!a", "]"), ("", "?*", "b"), ("", "[a-", "]"),
            ("!", "*/", "b"),
        ),
        words=("*", "**", "/", "a", "[", "]", "!", "?", "-", "\\", "#"),
        limit=4_000,
    ),
    Parser(
        "diffs",
        _diff,
        hard=(
            ("diff --git a/", "b ", ""),
            ("diff --git ", '"a', ""),
            ("diff --git ", '"\\', ""),
            (_HUNK, "+a b\n", ""),
            ("", "diff --git a/x b/x\n", ""),
            ("", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+a b\n", ""),
            ("--- a\n+++ b\n", "@@ -1 +1 @@\n", ""),
            (_HUNK, "-a\n", ""),
            ("", "--- a\n", ""),
            ("", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", ""),
            (_HUNK, "\\ No newline at end of file\n", ""),
            ("diff --git a/x b/x\n", "rename from a\n", ""),
            ("--- a/x\n+++ b/x\n@@ -1,99999 +1,99999 @@\n", " a b\n", ""),
            ("--- a/x\n+++ b/x\n@@ -0,0 +1,99999 @@\n", "+a b", "\n"),
        ),
        words=(
            "diff --git a/x b/x\n", "--- a/x\n", "+++ b/x\n", "@@ -1 +1 @@\n", "@@ -1,2 +1,3 @@ def f\n", "+", "-",
            " ", "\n", '"a\\303"', "rename to y\n", "Binary files a and b differ\n", "/dev/null",
            "new file mode 100644\n",
        ),
    ),
    Parser(
        "reports",
        lambda text: facts(parse_report(text)),
        hard=(
            ("", "a.", ""), ("", "a(b", ""), ("", "f(a)(", ""), ("", "f((a)", ""), ("", "aError.", ""),
            ("x\n", "```\n", ""), ("<p>", "<pre>", ""), ("<p>", "<a href=", ""), ("<p>", "&#", ""),
            ("<p>", "<!--", ""), ("<p>", "<ul><li>", ""), ("<p>", "```", ""), ("x\n", "```a\n~~~\n", ""),
            ("", "A_", ""), ("", "Aa", ""), ("<p>", "<![CDATA[", ""), ("<p>", "<?", ""), ("<p>", "</", ""),
            ("<p>", "<a b='", ""), ("<p>", "<script>", ""), ("", "\n at a", ""), ("", "f(g(a),", ""),
            ("`", "f(x", "`"), ("`", "a(b(c)", "`"), ("```\n", "f(g()h", "\n```"), ("```\n", "a(", "\n```"),
            ("```\n", "a", "("), ("<p>", "<", ""), ("<p>", "<a", ""), ("<p>", "<a/", ""), ("<p>", "<!", ""),
            ("<p>", "<pre>a</pre>", ""), ("<p>", "<textarea>", ""),
        ),
        words=(
            "```\n", "<pre>", "</pre>", "ValueError", "Traceback (most recent call last)\n", "f(1, 2)", "a.b.C",
            "<p>",
        ),
    ),
    Parser(
        "JUnit reports",
        junit.parse,
        raises=(junit.MalformedReport,),
        hard=(
            ("<t>", "<testcase/>", "</t>"), ("<t>", "<testcase><failure message='assert a'/></testcase>", "</t>"),
            ("<t><testcase><failure>", "a.py:1: \n", "</failure></testcase></t>"), ("", "<a>", ""),
            ("<a ", "b='' ", ">"),
            ("<t><testcase><error message='failed on setup with &quot;", "a ", "&quot;'/></testcase></t>"),
            ("<!DOCTYPE a [", "<!ENTITY a 'b'>", "]><a/>"),
            ("<t><testcase><failure>", "&lt;", "</failure></testcase></t>"),
            ("<t><testcase><failure>", "E a:", "</failure></testcase></t>"), ("<t><!--", "-", "--></t>"),
            ("<t><testcase time='", "1", "'/></t>"),
            ("<t><testcase><failure>", "a ", "\n\n\n</failure></testcase></t>"),
        ),
        words=(
            "<testsuite>", "<testcase name='a' file='b.py' time='1'>", "<failure message='ValueError: x'>",
            "</failure>", "</testcase>", "</testsuite>", "<!DOCTYPE a>", "&lt;", "<error/>", "<skipped/>",
            "<![CDATA[", "]]>", "<?xml version='1.0'?>",
        ),
    ),
    Parser(
        "test runners' output",
        lambda text: (console.read(text, 0), console.read(text, 1)),
        hard=(
            (f"{_RULER}\nFAIL: a\n", f"{_RULER}\n", ""), ("", f"{_RULER}\nFAIL: ", ""),
            ("", f"{_RULER}\nERROR: a\n", ""), ("", "=== test session starts ===\n", ""),
            ("", "=== a in 1s ", "\n"), ("", "=", "\n"), ("", "= a in 1", "\n"),
            (f"{_RULER}\nFAIL: a\n", "-" * 70 + "\nRan 1", ""), ("OK (", "skipped=", ""),
            ("Ran 1 test in ", "OK (a\n", ""), ("", "ERROR: ", ""), ("", "Ran 1 tests in", ""),
            ("=", " ", "in 1s ="), ("= ", "a in 1", " ="), ("", "OK (", ""),
        ),
        words=(
            f"{_RULER}\n", "FAIL: test_a (b.C)\n", "-" * 70 + "\n", "Ran 2 tests in 1s\n", "OK (skipped=2)\n",
            "NO TESTS RAN", "Traceback (most recent call last):\n", "ValueError: x\n",
            "=== test session starts ===\n", "=== 1 passed in 0.1s ===\n",
        ),
    ),
    Parser(
        "tracebacks",
        _tracebacks,
        hard=(
            ("", "a.py:1:", ""), ("", "a:1: ", ""), ("E ", "a.", ":"), ("", ' File "', ""), ("", "E   a", "\n"),
            ("a", " ", "x"), ("", "a:1: in ", ""), ("", "Traceback (most recent call last):\n", ""),
            ("a:1: ", "\n", "x"), ("a:1: ", " \n", "x"), ("Traceback (most recent call last):\n", "a.b\n", ""),
            ("Traceback (most recent call last):\n", "a: b\n", ""), ("", "a:1: \n", "x"), ("", 'E \tFile "a', ""),
            ("", "\t", 'File "a", line 1'), ("", "\n\t", "a"), ("E", "\t", ""),
        ),
        words=("a.py:1: in f\n", '  File "a.py", line 3, in f\n', "ValueError: x\n", "E   KeyError: 1\n"),
    ),
    Parser(
        "failures",
        lambda text: signature(Failure(exception_type=text[:200], message=text)),
        hard=(
            ("/", "a/", " "), ("/tmp", "/a", " "), ("C:", "\\a", " "), ("", "C:\\a ", ""), ("", "1.", "s"),
            ("", "1", " seconds"), ("", "a1e", ""), ("", "a" * 8 + "-", ""), ("", "\x1b[", ""), ("", "0xabcd", ""),
            ("", "/a-", ""), ("", "a\\", ""), ("", "/tmp/", ""), ("", "/var/tmp", ""), ("", "x@", ""),
            ("", "x@abcde", ""), ("", "pid ", ""), ("", "pid=", "1"), ("", "1 ", "s"), ("C:\\", " ", ""),
            ("C:\\", "a b", ""), ("", "abcdef01", ""), ("pid", " ", "x"), ("pid ", ":", ""),
        ),
        words=("/tmp/a/b", "0x7f00aa", "line 3", "12 seconds", "C:\\a\\b.txt", "pid 3", "localhost:80"),
    ),
    Parser(
        "failures held against reports",
        _matched,
        hard=(
            ("", "a == ", ""), ("", "ab < cd ", ""), ("", "'ab", ""), ("", "<ab", ""), ("", "'ab' ", ""),
            ("", "12 ", ""), ("", "-1", ""), ("assert ", "a in ", ""), ("", "ab is not cd\n", ""), ("", "1e", ""),
            ("", "aaaaaaaaaaaaError ", ""), ("", "assert ab == cd\n", ""),
        ),
        words=("assert 1 == 2", "'abc'", "ValueError", " is not ", " in ", "3.14", "<object>"),
        limit=16_000,
    ),
    Parser("words", lexical.words, words=("aB", "a_b", "HTTPServer")),
    Parser(
        "drafts",
        lambda text: draft.take_apart(draft.code_of(text)),
        raises=(DraftRejected,),
        hard=(
            ("def test_a(): x = ", "(", ""), ("def test_a(): x = ", "-", "1"), ("def test_a(): x = ", "a.", "b"),
            ("", "if a:\n", ""), ("def test_a():\n x = ", "[", ""), ("def test_a():\n x = 1", " + 1", "\n"),
            ("", "def test_a(): pass\n", ""), ("", "import a\n", ""), ("", "class A:\n", ""),
            ("", "```python\n", ""), ("def test_a(): x = ", "a(", ""), ("def test_a(): x", " = x", "\n"),
            ("def test_a(): return ", "not ", "1\n"), ("", "a = 1\n", "def test_a(): pass\n"),
            ("def test_a(): x = ", "lambda: ", "1\n"), ("def test_a(): x", "[0]", "\n"),
            ("def test_a(): x", "()", "\n"), ("def test_a(): x = ", "1 if a else ", "1\n"),
            ("def test_a(): x = f'", "{a}", "'\n"), ("def test_a():\n x = '", "a", "'"),
        ),
        words=(
            "def test_a():\n", "    assert f(1) == 2\n", "import a\n", "from b import *\n", "```python\n", "```\n",
            "class T:\n", "  def test_b(self):\n", "    pass\n", "@fixture\n", "print(1)\n",
        ),
        limit=16_000,
    ),
    Parser(
        "models' replies",
        replies.extract,
        raises=(Unusable,),
        hard=(
            ("", '{"a": ', ""), ("", "[", ""), ('{"a": [', "[", ""), ("", "{} ", ""), ("<think>", "<think>", ""),
            ("", "```json\n", ""), ("", "```json\n{\n", "\n```\n"), ('{"a": "', "\\u", '"}'), ('{"a": ', "1", "}"),
            ("{", '"a": 1, ', '"b": 2}'), ("{}", "{", ""), ("{}", "{[", ""), ("", "\n ```", ""),
            ("", " ```\n", ""), ("a", '{"a":1}', ""), ('{"a":"', "\\ud800", '"}'),
        ),
        words=(
            '{"label": "VAGUE"}', "{", "}", '"a"', ": ", "```json\n", "```", "<think>", "</think>", "NaN", "1e999",
            "[", "]",
        ),
        limit=100_000,
    ),
    Parser(
        "closing words",
        lambda text: linked.closing_links(text, "a/b", "https://github.com"),
        hard=(
            ("", "fixes ", ""), ("fixes", " ", "#1"), ("", "fixes a/", ""), ("", "fixes http://", ""),
            ("", "`", "a"), ("", "`a``", ""), ("", "```\n", ""), ("", "<!--", ""), ("", "~~~\n```\n", ""),
            ("", "fixes a-", ""), ("fixes a/", "b.", ""), ("fixes ", "a-", ""), ("", "``a", ""), ("", "`\n", ""),
            ("", "`a", ""), ("", "a`b``c", ""), ("", "fix:", ""), ("fix:", " ", "x"),
        ),
        words=("fixes #1 ", "closes a/b#2", "```\n", "<!--", "-->", "https://github.com/a/b/issues/3"),
    ),
    Parser(
        "prompts' fences",
        untrusted,
        hard=(("", "<|a", ""), ("", "<|a|>", ""), ("", "<|", "|>"), ("<|", "a", "")),
        words=("<|im_end|>",),
    ),
    Parser(
        "webhooks",
        _event,
        raises=(webhook.MalformedDelivery,),
        hard=(
            ("", "[", ""), ("", '{"a":', ""), ("{", '"a":1,', '"b":1}'), ('{"a":', "1", "}"),
            ('{"a":"', "\\u0000", '"}'), ('{"action":"opened","a":"', "\\ud800", '"}'),
        ),
        words=(
            '{"action": "opened", ', '"issue": {', '"number": 1', '"body": null', "}", ", ",
            '"repository": {"full_name": "a/b"}', '"sender": {"id": 1}', "[", "]", '"\\ud800"', "1e400",
            "99999999999999999999999",
        ),
    ),
    Parser(
        "GitHub's answers", readable, raises=(ValueError, RecursionError), hard=(("", "[", ""), ("", '{"a":', ""))
    ),
    Parser(
        "tasks of a benchmark",
        _file(lambda source: [input_task(row) for row in read_rows(source)]),
        raises=(OperatorError, ValidationError),
        hard=(
            ("", "{}\n", ""), ("", '{"a":', ""), ('{"instance_id": "a__b-1", "problem_statement": "', "a ", '"}'),
            ("", "[", ""),
        ),
        words=('{"instance_id": "a__b-1", ', '"problem_statement": "x"', "}", "\n", '"full_score": 2', ", "),
    ),
    Parser(
        "tables of a benchmark",
        _file(lambda source: list(read_rows(source)), ".csv"),
        raises=(OperatorError, ValidationError),
        hard=(("a,b\n", '"', ""), ("a\n", "1\n", "")),
        words=('"', ","),
    ),
    Parser(
        "cases and candidates of BRT",
        _file(lambda source: (list(read_candidates(source)), read_cases(source))),
        raises=(OperatorError, ValidationError),
        hard=(("", '{"instance_id": "a"}\n', ""), ('{"instance_id": "a", "candidate_id": "b", "code": "', "a ", '"}')),
        words=('{"instance_id": "a", ', '"candidate_id": "b"', '"code": "x"', '"bug_id": "a"', "}", "\n", ", "),
    ),
    Parser(
        "reviewers' remarks",
        _file(_golden),
        raises=(OperatorError, ValidationError),
        hard=(("", '{"url": "https://github.com/a/b/pull/1", "comments": []}\n', ""), ('{"url": "', "a/", '"}')),
        words=('{"url": "https://github.com/a/b/pull/1"', '"comments": [{"comment": "x", "severity": "y"}]', "}", ", "),
    ),
    Parser(
        "tasks of reviews",
        _file(lambda source: list(read_tasks(source))),
        raises=(OperatorError, ValidationError),
        hard=(("", '{"instance_id": "a"}\n', ""), ('{"instance_id": "a", "pull": ', "[", "")),
        words=('{"instance_id": "a"', '"kept": true', '"bugs": [{}]', '"pull": {}', "}", ", ", "\n"),
    ),
    Parser(
        "submissions to the leaderboard",
        _file(lambda source: read_config(Path(source)), ".yaml"),
        raises=(OperatorError,),
        hard=(("", "[", ""), ("", "{a: ", ""), ("a: ", "!!str ", "x"), ("", "a: &a\n", ""), ("entries: ", "- ", "x")),
        words=("name: ", "a\n", "entries:\n", "  input: b.json\n", "&a ", "*a", "<<: ", "!!int ", "!!timestamp ", "{", "}"),
        limit=32_000,
    ),
    Parser(
        "code whose names are masked",
        lambda text: (patched_methods({"a.py": text}, {"a.py": "def f(): pass\n" + text}), mask_report(text, {"f": "g"})),
        hard=(("", "def f(): pass\n", ""), ("", "class A:\n", ""), ("def f():\n x = ", "f(", ""), ("", "f.", "")),
        words=("def f():\n", " return 1\n", "class A:\n", " def g(self): pass\n", "f()", "`f`"),
        limit=16_000,
    ),
    Parser(
        "secrets",
        redact,
        hard=(
            ("", "-----BEGIN PRIVATE KEY-----\n", ""), ("-----BEGIN PRIVATE KEY-----\n", "A\n", ""),
            ("", "token-", ""), ("", "://a:", ""), ("://a:", "b", ""), ("", "://a:b@", ""), ("", "eyJaaaaaaaaaa.", ""),
            ("", "secret=", ""), ("secret=", "a1", " "), ("", "api_key", ""), ("", "sk-", ""), ("", "secret= bearer ", ""),
        ),
        words=("sk-aaaaaaaaaaaaaaaaaaaa", "token: ", "-----END PRIVATE KEY-----", "ghp_", "AKIA", "://u:p@h"),
    ),
    Parser(
        "Markdown to be posted",
        lambda text: (clean(text, host="ghe.example", limit=len(text)), clean_line(text), code_span(text), fence(text)),
        hard=(
            ("", "![a](", ""), ("", "[a](", ""), ("", "*a_", ""), ("", "`a``", ""), ("", "  - a\n", ""), ("", "![", ""),
            ("", "> 1. ", ""), ("", "\n\n- a", ""), ("", "<!-- bouncer", ""), ("", "www.a", ""), ("", "a@b:", ""),
        ),
        words=("https://ghe.example/a ", "@a", "#1", "```suggestion\n", "<!-- bouncer", "fixes ", "~~", "**", "$a$", "\n"),
        limit=32_000,
    ),
    Parser(
        "Java drafts",
        Java().syntax,
        raises=(DraftRejected,),
        hard=(
            ("class A {", "void testA() {}", "}"), ("void testA() { x(", "(", ""), ("", "class A {", ""), ("", "import a;\n", ""),
            ("@Test void a() { x = ", "-", "1; }"), ("@Test void a() { x", ".a()", "; }"), ("", "@A ", ""), ("", "```java\n", ""),
            ("@Test void a() { if (a) ", "{", ""), ("@Test void a() { x = ", "() -> ", "1; }"), ("", "/*", ""), ("A", "<A", "> a;"),
        ),
        words=("@Test ", "void testA() {", "assertEquals(1, f());", "}", "class A {", "import a.B;\n", "```java\n", "```\n"),
        limit=16_000,
    ),
    Parser(
        "tests that name issues",
        lambda text: mentioned({"test_a.py": text}, Python()),
        hard=(("", "def test_1(): pass  # issue 1\n", ""), ("", "#1 ", ""), ("", "issue ", ""), ("", "class T:\n def test_1(self): pass\n", "")),
        words=("def test_a():\n", "    # issue 12\n", "    pass\n", "class T:\n", "#12"),
        limit=32_000,
    ),
)
# fmt: on
