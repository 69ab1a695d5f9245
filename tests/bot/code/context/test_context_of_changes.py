# ruff: noqa: E501 - lines of code in other languages
"""The code that is shown around a change, and its stated relation to it, by kind of change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import unified_diff

import pytest

from bot.code.change.diff import Sides, parse
from bot.code.change.packing import pack
from bot.code.context.surroundings import Surroundings
from bot.github.offline import RecordedTree

Edits = Mapping[str, tuple[str, str]]


def surroundings(files: Mapping[str, str], edits: Edits) -> Surroundings:
    """Return the surroundings of a change that replaces one text of a file by another."""
    after, diff = dict(files), ""
    for path, (old, new) in edits.items():
        assert old in files[path]
        after[path] = files[path].replace(old, new, 1)
        sides = (text.splitlines(keepends=True) for text in (files[path], after[path]))
        diff += "".join(unified_diff(*sides, f"a/{path}", f"b/{path}"))
    return Surroundings(parse(diff), Sides(RecordedTree({path: text.encode() for path, text in after.items()})))


def shown(files: Mapping[str, str], path: str, old: str, new: str) -> str:
    """Return the text of the context of one edit."""
    return surroundings(files, {path: (old, new)}).within(6_000).text


PADDING = "".join(f"def unrelated{number}(a):\n    return a\n\n\n" for number in range(20))


def test_a_function_whose_last_line_is_removed_has_changed() -> None:
    files = {
        "a/s.py": PADDING
        + "def register(k, v):\n    a = k\n    b = v\n    c = a + b\n    log(c)\n    return c\n\n\ndef other(k):\n    return k\n",
        "a/u.py": "from a.s import other, register\n\n\ndef use():\n    register(1, 2) + 1\n\n\ndef no():\n    other(1)\n",
    }
    text = shown(files, "a/s.py", "    return c\n", "")
    assert "rest of `register`\n def register(k, v):" in text
    assert "`use` calls `register`\n def use():" in text
    assert "other" not in text


def test_a_method_whose_last_line_is_removed_has_changed() -> None:
    store = "class Store:\n    def __init__(self):\n        self.items = {}\n        self.size = 0\n\n    def add(self, k):\n        self.items[k] = 1\n        self.size += 1\n\n    def drop(self, k):\n        del self.items[k]\n"
    files = {
        "a/s.py": PADDING + store,
        "a/u.py": "from a.s import Store\n\n\ndef use(s: Store):\n    s.add(1)\n\n\ndef no(s: Store):\n    s.drop(1)\n",
    }
    text = shown(files, "a/s.py", "        self.size += 1\n", "")
    assert "`use` calls `add`" in text
    assert "`no`" not in text
    assert "`items`" not in text


def test_a_removed_function_does_not_count_to_its_neighbours() -> None:
    moved = "def moved(a):\n    return LIMIT + a\n\n\n"
    files = {
        "a/old.py": f"LIMIT = 3\n\n\ndef helper(a):\n    return a\n\n\n{moved}def later(a):\n    return a\n\n\n{PADDING}",
        "a/u.py": "from a.old import helper, later\n\n\ndef use():\n    helper(1)\n    later(1)\n",
    }
    text = shown(files, "a/old.py", moved, "")
    assert "LIMIT" not in text
    assert "calls" not in text
    text = shown(files, "a/old.py", "    return LIMIT + a\n", "    return a\n")
    assert "`LIMIT`, in removed lines of `moved`" in text


def test_a_part_of_a_file_has_the_context_of_what_it_shows() -> None:
    def source(more: str) -> str:
        body = "".join(f"    x{number} = a + {number}{more}\n" for number in range(12))
        return "".join(
            f"def func{number:02}(a{more and ', c'}):\n{body}    return x1\n\n\n" for number in range(20)
        )

    users = {
        f"a/use{number:02}.py": f"from a.big import func{number:02}\n\n\ndef use{number:02}():\n    return func{number:02}(1)\n"
        for number in range(20)
    }
    around = surroundings({"a/big.py": source(""), **users}, {"a/big.py": (source(""), source(" + c"))})
    pieces = pack(around.diff, 4_000, 3, sides=around.sides).pieces
    assert len(pieces) == 3
    for piece in pieces:
        changed = set(re.findall(r"\+ def (func\d+)", piece.text))
        callers = set(re.findall(r"calls `(func\d+)`", around.within(6_000, piece.files).text))
        assert callers
        assert callers <= changed
    assert "+ def func00(a, c):" in pieces[-1].others
    assert "+     x0" not in pieces[-1].others
    assert "more lines]" in pieces[-1].others


def test_a_part_shows_what_it_uses_of_another_part() -> None:
    files = {
        "a/x.py": "def limit(a):\n    return a + 1\n",
        "a/y.py": "from a.x import limit\n\n\ndef f(a):\n    return 2\n",
    }
    around = surroundings(files, {"a/x.py": ("a + 1", "a + 2"), "a/y.py": ("return 2", "return limit(a)")})
    assert "return a + 2" not in around.within(6_000).text
    assert "`limit`, called by `f`" in around.within(6_000, around.diff.files[1:]).text


def test_overloads_are_no_accessors() -> None:
    stubs = "    @overload\n    def read(self, size: int) -> bytes: ...\n    @overload\n    def read(self, size: None) -> str: ...\n"
    body = "".join(f"        a{number} = {number}\n" for number in range(50))
    files = {"a/x.py": f"class R:\n{stubs}    def read(self, size=None):\n{body}        return size\n\n{PADDING}"}
    assert "overload" not in shown(files, "a/x.py", "        return size\n", "        return 1\n")
    pair = f"    @property\n    def read(self):\n{body}        return size\n\n\n\n\n    @read.setter\n    def read(self, value):\n        self.kept = value\n"
    files = {"a/x.py": f"class R:\n{pair}\n{PADDING}"}
    text = shown(files, "a/x.py", "        return size\n", "        return 1\n")
    assert "another `R.read`\n @read.setter\n def read(self, value):" in text


def test_a_long_caller_is_shown_with_what_handles_its_errors() -> None:
    lines = "".join(f"    k{number} = {number}\n" for number in range(14))
    files = {
        "a/x.py": PADDING + "def load(a):\n    raise Missing(a)\n",
        "a/u.py": (
            f"from a.x import load\n\n\ndef outer(a):\n{lines}    try:\n        b = 1\n        c = 2\n        d = 3\n"
            "        load(b)\n        e = 4\n        f = 5\n        g = 6\n    except OSError:\n        return 10\n"
            "    except Missing:\n        return 11\n    try:\n        other()\n    except KeyError:\n        return 12\n"
        ),
    }
    text = surroundings(files, {"a/x.py": ("raise Missing(a)", "raise Gone(a)")}).within(250).text
    assert "     except OSError:\n         return 10\n     except Missing:\n         return 11" in text
    assert "KeyError" not in text


def test_further_users_of_a_field_are_named() -> None:
    methods = "".join(f"    def m{number}(self):\n        return self.items[0]\n\n" for number in range(1, 7))
    files = {
        "a/x.py": f"class Pool:\n    def __init__(self):\n        self.n = 0\n        self.items = []\n\n\n\n\n{methods}{PADDING}"
    }
    text = shown(files, "a/x.py", "self.items = []", "self.items = None")
    assert "`Pool.m3` uses `items`; so do `Pool.m4` line 19, `Pool.m5` line 22, `Pool.m6` line 25\n" in text


@pytest.mark.parametrize("count", [4, 5])
def test_a_name_with_more_callers_than_are_shown_says_so(count: int) -> None:
    files = {"a/x.py": f"{PADDING}def load(a):\n    return a\n"}
    files |= {f"a/u{n}.py": f"from a.x import load\n\n\ndef use{n}():\n    load({n})\n" for n in range(count)}
    text = shown(files, "a/x.py", "def load(a):\n    return a\n", "def load(a):\n    return -a\n")
    assert text.count("calls `load`") == 4
    assert ("`use3` calls `load`; so do others" in text) == (count == 5)


def test_a_test_without_a_name_is_shown_with_its_title() -> None:
    files = {
        "src/p.ts": "".join(f"function unrelated{n}() {{\n  return {n}\n}}\n" for n in range(30))
        + "export function parse(text: string) {\n  return text\n}\n",
        "test/p.test.ts": (
            "import { parse } from '../src/p'\n\ndescribe('parse', () => {\n  it('keeps text', () => {\n"
            "    const all = ['a'].map((one) => parse(one))\n    expect(all[0]).toBe('a')\n  })\n})\n"
        ),
    }
    text = shown(files, "src/p.ts", "  return text", "  return text + 1")
    assert "`it('keeps text', () => {` calls `parse`\n it('keeps text', () => {" in text
    assert "expect(all[0])" in text


C_FUNCTIONS = "".join(f"static int other{number}(int a)\n{{\n    return a;\n}}\n\n" for number in range(20))
C_TABLE = "static const struct ops default_ops = {\n    .read = buf_read,\n};\n"
JS_FUNCTIONS = "".join(f"function other{number} (a) {{\n  return a\n}}\n\n" for number in range(20))


@pytest.mark.parametrize(
    ("path", "source", "old", "row"),
    [
        (
            "src/b.c",
            f"static int buf_read(int n);\n\n{C_FUNCTIONS}static int buf_read(int n)\n{{\n    return -n;\n}}\n\n{C_FUNCTIONS}{C_TABLE}",
            "return -n",
            "`default_ops` uses `buf_read`\n static const struct ops default_ops = {\n     .read = buf_read,",
        ),
        (
            "a/b.py",
            f"{PADDING}def read_it(n):\n    return -n\n\n\n{PADDING}HANDLERS = {{\n    'read': read_it,\n}}\nregister(read_it)\n",
            "return -n",
            "`HANDLERS` uses `read_it`\n HANDLERS = {\n     'read': read_it,",
        ),
        (
            "lib/b.js",
            f"{JS_FUNCTIONS}function readIt (n) {{\n  return -n\n}}\n\n{JS_FUNCTIONS}const handlers = {{\n  read: readIt\n}}\nmodule.exports = {{\n  readIt,\n  read: readIt,\n}}\n",
            "return -n",
            "`handlers` uses `readIt`\n const handlers = {\n   read: readIt",
        ),
    ],
    ids=["c", "python", "javascript"],
)
def test_a_registration_in_the_changed_file_is_shown(path: str, source: str, old: str, row: str) -> None:
    text = shown({path: source, "src/b.h": "int buf_read(int n);\n"}, path, old, "return n")
    assert row in text
    assert "exports" not in text
    assert "buf_read(int n);" not in text
    assert ("register(read_it)" in text) == path.endswith(".py")


def test_a_value_that_the_diff_shows_is_not_shown_again() -> None:
    go = "package s\n\ntype Config struct {\n\tName string\n\tMax int\n}\nfunc (s *Server) Accept(c Config) int {\n\treturn c.Max\n}\n"
    files = {"s/s.go": go + "".join(f"\nfunc other{number}() int {{\n\treturn 1\n}}\n" for number in range(20))}
    assert "Config.Max" not in shown(files, "s/s.go", "return c.Max", "return c.Max + 1")


def test_a_lone_bracket_costs_no_line() -> None:
    lines = "".join(f"    int a{number};\n" for number in range(12))
    java = f"class Row {{\n{lines}    int last;\n    static int f(Row row) {{\n        return 1;\n    }}\n}}\n"
    more = "".join(f"class C{number} {{\n    int b;\n}}\n" for number in range(30))
    text = shown({"a/Row.java": java + more}, "a/Row.java", "    int last;\n", "    long last;\n")
    assert " class Row {" in text
    assert "\n }" not in text


@pytest.mark.parametrize(
    ("path", "imports", "body", "new"),
    [
        ("a/x.py", "import json\nimport ujson as fast\n", "def f(a):\n    b = fast.loads(a)\n    c = json.loads(a)\n", "import ujson as fast"),
        ("a/x.go", 'package a\n\nimport (\n\t"json"\n\tfast "x.org/ujson"\n)\n', "func f(a int) int {\n\tb := fast.Loads(a)\n\tc := json.Loads(a)\n", 'fast "x.org/ujson"'),
        ("a/x.js", "const json = require('json')\nconst { loads: fast } = require('ujson')\n", "function f (a) {\n  b = fast(a)\n  c = json.loads(a)\n", "const { loads: fast } = require('ujson')"),
    ],
    ids=["python", "go", "javascript"],
)  # fmt: skip
def test_imports_that_rename_what_is_shown_are_shown(path: str, imports: str, body: str, new: str) -> None:
    comment = {"a/x.py": "#"}.get(path, "//")
    ending = "" if path.endswith("py") else "}\n"
    filler = f"    {comment} d\n" * 6
    gap = "\n" * 70
    files = {path: f"{imports}{gap}{body}{filler}    last(a)\n{ending}" + f"{comment} e\n" * 60}
    text = shown(files, path, "last(a)", "last(a + 1)")
    assert f"imports\n {new}\n" in text.replace("    ", "")
    assert "rest of `f`" in text
    assert "import json" not in text


PYTEST = "def pytest_addoption(parser):\n    group = parser.getgroup('debug')\n    group.addoption(\n        '--version',\n        action='count',\n        dest='version',\n    )\n    group.addoption('--versions', default=0)\n"
ARGPARSE = "def parser(p):\n    p.add_argument('-m', '--max-count', type=int)\n    p.add_argument('--max', dest='count')\n"
CLICK = "import click\n\n@click.option('--all', 'everything')\ndef f(everything):\n    pass\n"
COMMANDER = "program\n  .option('-m, --max-count <n>', 'how many')\n  .option('--max <n>')\n"


@pytest.mark.parametrize(
    ("source", "path", "reading", "row"),
    [
        (
            PYTEST,
            "a/main.py",
            "config.option.version",
            "@ 3 the option `version`, read by `use`\n group.addoption(\n     '--version',",
        ),
        (PYTEST, "a/main.py", "config.getoption('--version')", "@ 3 the option `version`"),
        (
            ARGPARSE,
            "a/main.py",
            "args.max_count",
            "@ 2 the option `max_count`, read by `use`\n p.add_argument('-m', '--max-count'",
        ),
        (ARGPARSE, "a/main.py", "self.options.count", "@ 3 the option `count`"),
        (CLICK, "a/main.py", "opts.everything", "@ 3 the option `everything`"),
        (COMMANDER, "a/main.js", "opts.maxCount", "@ 2 the option `maxCount`"),
    ],
)
def test_an_option_that_is_read_is_shown_where_it_is_declared(
    source: str, path: str, reading: str, row: str
) -> None:
    use = (
        f"function use (config) {{\n  return {reading}\n}}\n"
        if path.endswith("js")
        else f"def use(config):\n    return {reading}\n"
    )
    declares = path.replace("main", "options")
    files = {path: use, declares: source + "\n" * 80}
    text = shown(files, path, f"return {reading}", f"return !{reading}")
    assert row in text
    assert text.count("the option") == 1
    twice = {**files, path.replace("main", "other"): source}
    assert "the option" not in shown(twice, path, f"return {reading}", f"return !{reading}"), (
        "which one is not certain"
    )


def test_readers_of_a_changed_option_are_shown() -> None:
    reader = "def use(config, item):\n    if config.option.version > 1:\n        return item.version\n"
    getter = "def other(config):\n    return config.getoption('version')\n"
    namesake = "def third(release):\n    return release.version\n"
    files = {"a/options.py": PYTEST + "\n" * 80, "a/use.py": reader, "b/other.py": getter, "c/third.py": namesake}
    text = shown(files, "a/options.py", "action='count'", "action='store_true'")
    assert "`use` uses the option `version`\n def use(config, item):" in text
    assert "`other` uses the option `version`" in text
    assert "third" not in text


def test_only_the_first_calls_of_a_file_are_read() -> None:
    source = "add_argument(" * 5_000 + "\np.add_argument('--version')\n"
    files = {"a/main.py": "def use(args):\n    return args.version\n", "a/b.py": source}
    assert "the option" not in shown(files, "a/main.py", "return args", "return not args")
    files["a/b.py"] = source[-30:]
    assert "the option" in shown(files, "a/main.py", "return args", "return not args")


LONG = "".join(f"    step{number}(a)\n" for number in range(60))


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_a_long_docstring_leaves_room_for_the_code(quotes: str) -> None:
    text = "".join(f"    sentence {number}\n" for number in range(50))
    helper = f"def helper(a):\n    r{quotes}Do it.\n{text}    {quotes}\n    if a == {quotes}{quotes}:\n        a = 1\n    return a\n"
    files = {
        "a/h.py": helper + "\n" * 80,
        "a/use.py": "from a.h import helper\n\ndef use(a):\n    return helper(a)\n",
    }
    context = shown(files, "a/use.py", "helper(a)", "helper(a + 1)")
    assert "r" + quotes + "Do it." in context
    assert "sentence 2" in context
    assert "sentence 3" not in context
    assert f"     {quotes}\n     if a ==" in context
    assert "         a = 1\n     return a" in context


def test_what_a_changed_line_calls_is_shown_whole_if_there_is_room() -> None:
    files = {
        "a/h.py": f"def helper(a):\n{LONG}    return a\n\n\ndef other(a):\n{LONG}    return a\n",
        "a/use.py": "from a.h import helper, other\n\n\ndef use(a):\n    other(a)\n    return helper(a)\n",
    }
    edit = {"a/use.py": ("return helper(a)", "return helper(a + 1)")}
    for tokens, whole in ((6_000, 2), (1_200, 1), (700, 0)):
        context = surroundings(files, edit).within(tokens)
        rests = [context.text.count(f" step{number}(a)") for number in (0, 18, 20, 59)]
        assert rests == [2, 2, whole, whole]
        assert context.left_out == 0, "the heads are there"
        helper, other = (context.text.index(f"`{name}`, called by `use`") for name in ("helper", "other"))
        assert ("step59(a)" in context.text[helper:other]) == (whole > 0), (
            "what the changed line calls comes first"
        )


def test_a_long_caller_is_shown_whole_if_there_is_room() -> None:
    files = {
        "a/h.py": PADDING + "def helper(a):\n    return a\n",
        "a/use.py": f"from a.h import helper\n\n\ndef use(a):\n    b = helper(a)\n{LONG}    return b\n",
    }
    edit = {"a/h.py": ("helper(a):\n    return a\n", "helper(a):\n    return a + 1\n")}
    texts = [surroundings(files, edit).within(tokens).text for tokens in (300, 3_000)]
    assert ["`use` calls `helper`\n def use(a):\n     b = helper(a)" in text for text in texts] == [True, True]
    assert ["return b" in text for text in texts] == [False, True]
    assert texts[1].count("`use` calls `helper`") == 1


def test_the_rest_of_a_long_changed_function_is_shown_if_there_is_room() -> None:
    files = {"a/use.py": f"def use(a):\n{LONG}    return a\n"}
    edit = {"a/use.py": ("    return a\n", "    return a + 1\n")}
    assert "step30(a)" in surroundings(files, edit).within(2_000).text
    assert "step30(a)" not in surroundings(files, edit).within(300).text


@pytest.mark.parametrize(
    ("use", "is_ours"),
    [
        ("import dask.array as da\n\n\ndef use(a):\n    return da.map_blocks(a)\n", False),
        ("def use(a):\n    from dask.array import map_blocks\n    return map_blocks(a)\n", False),
        ("from a.s import Store\n\n\ndef use(a: Store):\n    return a.map_blocks(1)\n", True),
        ("from a.s import store\n\n\ndef use(a):\n    return store.map_blocks(a)\n", True),
    ],
)
def test_a_removed_name_is_not_one_of_another_package(use: str, is_ours: bool) -> None:
    removed = "    def map_blocks(self, a):\n        return a\n\n"
    files = {
        "a/s.py": f"class Store:\n    size = 1\n\n{removed}    def other(self):\n        return 1\n\n\nstore = Store()\n",
        "a/u.py": use + "\n" * 80,
    }
    text = shown(files, "a/s.py", removed, "")
    assert ("`use` calls the removed `map_blocks`" in text) == is_ours


def test_the_fields_of_a_class_with_a_constructor_are_not_listed() -> None:
    methods = "".join(f"    def m{number}(self):\n        return 1\n\n" for number in range(20))
    fields = "    _cache: dict\n    _size: int\n\n"
    files = {
        "a/s.py": f"class Store:\n{fields}    def __init__(self):\n        self.a = 1\n\n{methods}\n\nclass Row:\n{fields}{methods}",
        "a/u.py": "from a.s import Row, Store\n\n\ndef use(a):\n    return isinstance(a, Store)\n" + "\n" * 80,
    }
    text = shown(files, "a/u.py", "isinstance(a, Store)", "isinstance(a, Store | Row)")
    store, row = text.index("`Store`, used by"), text.index("`Row`, used by")
    assert "class Store:" in text
    assert "_size" not in text[store:row]
    assert " class Row:\n     _cache: dict\n     _size: int" in text


def test_a_called_function_is_shown_without_its_overload_stubs() -> None:
    stubs = (
        "@t.overload\ndef edit(a: int) -> int: ...\n\n\n@t.overload\ndef edit(\n    a: str,\n) -> str: ...\n\n\n"
    )
    files = {
        "a/s.py": f"import typing as t\n\n\n{stubs}def edit(a):\n    return a\n" + "\n" * 80,
        "a/u.py": "from a.s import edit\n\n\ndef use(a):\n    return edit(a)\n",
    }
    text = shown(files, "a/u.py", "edit(a)", "edit(a + 1)")
    assert "`edit`, called by `use`\n def edit(a):\n     return a" in text
    assert "overload" not in text


def test_an_import_that_functions_repeat_is_shown_once() -> None:
    local = "".join(f"def f{number}(a):\n    from a.s import helper\n    return a\n\n\n" for number in range(30))
    files = {
        "a/s.py": "def helper(a):\n    return a\n" + "\n" * 80,
        "a/u.py": f"{local}def use(a):\n    from a.s import helper\n    b = a\n    c = a\n    d = a\n    return helper(a)\n",
    }
    text = shown(files, "a/u.py", "return helper(a)", "return helper(a + 1)")
    assert text.count("from a.s import helper") <= 2, "as the import, and in the rest of the function"
    assert "@ 2 imports\n from a.s import helper" in text
