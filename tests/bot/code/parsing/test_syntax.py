"""Lines of functions and classes, and equality of code, in six languages and in hostile files."""

from __future__ import annotations

import ast
import inspect
import resource
import textwrap
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.code.parsing import grammars, parser_process, trees
from bot.code.parsing.definitions import Local, enclosing
from bot.code.parsing.parser_process import NotParsed, parse_apart
from bot.code.parsing.syntax import definitions, outline
from bot.features.review import meaning

PYTHON = """\
class A:
    @property
    def f(self):
        return 1


def g():
    pass
"""
JAVASCRIPT = """\
export const f = (a) => {
  return a;
};
class A {
  m(x) {
    return x;
  }
}
module.exports.g = function () {
};
"""
TYPESCRIPT = """\
interface I {
  x: number;
}
function f<T>(a: T): T {
  return a;
}
"""
GO = """\
package a

func (s *S) M() int {
\treturn 1
}

type S struct {
\ta int
}
"""
JAVA = """\
class A {
  int f(int x) {
    return 1;
  }
  A() {}
}
"""
RUST = """\
impl Foo for Bar<T> {
    fn x(&self) -> u8 {
        1
    }
}
"""
C = """\
struct s {
    int a;
};
static char *f(struct s *p)
{
    return g(p);
}
#define M(x) (x)
"""
SAMPLES = {
    "a.py": (PYTHON, {"A": (1, 4), "A.f": (2, 4), "g": (7, 8)}),
    "a.js": (JAVASCRIPT, {"f": (1, 3), "A": (4, 8), "A.m": (5, 7), "g": (9, 10)}),
    "a.ts": (TYPESCRIPT, {"I": (1, 3), "f": (4, 6)}),
    "a.tsx": ("function App() {\n  return <b>hi</b>;\n}\n", {"App": (1, 3)}),
    "a.go": (GO, {"S.M": (3, 5), "S": (7, 9)}),
    "A.java": (JAVA, {"A": (1, 6), "A.f": (2, 4), "A.A": (5, 5)}),
    "a.rs": (RUST, {"Bar": (1, 5), "Bar.x": (2, 4)}),
    "a.c": (C, {"s": (1, 3), "f": (4, 7), "M": (8, 8)}),
}


@pytest.mark.parametrize("path", SAMPLES)
def test_definitions_are_found_with_their_lines(path: str) -> None:
    text, expected = SAMPLES[path]
    assert {
        definition.qualified: (definition.first, definition.last) for definition in definitions(text, path)
    } == expected


def test_an_anonymous_function_is_named_after_the_call_that_takes_it() -> None:
    text = "describe('app', () => {\n  it('works', async () => {\n    run();\n  });\n});\n"
    outline = definitions(text, "app.test.ts")
    within = enclosing(outline, 3, 3)
    assert within is not None
    assert (within.qualified, within.first, within.last) == ("it('works', async () => {", 2, 4)
    macro = definitions("rgtest!(finds, |dir: Dir| {\n    a();\n});\n", "a.rs")
    assert [definition.qualified for definition in macro] == ["rgtest!(finds, |dir: Dir| {"]
    inside = definitions("function f() {\n  a.map((b) => {\n    c();\n  });\n}\n", "a.js")
    outer = enclosing(inside, 3, 3)
    assert outer is not None
    assert outer.qualified == "f", "a function with a name says more"


def test_the_innermost_function_is_around_a_line_else_its_class() -> None:
    outline = definitions(SAMPLES["a.py"][0], "a.py")
    assert [enclosing(outline, line, line) for line in (4, 1, 6)] == [outline[1], outline[0], None]
    # Lines of two functions have only the class in common.
    assert enclosing(outline, 1, 4) == outline[0]


def test_python_agrees_with_pythons_own_parser() -> None:
    text = inspect.getsource(textwrap) + inspect.getsource(ast)
    theirs = {
        (node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])): node.end_lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    ours = {(definition.name, definition.first): definition.last for definition in definitions(text, "x.py")}
    assert ours.keys() == theirs.keys()
    # Comments at the end of a body belong to it; Python's parser does not see them.
    lines = text.split("\n")
    assert all(not line.strip() or line.strip()[0] == "#" for at in ours for line in lines[theirs[at] : ours[at]])


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", "x = [1,2]  # two\n", "x = [\n    1,\n    2,\n]  # two\n"),
        ("a.py", "def f():\n  # one\n  a\n", "def f():\n    # one\n    a\n"),
        ("a.py", "x = 'a'\n", 'x = "a"\n'),
        ("a.js", "f( 'a' ) // call\n", 'f("a") // call\n'),
        ("a.go", "package a\nvar x   = 1 // one\n", "package a\n\nvar x = 1 // one\n"),
        ("A.java", "class A { /* a\n b */ int f() { } }", "class A {\n  /* a\n  b */\n  int f() {\n  }\n}"),
        ("a.c", "int  main ( ) { return 0 ; }", "int main (  ) { return 0 ; }"),
        ("a.c", "if (a) {\n  b;\n}\n", "if (a) {\n    b;\n}\n"),
    ],
)  # fmt: skip
def test_layout_and_quotes_change_nothing(path: str, before: str, after: str) -> None:
    assert meaning.same(before, after, path)


#: More code that is disguised as layout is in tests/attacks/test_code.py.
_CGO = 'package a\n\n// #define N 1\nimport "C"\n\nvar x = 1\n'


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", "if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n"),
        ("a.py", 'x = "a b"\n', 'x = "a  b"\n'),
        ("a.py", "def f(:\n", "def  f(:\n"),  # what does not parse is not judged
        ("a.js", "f('it\\'s')", 'f("it\\\'s")'),
        ("a.js", "return a + b", "return a - b"),
        ("a.yml", "a:\n  b: 1\n", "a:\n b: 1\n"),
        ("Makefile", "a:\n\tb\n", "a:\n  b\n"),
        ("a.c", 's = "a  b";', 's = "a b";'),
        ("a.js", "f(1);" * 90_000 + "a", "f(1);" * 90_000 + "b"),  # behind more than is looked at
        ("a.c", "#define A b\nc", "#define A\nb c"),
        # A comment is shown: a tool may read it.
        ("a.py", "x = 1  # noqa\ny = 2\n", "x = 1\ny = 2  # noqa\n"),
        ("a.py", "x = 1\n# noqa\n", "x = 1  # noqa\n"),
        ("a.js", "f() // call\n", "f()\n"),
        ("a.rs", "/// one\nfn f() {}", "/// two\nfn f() {}"),
        # Comments that a compiler runs.
        ("a.go", _CGO, _CGO.replace("x =", "x  =")),
        ("A.java", "class A { // a\\u000a int y;\n int x; }", "class A { // a\\u000a int y;\n  int x; }"),
        ("a.c", "int main()\n{ }", "int main() { }"),
        ("a.c", "#define A \\\nb\n", "#define A \\ \nb\n"),
        ("a.php", "<?php $a = <<<A\nb c\nA;", "<?php $a = <<<A\nb  c\nA;"),
        # Line breaks that count.
        ("a.js", "async function f() {}", "async\nfunction f() {}"),
        ("a.js", "a\n++b", "a++\nb"),
    ],
)
def test_differences_that_may_matter_are_kept(path: str, before: str, after: str) -> None:
    assert not meaning.same(before, after, path)


HOSTILE = {
    "brackets": "(" * 10_000,
    "long line": "x = " + "a" * 999_000,
    "nested functions": "def f():\n" * 20_000,
    "nested classes": "class A{" * 20_000,
    "nested arrows": "(a=>" * 20_000,
    "nested objects": "{a:" * 100_000,  # overflows the parser's own stack
    "assignments": "a=" * 200_000 + "1",
    "unclosed calls": "f(" * 200 + "f(1);" * 50_000,
    "nul": "\0" * 1000 + "def f(): pass\n",
    "surrogates": "def f():\n    return '\ud800'\n",
    "too large": "x\n" * 1_000_000,
}
HARDEST = {"nested functions": ("a.py", "a.ts"), "unclosed calls": ("a.py",)}


def test_memory_of_parsed_files_is_freed() -> None:
    def parsed(size: int) -> int:
        texts = [f"x = {number}\n" * 2_000 for number in range(size)]
        tracemalloc.start()
        for text in texts:
            tree = trees.parse(text, "a.py")
            assert tree is not None
            assert tree.root_node.children[0].text
        del tree
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return used

    parsed(1)
    assert parsed(20) < 100_000  # one text is 12,000 bytes and more


@pytest.mark.parametrize(
    ("name", "path"),
    # Those that take as long as the limits allow are read in the languages that they are hardest in.
    [(name, path) for name in HOSTILE for path in HARDEST.get(name, ("a.py", "a.ts", "A.java"))],
)
def test_a_hostile_file_ends_without_an_error(name: str, path: str) -> None:
    definitions(HOSTILE[name], path)
    meaning.same(HOSTILE[name], HOSTILE[name] + " ", path)


def burn() -> int:
    """Take processor time without an end, as a parser does on some texts."""
    while True:
        pass


def wait() -> int:
    """Take no processor time, without an end."""
    time.sleep(10_000)
    return 0


def test_a_parser_that_does_not_end_is_ended() -> None:
    parser_process._pool.close()  # the time of a process counts when it has ended
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with pytest.raises(NotParsed):
        parse_apart(burn)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert 0.5 < seconds < 4  # one second, counted in whole ones, and the start of the process
    assert parse_apart(trees.fingerprint, "x = 1\n", "a.py"), "the next call has a process of its own"


def test_a_parser_that_waits_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_process, "DEADLINE_SECONDS", 0.5)
    with pytest.raises(NotParsed):
        parse_apart(wait)


def test_one_slow_file_delays_no_other() -> None:
    with ThreadPoolExecutor(3) as threads:
        slow = [threads.submit(definitions, "a<" * 20_000, "A.java") for _ in range(2)]
        start = time.monotonic()
        assert [definition.name for definition in threads.submit(definitions, PYTHON, "a.py").result()] == [
            "A",
            "f",
            "g",
        ]
        first = time.monotonic() - start
        assert [future.result() for future in slow] == [(), ()]
        assert first < time.monotonic() - start


@given(st.text(max_size=300), st.sampled_from(sorted(SAMPLES)))
def test_any_text_can_be_read(text: str, path: str) -> None:
    for definition in definitions(text, path):
        assert 1 <= definition.first <= definition.last
    assert meaning.same(text, text, path)


def test_an_unknown_language_has_no_definitions() -> None:
    assert grammars.grammar_of("a.cob") is None
    assert definitions("PROCEDURE DIVISION.", "a.cob") == ()


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.py", "def f(a, *b, c=d, e: E = g):\n    h, (i, *j) = k\n    l.m = n\n", "a b c e h i j"),
        ("a.py", "def f():\n    global a\n    a = 1\n    with b() as c, d:\n        e[0] = 1\n", "c"),
        ("a.py", "a = [b for b in c if (d := b)]\nclass E:\n    f = 1\n", "b"),
        ("a.py", "def f():\n    for a, b in c:\n        pass\n    d += lambda e, g=h: e\n", "a b d e g"),
        ("a.ts", "function f(a: A, { b, c: d = e, ...g }: H, [i] = j) {}\n", "a b d g i"),
        ("a.js", "const a = 1\nfor (const b of c) { let { d } = e }\ntry {} catch (g) {}\nh(i => i)\n", "b d g i"),
        ("a.go", "package a\nfunc (a *A) F(b, c int) (d error) {\n\te, f := g()\n\th.i = 1\n}\n", "a b c d e f"),
        ("a.go", "package a\nvar a = 1\nfunc F() {\n\tswitch b := c.(type) {}\n\tfor d := range e {}\n}\n", "b d"),
        ("A.java", "class A { int a; void f(B b) { var c = d; g((h, i) -> h); j(k -> k); } }\n", "b c h i k"),
        ("A.java", "class A { void f() { for (B b : c) {} if (d instanceof E e) {} try (F g = h) {}}}\n", "b e g"),
        ("a.rs", "fn f(a: A, (b, c): D) { let Some(e) = g else { h }; i.j = 1; }\n", "a b c e"),
        ("a.rs", "fn f() { match a { B { c, d: e } => c, None => 1, g @ 1 => g }; |i, j: K| i; }\n", "c e g i j"),
        ("a.c", "int a;\nint f(struct b *c, int (*d)(int)) {\n  int *e = g, h[3];\n  int i(int);\n}\n", "c d e h"),
    ],
)  # fmt: skip
def test_parameters_and_variables_are_local_names(path: str, text: str, names: str) -> None:
    assert " ".join(dict.fromkeys(local.name for local in outline(text, path).local_names)) == names


@pytest.mark.parametrize(
    ("path", "text", "local"),
    [
        ("a.py", "def f(a):\n    b: C = d()\n", ("b", 2, 1, 2, "C", "d()")),
        ("a.py", "def f():\n    for a in b.c:\n        pass\n", ("a", 2, 1, 3, "", "b.c[]")),
        ("a.py", "def f():\n    with a() as b:\n        pass\n", ("b", 2, 1, 3, "", "a()")),
        ("a.ts", "function f() {\n  let a: B\n  a = c()\n  return a\n}\n", ("a", 2, 3, 5, ": B", "")),
        ("a.js", "function f() {\n  let a\n  a = c()\n  return a\n}\n", ("a", 2, 3, 5, "", "c()")),
        ("a.js", "function f() {\n  for (const a in b) {\n  }\n}\n", ("a", 2, 2, 3, "", "")),
        ("a.go", "package a\nfunc F() {\n\tif a := b(); a.c() {\n\t}\n}\n", ("a", 3, 3, 4, "", "b()")),
        ("a.go", "package a\nfunc F() {\n\tfor _, a := range b.c {\n\t}\n}\n", ("a", 3, 3, 4, "", "b.c[]")),
        ("a.go", "package a\nfunc F() {\n\ta := b.(*C)\n}\n", ("a", 3, 4, 4, "", "C")),
        ("A.java", "class A {\n void f() {\n  for (var b : c) {\n  }\n }\n}\n", ("b", 3, 3, 4, "", "c[]")),
        ("a.c", "int f(void) {\n  struct a *b = c();\n  return 0;\n}\n", ("b", 2, 3, 4, "struct a", "c()")),
    ],
)
def test_a_local_name_has_its_lines_type_and_value(
    path: str, text: str, local: tuple[str, int, int, int, str, str]
) -> None:
    assert Local(*local) in outline(text, path).local_names
