"""Names that are parameters or variables: what a call through them means, and which definitions they hide."""

from __future__ import annotations

from time import thread_time

import pytest

from bot.code.symbols.index import CodeIndex
from bot.code.symbols.resolution import Resolver
from bot.github.offline import RecordedTree

PYTHON = "class Foo:\n    def run(self): return 1\nclass Bar:\n    def run(self): return 2\n"
JAVA = "class Foo {{\n int size() {{ return 1; }}\n boolean f(Object o) {{\n{0}\n }}\n}}\n"
RUST = "struct A;\nimpl A {\n fn with(self) -> A { self }\n fn go(&self) {}\n}\n"
SCRIPT = "class Foo { run() { return 1 } }\nfunction total() {}\n"


@pytest.mark.parametrize(
    ("path", "text", "name", "meaning"),
    [
        ("a.py", f"{PYTHON}def f(x):\n    x.run()\n    x = Foo()\n", "run", ""),
        ("a.py", f"{PYTHON}def f(x):\n    x = Foo()\n    x.run()\n", "run", "Foo.run"),
        (
            "a.py",
            f"{PYTHON}def f():\n    try: pass\n    except Foo as e: pass\n    e = Bar()\n    e.run()\n",
            "run",
            "Bar.run",
        ),
        ("a.py", f"{PYTHON}def f(a):\n    match a:\n        case [run, *_]: return run\n", "run", ""),
        ("a.js", f"{SCRIPT}function f(a) {{\n  if (a) {{ var total = 1 }}\n  return total\n}}\n", "total", ""),
        (
            "a.js",
            f"{SCRIPT}function f(a) {{\n  for (var total in a) {{ }}\n  return total\n}}\n",
            "total",
            "",
        ),
        (
            "a.js",
            f"{SCRIPT}function f(a) {{\n  if (a) {{ let total = 1 }}\n  return total\n}}\n",
            "total",
            "total",
        ),
        ("a.js", f"{SCRIPT}function f(a) {{\n  if (a) {{ var v = new Foo() }}\n  v.run()\n}}\n", "run", "Foo.run"),
        (
            "a.ts",
            f"{SCRIPT}function f(a: A) {{\n  const h: (total: E) => void = a\n  total()\n}}\n",
            "total",
            "total",
        ),
        ("a.ts", f"{SCRIPT}function f(v, cb: (v: Foo) => void) {{\n  v.run()\n}}\n", "run", ""),
        (
            "Foo.java",
            JAVA.format("  if (!(o instanceof Foo p)) { return false; }\n  return p.size() == 1;"),
            "size",
            "Foo.size",
        ),
        ("a.rs", f"{RUST}fn f(a: A) {{\n    let a = a.with();\n    a.go();\n}}\n", "go", "A.go"),
        (
            "a.c",
            "int done(void)\n{\n  return 1;\n}\nint f(int (*cmp)(int done))\n{\n  return done();\n}\n",
            "done",
            "done",
        ),
    ],
)
def test_a_use_of_a_local_name_means_what_it_was_set_to(path: str, text: str, name: str, meaning: str) -> None:
    index = CodeIndex(RecordedTree({path: text}), {path: text}, {}, 20.0)
    last = [reference for reference in index.references(path, [name]) if reference.kind in ("call", "read")][-1]
    places = Resolver(index).resolve(path, last)
    assert [place.definition.qualified for place in places] == [meaning] * bool(meaning)


@pytest.mark.parametrize(
    "text", ["def f(c):\n" + " a=b.c\n a.x()\n" * 20_000, "def f(c):\n a=b.c\n a.x()\n" * 9_000]
)
def test_a_name_that_is_set_very_often_is_looked_up_in_bounded_time(text: str) -> None:
    index = CodeIndex(RecordedTree({"a.py": text}), {"a.py": text}, {}, 20.0)
    references = index.references("a.py", ["x"])
    resolver, start = Resolver(index), thread_time()
    for reference in references:
        resolver.resolve("a.py", reference)
    assert len(references) == 3_000
    assert thread_time() - start < 8
