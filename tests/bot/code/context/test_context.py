# ruff: noqa: E501 - lines of code in other languages
"""Which code is shown beside a change, and what a phrase looks up."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bot.code.change.diff import Sides, parse
from bot.code.context.surroundings import Surroundings
from bot.github.offline import RecordedTree


def surroundings(files: Mapping[str, str], path: str, old: str, new: str) -> Surroundings:
    """Return the surroundings of a change of one line of ``path``, whose text in ``files`` is the new one."""
    number = files[path].split("\n").index(new) + 1
    diff = f"--- a/{path}\n+++ b/{path}\n@@ -{number} +{number} @@\n-{old}\n+{new}\n"
    return Surroundings(parse(diff), Sides(RecordedTree({name: text.encode() for name, text in files.items()})))


PYTHON = {
    "app/main.py": (
        "from app import store\nfrom app.store import Store, load as read\n\nLIMIT = 3\n\n\n"
        "def run(path, things):\n    items = [1]\n    items.remove(1)\n    setattr(things, 'a', 1)\n"
        "    made = Store(path)\n    return made.fetch(read(path), store.LAST)\n" + "\n" * 60
    ),
    "app/store.py": (
        "LAST = 7\n\n\ndef load(path):\n    return path\n\n\nclass Store(Base):\n    def __init__(self, path):\n"
        "        self.path = path\n\n    def fetch(self, name, last):\n        return name\n"
    ),
    "app/noise.py": (
        "class MonkeyPatch:\n    def setattr(self, target, name):\n        pass\n\n    def remove(self):\n        pass\n\n"
        "    def fetch(self):\n        pass\n"
    ),
    "app/caller.py": "from app.main import run as go\n\n\ndef start():\n    return go('x', None)\n",
    "tests/test_main.py": "from app.main import run\n\n\ndef test_run():\n    assert run('x', 1)\n",
}
OLD = "    return None"
NEW = "    return made.fetch(read(path), store.LAST)"


def test_what_a_change_uses_and_its_users_are_shown_and_nothing_is_guessed() -> None:
    text = surroundings(PYTHON, "app/main.py", OLD, NEW).within(6_000).text
    assert "@ 4 `load`, called by `run`\n def load(path):" in text
    assert "@ 12 `Store.fetch`, called by `run`\n def fetch" in text
    assert "--- app/store.py\n@ 1 `LAST`, used by `run`\n LAST = 7" in text
    assert "app/noise.py" not in text
    assert "--- app/caller.py\n@ 4 `start` calls `run`\n def start():" in text
    assert "--- tests/test_main.py\n@ 4 `test_run` calls `run`" in text
    assert "imports\n from app import store\n from app.store import Store, load as read\n" in text
    assert "import" not in surroundings(PYTHON, "app/main.py", "LIMIT = 2", "LIMIT = 3").within(6_000).text


def test_no_line_is_shown_twice() -> None:
    around = surroundings(PYTHON, "app/main.py", OLD, NEW)
    rows = [row for row in around.within(6_000).text.split("\n") if "def run" in row or "return made" in row]
    assert rows == [" def run(path, things):"]
    assert "def run" not in around.within(6_000, visible={"app/main.py": range(1, 20)}).text


@pytest.mark.parametrize(
    ("phrase", "row"),
    [
        ("`Store.fetch`", "@ 12 `Store.fetch`, looked up\n def fetch(self, name, last):"),
        ("what load() in app/store.py returns", "@ 4 `load`, looked up\n def load(path):"),
        ("LAST", "@ 1 `LAST`, looked up\n LAST = 7"),
        ("load in app/store.py", "@ 4 `load`, looked up\n def load(path):"),
        ("class Store in app/store.py", "@ 8 `Store`, looked up\n class Store(Base):"),
    ],
)
def test_a_phrase_looks_up_the_code_that_it_names_first(phrase: str, row: str) -> None:
    around = surroundings(PYTHON, "app/main.py", "LIMIT = 2", "LIMIT = 3")
    context = around.within(6_000, phrases=[phrase, "whether it is good"])
    assert context.looked_up == (phrase,)
    assert row in context.text.split("\n\n")[0]


@pytest.mark.parametrize("phrase", ["callers of `run`", "callers of run", "Callers of run in app/main.py"])
def test_a_phrase_that_asks_for_callers_gets_them(phrase: str) -> None:
    around = surroundings(PYTHON, "app/main.py", "LIMIT = 2", "LIMIT = 3")
    context = around.within(6_000, phrases=[phrase])
    assert context.looked_up == (phrase,)
    assert "`start` calls `run`" in context.text


GO = {
    "a/a.go": 'package a\n\nimport "x.org/y/z/b"\n\nfunc F(s *b.S) int {\n\treturn s.Get(b.Max)\n}\n' + "\n" * 60,
    "b/b.go": "package b\n\nconst Max = 3\n\ntype S struct {\n\tsize int\n}\n\nfunc (s *S) Get(n int) int {\n\treturn n\n}\n",
    "c/c.go": "package c\n\ntype T struct{}\n\nfunc (t *T) Get(n int) int {\n\treturn 0\n}\n",
}
JAVA = {
    "p/A.java": (
        "package p;\nimport q.B;\nclass A {\n    private final B b = new B();\n    int f() {\n        return b.get(B.MAX);\n    }\n}\n"
        + "\n" * 60
    ),
    "q/B.java": "package q;\npublic class B {\n    static final int MAX = 3;\n    int get(int n) {\n        return n;\n    }\n}\n",
    "q/C.java": "package q;\nclass C {\n    int get(int n) {\n        return 0;\n    }\n}\n",
}
TYPESCRIPT = {
    "src/a.ts": "import { B as Box, MAX } from './b'\nexport function f(b: Box) {\n  return b.get(MAX)\n}\n"
    + "\n" * 60,
    "src/b.ts": "export * from './c'\nexport const MAX = 3\n",
    "src/c.ts": "export class B {\n  get(n: number) {\n    return n\n  }\n}\nclass D {\n  get() {\n    return 0\n  }\n}\n",
}
JAVASCRIPT = {
    "lib/a.js": "const { get: fetch, MAX } = require('./b')\nfunction f () {\n  return fetch(MAX)\n}\n"
    + "\n" * 60,
    "lib/b.js": "const MAX = 3\nfunction get (n) {\n  return n\n}\nmodule.exports = { get, MAX }\n",
    "lib/c.js": "function fetch (n) {\n  return 0\n}\n",
}
RUST = {
    "src/a.rs": "use crate::b::{S, MAX};\n\nfn f(s: &S) -> u8 {\n    s.get(MAX)\n}\n" + "\n" * 60,
    "src/b.rs": "pub const MAX: u8 = 3;\npub struct S;\nimpl S {\n    pub fn get(&self, n: u8) -> u8 {\n        n\n    }\n}\n",
    "src/c.rs": "pub struct T;\nimpl T {\n    fn get(&self, n: u8) -> u8 {\n        0\n    }\n}\n",
}
C = {
    "src/a.c": '#include "b.h"\n\nint f(int n)\n{\n    return get(n, MAX);\n}\n' + "\n" * 60,
    "src/b.h": "#define MAX 3\nint get(int n, int m);\n",
    "src/b.c": '#include "b.h"\n\nint get(int n, int m)\n{\n    return n;\n}\n',
    "test/b.c": "static int get(int n, int m)\n{\n    return 0;\n}\n",
}


@pytest.mark.parametrize(
    ("files", "path", "new", "definition", "constant", "other"),
    [
        (GO, "a/a.go", "\treturn s.Get(b.Max)", "`S.Get`, called", "const Max = 3", "c/c.go"),
        (JAVA, "p/A.java", "        return b.get(B.MAX);", "`B.get`, called", "MAX = 3", "q/C.java"),
        (TYPESCRIPT, "src/a.ts", "  return b.get(MAX)", "`B.get`, called", "const MAX = 3", "D"),
        (JAVASCRIPT, "lib/a.js", "  return fetch(MAX)", "`get`, called", "MAX = 3", "lib/c.js"),
        (RUST, "src/a.rs", "    s.get(MAX)", "`S.get`, called", "const MAX: u8 = 3", "src/c.rs"),
        (C, "src/a.c", "    return get(n, MAX);", "`get`, called", "#define MAX 3", "test/b.c"),
    ],
    ids=["go", "java", "typescript", "javascript", "rust", "c"],
)
def test_each_language_resolves_by_import_path_and_receiver_type(
    files: Mapping[str, str], path: str, new: str, definition: str, constant: str, other: str
) -> None:
    text = surroundings(files, path, f"{new} // old", new).within(6_000).text
    assert definition in text
    assert constant in text
    assert other not in text


def test_a_field_that_names_a_function_stands_for_it() -> None:
    files = {
        "src/a.ts": "import { B } from './b'\nexport function f() {\n  return B.create(1)\n}\n" + "\n" * 60,
        "src/b.ts": "const make = (n: number) => {\n  return n\n}\nexport class B {\n  static create = make\n}\n",
    }
    text = surroundings(files, "src/a.ts", "  return null", "  return B.create(1)").within(6_000).text
    assert "@ 1 `make`, called by `f`\n const make" in text


def test_tests_in_a_module_of_rust_count_as_tests() -> None:
    source = "fn f() -> u8 {\n    g()\n}\n\nfn g() -> u8 {\n    1\n}\n" + "\n" * 60
    test = "mod tests {\n    #[test]\n    fn works() {\n        super::g();\n    }\n}\n"
    files = {"src/a.rs": source + test}
    assert "called by" not in surroundings(files, "src/a.rs", "    g();", "        super::g();").within(6_000).text


def test_a_telling_field_that_is_defined_once_has_its_declared_type() -> None:
    files = {
        "src/lib.rs": "mod path_router;\nuse path_router::Paths;\nstruct S {\n    path_router: Paths,\n}\n",
        "src/path_router.rs": "pub struct Paths;\nimpl Paths {\n    fn nest(&self) {\n        work(1);\n    }\n}\n"
        + "\n" * 60,
        "src/c.rs": "struct T;\nimpl T {\n    fn call(self) {\n        tap!(self, this => this.path_router.nest());\n    }\n}\n",
    }
    text = surroundings(files, "src/path_router.rs", "        work(0);", "        work(1);").within(6_000).text
    assert "--- src/c.rs\n@ 3 `T.call` calls `nest`" in text


def test_a_search_that_ran_out_of_time_is_recorded() -> None:
    around = surroundings(PYTHON, "app/main.py", OLD, NEW)
    assert around.within(6_000).why == ""
    context = Surroundings(around.diff, around.sides, seconds=-1).within(6_000)
    assert context.why == "not all code was searched in -1 seconds"
    assert "app/store.py" not in context.text
