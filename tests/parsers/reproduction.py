# ruff: noqa: E501 - lists of texts
"""Parsers of reports, of drafted tests, and of their output."""

from __future__ import annotations

from bot.reproduction import console, junit, lexical
from bot.reproduction.examples import find_mentions
from bot.reproduction.java.language import Java
from bot.reproduction.language import DraftRejected
from bot.reproduction.protocol import TestOutcome
from bot.reproduction.python import draft
from bot.reproduction.python.language import Python
from bot.reproduction.report import facts, parse_report
from bot.reproduction.select import match, signature
from tests.parsers.parser import Parser


def _tracebacks(text: str) -> object:
    return (
        console.split_exception(text),
        console.shown_exception(text),
        console.last_frame(text),
        console.raised(text),
    )


def _matched(text: str) -> object:
    return match(
        TestOutcome(status="failed", exception_type="AssertionError", message=text), facts(parse_report(text))
    )


_RULER = "=" * 70

# fmt: off
PARSERS: tuple[Parser, ...] = (
    Parser(
        "reports",
        lambda text: facts(parse_report(text)),
        hard=(
            ("", "a.", ""), ("", "a(b", ""), ("", "f(a)(", ""), ("", "f((a)", ""), ("", "aError.", ""),
            ("x\n", "```\n", ""), ("<p>", "<pre>", ""), ("<p>", "<a href=", ""), ("<p>", "&#", ""),
            ("<p>", "<!--", ""), ("<p>", "<ul><li>", ""), ("<p>", "```", ""), ("x\n", "```a\n~~~\n", ""),
            ("", "A_", ""), ("", "Aa", ""), ("<p>", "<![CDATA[", ""), ("<p>", "<?", ""), ("<p>", "</", ""),
            ("", "a/blob/", ""), ("/blob/a/", "a", ""), ("<p>", "<a b='", ""), ("<p>", "<script>", ""), ("", "\n at a", ""), ("", "f(g(a),", ""),
            ("`", "f(x", "`"), ("`", "a(b(c)", "`"), ("```\n", "f(g()h", "\n```"), ("```\n", "a(", "\n```"),
            ("```\n", "a", "("), ("<p>", "<", ""), ("<p>", "<a", ""), ("<p>", "<a/", ""), ("<p>", "<!", ""),
            ("<p>", "<pre>a</pre>", ""), ("<p>", "<textarea>", ""),
            # What is left around an instruction would begin a declaration.
            ("<p>", "<<?a>![(", ""),
        ),
        words=(
            "```\n", "<pre>", "</pre>", "ValueError", "Traceback (most recent call last)\n", "f(1, 2)", "a.b.C",
            "<p>",
        ),
        samples=(
            "Title\n\nIt fails:\n```python\n>>> f(1, g(2))\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: bad\n```\nIn `a.b.C` 1.2.\n",
            "<p>It <b>fails</b>:</p><pre><code class='x'>f(1)\nKeyError: 1</code></pre><ul><li>a &amp; b</li></ul>",
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
        samples=(
            "<?xml version='1.0'?><testsuites><testsuite name='p' tests='2'><testcase classname='a.b' name='test_c' file='a/b.py' line='3' time='0.01'><failure message='ValueError: x'>a/b.py:5: ValueError\nE   x</failure></testcase><testcase name='d'><skipped message='no'/></testcase></testsuite></testsuites>",
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
        samples=(
            f"F.\n{_RULER}\nFAIL: test_a (b.C.test_a)\n{'-' * 70}\nTraceback (most recent call last):\n  File 'a', line 1, in f\nAssertionError: 1 != 2\n\n{'-' * 70}\nRan 2 tests in 0.001s\n\nFAILED (failures=1, skipped=2)\n",
            "=== test session starts ===\ncollected 2 items\n\na.py F.\n=== FAILURES ===\n___ test_a ___\nE   ValueError: x\na.py:3: ValueError\n=== 1 failed, 1 passed in 0.12s ===\n",
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
        samples=(
            "Traceback (most recent call last):\n  File \"a/b.py\", line 3, in f\n    g(1)\n  File \"c.py\", line 4, in g\na.b.CError: said\n\nThe above exception was the direct cause\n\nE   KeyError: 1\na.py:1: in f\n",
        ),
    ),
    Parser(
        "failures",
        lambda text: signature(TestOutcome(status="failed", exception_type=text[:200], message=text)),
        hard=(
            ("/", "a/", " "), ("/tmp", "/a", " "), ("C:", "\\a", " "), ("", "C:\\a ", ""), ("", "1.", "s"),
            ("", "1", " seconds"), ("", "a1e", ""), ("", "a" * 8 + "-", ""), ("", "\x1b[", ""), ("", "0xabcd", ""),
            ("", "/a-", ""), ("", "a\\", ""), ("", "/tmp/", ""), ("", "/var/tmp", ""), ("", "x@", ""),
            ("", "x@abcde", ""), ("", "pid ", ""), ("", "pid=", "1"), ("", "1 ", "s"), ("C:\\", " ", ""),
            ("C:\\", "a b", ""), ("", "abcdef01", ""), ("pid", " ", "x"), ("pid ", ":", ""),
        ),
        words=("/tmp/a/b", "0x7f00aa", "line 3", "12 seconds", "C:\\a\\b.txt", "pid 3", "localhost:80"),
        samples=(
            "at /tmp/x/a-1.py line 3 in 0x7f00aa, pid 12, 1.5 seconds, C:\\a b\\c.txt, localhost:8080, 123e4567-e89b-12d3 x@abcdef0",
        ),
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
        samples=(
            "assert 3.14 == f('ab') is not <object at 0x1>\n  where 'ab' in [1, 2]",
        ),
    ),
    Parser("words", lexical.words, words=("aB", "a_b", "HTTPServer"), samples=("parseHTTPReply_of a.b_C3(x)",)),
    Parser(
        "drafts",
        draft.take_apart,
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
        samples=(
            "```python\nimport a\nfrom b import c as d\n\nclass TestX:\n    def test_y(self):\n        with c(1) as e:\n            assert e[0] == 'f', d\n\n@a.mark.skip\ndef test_z(x=1, *y):\n    assert not x or (lambda: y)\n```\n",
        ),
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
        samples=(
            "```java\nimport org.junit.Test;\n\npublic class ATest {\n  @Test(expected = E.class)\n  public void testA() throws Exception {\n    List<A> x = new B<>(\"c\") {};\n    assertEquals(1, x.get(0).f());\n  }\n}\n```\n",
        ),
    ),
    Parser(
        "tests that name issues",
        lambda text: find_mentions({"test_a.py": text}, Python()),
        hard=(("", "def test_1(): pass  # issue 1\n", ""), ("", "#1 ", ""), ("", "issue ", ""), ("", "class T:\n def test_1(self): pass\n", "")),
        words=("def test_a():\n", "    # issue 12\n", "    pass\n", "class T:\n", "#12"),
        limit=32_000,
        samples=(
            "import a\n\nclass TestX:\n    def test_12(self):\n        # issue 12, see https://github.com/a/b/issues/34\n        assert a  # GH-56\n\ndef test_b():\n    '''Regression for #78.'''\n",
        ),
    ),
)
