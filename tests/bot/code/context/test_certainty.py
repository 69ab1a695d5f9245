# ruff: noqa: E501 - lines of code in other languages
"""The context states only what is certain: local names, builtins and neighbours are no definitions or uses."""

from __future__ import annotations

from time import process_time

import pytest

from bot.code.change.diff import Sides, parse
from bot.code.context.surroundings import Surroundings
from bot.github.offline import RecordedTree
from tests.bot.code.context.test_context_of_changes import PADDING, shown, surroundings

#: A file of this many further lines is not shown whole.
LONG = "\n" * 70


@pytest.mark.parametrize(
    ("path", "source", "edit"),
    [
        (
            "a/x.ts",
            "export const etag = (a: string) => {\n  return a\n}\n\n\n\n\nfunction matches(etag: string, other: string) {\n  return other.indexOf(etag)\n}\n",
            ("  return a\n", "  return a + 1\n"),
        ),
        (
            "a/x.js",
            "function server (options) {\n  const server = { a: 1 }\n  server.a = 2\n\n\n\n  return null\n\n\n\n\n  function start (b) {\n    return server.a\n  }\n}\n",
            ("return null", "return options"),
        ),
        (
            "a/x.js",
            "function flag(a) {\n  return null\n}\n\n\n\n\nfunction show(b) {\n  const flag = b\n  global.flag = b\n  return flag\n}\n",
            ("return null", "return a"),
        ),
        (
            "a/x.rs",
            "pub fn flag(a: u8) -> u8 {\n    a\n}\n\n\n\n\nfn from(flag: Flag) -> bool {\n    flag.is_enabled()\n}\n",
            ("    a\n", "    a + 1\n"),
        ),
        (
            "a/x.go",
            "package a\n\nfunc limit(a int) int {\n\treturn a\n}\n\n\n\n\nfunc Use(b int) int {\n\tlimit := b + 1\n\treturn limit\n}\n",
            ("\treturn a\n", "\treturn a + 1\n"),
        ),
        (
            "a/x.py",
            "def config(a):\n    return a\n\n\n\n\n\n\ndef use(b):\n    config: dict = read(b)\n    return config\n\n\ndef apply(config):\n    return config()\n",
            ("    return a\n", "    return a + 1\n"),
        ),
        (
            "a/x.c",
            "static int level(int a)\n{\n    return a;\n}\n\n\n\n\n\nint use(int b)\n{\n    int level = b;\n    return level;\n}\n",
            ("    return a;\n", "    return a + 1;\n"),
        ),
        (
            "a/x.ts",
            "export function status(a: number) {\n  return a\n}\n\n\n\n\nfunction use({ status, b = 1 }: Options) {\n  return status + b\n}\n",
            ("  return a\n", "  return a + 1\n"),
        ),
        (
            "a/x.rs",
            "pub fn limit(a: u8) -> u8 {\n    a\n}\n\n\n\n\nfn read(b: Bound) -> u8 {\n    match b {\n        Bound::At(limit) => limit,\n        _ => 0,\n    }\n}\n",
            ("    a\n", "    a + 1\n"),
        ),
        (
            "a/x.rs",
            "pub fn limit(a: u8) -> u8 {\n    a\n}\n\n\n\n\nfn read(b: Vec<u8>) -> u8 {\n    b.iter().map(|limit| limit + 1).sum()\n}\n",
            ("    a\n", "    a + 1\n"),
        ),
        (
            "a/x.py",
            "def option(a):\n    return a\n\n\n\n\n\n\ndef use(b):\n    return [option for option in b if option]\n",
            ("    return a\n", "    return a + 1\n"),
        ),
        (
            "a/x.py",
            "def option(a):\n    return a\n\n\n\n\n\n\ndef use(b):\n    (option, c), *d = b\n    return option, c, d\n",
            ("    return a\n", "    return a + 1\n"),
        ),
        (
            "a/X.java",
            "class X {\n  int limit = 1;\n\n\n\n\n\n  int use(java.util.List<X> xs) {\n    return xs.stream().map(limit -> limit.hashCode()).count();\n  }\n}\n",
            ("int limit = 1;", "int limit = 2;"),
        ),
    ],
    ids=[
        "typescript", "javascript", "global", "rust", "go", "python", "c",
        "destructuring", "match arm", "closure", "comprehension", "unpacking", "lambda of Java",
    ],
)  # fmt: skip
def test_a_parameter_or_variable_is_no_use_of_its_namesake(path: str, source: str, edit: tuple[str, str]) -> None:
    text = shown({path: source + LONG}, path, *edit)
    assert " uses " not in text
    assert " calls " not in text


@pytest.mark.parametrize(
    ("path", "source", "row"),
    [
        ("a/u.py", "def use(a):\n    return 0, run(load=load)\n", "`load`, used by `use`"),
        ("a/u.py", "def use(a):\n    run(\n        load=load,\n    )\n    return 0\n", "`load`, used by `use`"),
        ("a/u.py", "def use(self):\n    self.load = load\n    return 0\n", "`load`, used by `use`"),
        ("a/u.py", "@given(load)\ndef use(a):\n    return 0\n", "`load`, used by `use`"),
        ("a/u.py", "@given(\n    load,\n)\nasync def use(a):\n    return 0\n", "`load`, used by `use`"),
        ("a/u.py", "def use(a): return 0 or run(load)\n", "`load`, used by `use`"),
        ("a/u.py", "def use(a: dict[str, load, int]):\n    return 0\n", "`load`, used by `use`"),
        ("a/u.ts", "export const use = (a: string) => run(load) || 0\n", "`load`, used by `use`"),
        ("a/u.ts", "function use(a: string | load, b: Map<string, load, number>) {\n  return 0\n}\n", "`load`, used by `use`"),
        ("a/u.ts", "function use(a: string) {\n  const load = load(a)\n  return 0\n}\n", "`load`, called by `use`"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_imported", [True, False])
def test_an_argument_or_a_field_of_a_name_hides_no_definition(
    path: str, source: str, row: str, is_imported: bool
) -> None:
    is_python = path.endswith("py")
    definition = "def load(a):\n    return a\n" if is_python else "export function load(a) {\n  return a\n}\n"
    head = "from a.s import load\n" if is_python else "import { load } from './s'\n"
    files = {
        f"a/s.{path[4:]}": definition + LONG,
        path: (head if is_imported else definition) + LONG + source + LONG,
    }
    old = source.replace("load", "other")
    files[path] = files[path].replace(source, old)
    assert row in shown(files, path, old, source)


@pytest.mark.parametrize(
    ("use", "is_used"),
    [
        ("from a import s\n\n\ndef use(b):\n    return s.load(b)\n", True),
        ("from a import s\n\n\ndef use(s):\n    return s.load(1)\n", False),
        ("from a import s\n\n\ndef use(b):\n    return [s.load(1) for s in b]\n", False),
    ],
)
def test_a_local_name_of_a_module_is_not_the_module(use: str, is_used: bool) -> None:
    files = {"a/s.py": f"def load(a):\n    return a\n{LONG}", "a/u.py": use + LONG}
    assert ("`use` calls `load`" in shown(files, "a/s.py", "return a", "return a + 1")) == is_used


@pytest.mark.parametrize("call", ["s.load(b)", "load(b)"])
def test_what_a_function_requires_is_no_variable(call: str) -> None:
    name = "s" if call.startswith("s.") else "{ load }"
    use = f"function use(b) {{\n  const {name} = require('./s')\n  return {call}\n}}\n"
    files = {
        "a/s.js": f"function load(a) {{\n  return a\n}}\nmodule.exports = {{ load }}\n{LONG}",
        "a/u.js": use + LONG,
    }
    assert "`use` calls `load`" in shown(files, "a/s.js", "return a", "return a + 1")


def test_a_global_that_a_function_sets_is_not_its_own() -> None:
    use = "def reset():\n    global cache\n    cache = None\n"
    files = {"a/x.py": f"cache = {{\n    'a': 1,\n    'b': 2,\n}}\n{PADDING}{use}"}
    assert "`reset` uses `cache`\n def reset" in shown(files, "a/x.py", "'b': 2", "'b': 3")


def test_a_name_that_is_added_elsewhere_is_looked_up_in_removed_lines() -> None:
    helper = "def helper(a):\n    return a\n\n\n"
    old = "def first(a):\n    b = a\n    return b\n\n\ndef use(a):\n    return helper(a)\n"
    new = "def first(a):\n    helper = a\n    return helper\n\n\ndef use(a):\n    return a\n"
    text = shown({"a/x.py": f"{helper}{PADDING}{old}"}, "a/x.py", old, new)
    assert "`helper`, in removed lines of `use`\n def helper(a):" in text


@pytest.mark.parametrize(
    ("use", "is_ours"),
    [
        ("def use(d, k):\n    return d.get(k)\n", False),
        ("def use(k):\n    return get(k)\n", False),
        ("class Row(dict):\n    def use(self, k):\n        return self.get(k)\n", False),
        ("from a.s import Store\n\n\ndef use(s: Store, k):\n    return s.get(k)\n", True),
        (
            "from a.s import Store\n\n\nclass Own(Store):\n    def use(self, k):\n        return self.get(k)\n",
            True,
        ),
    ],
)
def test_a_removed_method_is_used_only_through_its_class(use: str, is_ours: bool) -> None:
    removed = "    def get(self, a):\n        return a\n\n"
    source = f"class Store:\n    size = 1\n\n{removed}    def other(self):\n        return 1\n{LONG}"
    text = shown({"a/s.py": source, "a/u.py": use + LONG}, "a/s.py", removed, "")
    assert ("`get`" in text) == is_ours


@pytest.mark.parametrize(
    ("use", "is_ours"),
    [
        ("from a import s\n\n\ndef use(k):\n    return s.get(k)\n", True),
        ("from a.s import get\n\n\ndef use(k):\n    return get(k)\n", True),
        ("def use(d, k):\n    return d.get(k)\n", False),
    ],
)
def test_a_removed_function_is_no_method(use: str, is_ours: bool) -> None:
    removed = "def get(a):\n    return a\n\n\n"
    text = shown({"a/s.py": f"{removed}{PADDING}", "a/u.py": use + LONG}, "a/s.py", removed, "")
    assert ("`use` calls the removed `get`" in text) == is_ours


@pytest.mark.parametrize(
    ("path", "before", "row", "after"),
    [
        ("a/x.py", "", "NAMES = {", "}"),
        ("a/x.c", "", "static int NAMES[] = {", "};"),
        ("a/X.java", "class X {\n", "static final Map<String, String> NAMES = Map.of(", ");\n}"),
    ],
)
def test_a_changed_value_is_no_use_of_itself(path: str, before: str, row: str, after: str) -> None:
    items = "".join(f"    {number},\n" for number in range(20))
    text = shown({path: f"{before}{row}\n{items}    77\n{after}\n{LONG}"}, path, "    77\n", "    78\n")
    assert "uses" not in text
    assert f"NAMES`\n {row}" in text, "its head is shown"


def test_the_last_line_of_a_file_needs_no_line_break() -> None:
    files = {"a/x.py": "A = 1\n" + "B = 2\n" * 8 + "LAST = 9"}
    assert "\n LAST = 9" in shown(files, "a/x.py", "A = 1", "A = 2")


def test_functions_of_one_name_in_two_languages_have_their_own_callers() -> None:
    files = {
        "a/s.py": "def load(a):\n    return 1\n" + LONG,
        "a/u.py": "from a.s import load\n\n\ndef use(a):\n    return load(a)\n" + LONG,
        "w/s.ts": "export function load(a) {\n  return 1\n}\n" + LONG,
        "w/u.ts": "import { load } from './s'\nexport function show(a) {\n  return load(a)\n}\n" + LONG,
    }
    edit = ("return 1", "return 2")
    text = surroundings(files, {"a/s.py": edit, "w/s.ts": edit}).within(6_000).text
    assert "`use` calls `load`" in text
    assert "`show` calls `load`" in text


def test_a_star_exports_no_variants_of_enums() -> None:
    files = {
        "src/lib.rs": "mod annotation;\nmod requirement;\npub use annotation::*;\npub use requirement::*;\nmod user;\n" + LONG,
        "src/annotation.rs": "pub enum Source {\n    Requirement(u8),\n}\n" + LONG,
        "src/requirement.rs": "pub struct Requirement {\n    name: u8,\n}\n" + LONG,
        "src/user.rs": "use crate::Requirement;\n\nfn run(a: u8) -> Requirement {\n    build(a)\n}\n" + LONG,
    }  # fmt: skip
    text = shown(files, "src/user.rs", "(a: u8) -> Requirement", "(a: u8, b: u8) -> Requirement")
    assert "`Requirement`, used by `run`\n pub struct Requirement" in text
    assert "Source" not in text


@pytest.mark.parametrize("count", [26, 0])
def test_a_type_in_rust_is_shown_before_its_impl_blocks(count: int) -> None:
    fields = "".join(f"    pub field{number}: u8,\n" for number in range(count))
    body = f"{{\n{fields}}}" if fields else "(u8);"
    blocks = "".join(
        f"impl From<T{number}> for Options {{\n    fn from(t: T{number}) -> Self {{\n        todo(t)\n    }}\n}}\n\n"
        for number in range(3)
    )
    files = {
        "src/options.rs": f"pub struct Options{body}\n\n{blocks}",
        "src/lib.rs": "mod options;\nuse options::Options;\n\nfn run(a: u8) -> Option<Options> {\n    build(a)\n}\n"
        + LONG,
    }
    text = shown(files, "src/lib.rs", "(a: u8) -> Option<Options>", "(a: u8, b: u8) -> Option<Options>")
    assert "`Options`, used by `run`\n pub struct Options" in text
    assert text.count("field3") == bool(count)


def test_many_changed_functions_take_time_that_grows_with_their_number() -> None:
    seconds = []
    for count in (500, 2_000):
        source = "".join(
            f"class C{number}:\n    def run(self):\n        return {number}\n\n" for number in range(count)
        )
        around = surroundings({"a/x.py": source}, {"a/x.py": (source, source.replace("return", "return 1 +"))})
        start = process_time()
        around.within(4_000)
        seconds.append(process_time() - start)
    assert seconds[1] < 2 + 6 * seconds[0]


GO_SERVER = "type Server struct {\n\thttp.Server\n\tinner http.Server\n}\n\nfunc (s *Server) Close() int {\n\treturn 1\n}\n"


@pytest.mark.parametrize("receiver", ["s.inner", "s.Server", "outer"])
def test_a_type_of_a_foreign_package_in_go_is_no_namesake(receiver: str) -> None:
    use = f"func (s *Server) Stop(outer *http.Server) int {{\n\tx := 0\n\treturn x + {receiver}.Close()\n}}\n"
    source = f'package a\n\nimport "net/http"\n\n{GO_SERVER}{LONG}{use}'
    assert "Close" not in shown({"a/a.go": source}, "a/a.go", "x := 0", "x := 1; y := " + receiver + ".Close()")
    own = source.replace("http.Server\n}", "Server\n}").replace("*http", "*a").replace("a.Server", "Server")
    text = shown({"a/a.go": own}, "a/a.go", "x := 0", f"x := 1; y := {receiver}.Close()")
    assert ("`Server.Close`, called by `Stop`" in text) == (receiver != "s.Server")


def test_a_type_of_a_foreign_package_in_python_is_no_namesake() -> None:
    source = f"import http\n\n\nclass Server:\n    def close(self):\n        return 1\n{LONG}def use(s: http.Server):\n    x = s.close()\n    return x\n"
    assert "Server" not in shown({"a/a.py": source}, "a/a.py", "x = s.close()", "x = s.close() + 1")
    assert "`Server.close`, called by `use`" in shown(
        {"a/a.py": source.replace("s: http.", "s: ")}, "a/a.py", "x = s.close()", "x = s.close() + 1"
    )


def test_the_name_of_a_class_in_java_is_not_its_constructor() -> None:
    source = (
        "package a;\nclass Graph {\n    private static final Logger LOG = Logger.of(Graph.class);\n    int size;\n\n\n\n\n"
        "    Graph(int size) {\n        this.size = size;\n    }\n\n\n\n\n    static Graph of() {\n        return new Graph(1);\n    }\n}\n"
    )
    text = shown({"a/Graph.java": source + LONG}, "a/Graph.java", "this.size = size", "this.size = size + 1")
    assert "`Graph.of` calls `Graph`" in text
    assert "uses `Graph`" not in text


@pytest.mark.parametrize("declared", ["::std::net::Server", "std::::Server", "..Server", "net::Server<..Server>"])
def test_odd_qualified_types_are_read(declared: str) -> None:
    source = f"struct Server;\nimpl Server {{\n    fn close(&self) {{\n    }}\n}}\n{LONG}fn run(s: &{declared}) {{\n    s.close();\n}}\n"
    assert "`Server" in shown({"src/a.rs": source}, "src/a.rs", "    s.close();\n", "    s.close(1);\n")


@pytest.mark.parametrize("values", ["a: b = 1\nb: a = 2\n", "a: a = 1\n", "a = b.c\nb = a.c\n"])
def test_values_whose_types_name_each_other_end(values: str) -> None:
    source = f"{values}{LONG}def use(c):\n    x = c\n    return a.run(x)\n"
    assert "`a`, used by `use`" in shown({"a/x.py": source}, "a/x.py", "return a.run(x)", "return a.run(a)")


def test_lone_surrogates_in_removed_lines_are_read() -> None:
    source = f"def use(c):\n    return 1\n{LONG}def helper(a):\n    return a\n"
    diff = "--- a/a/x.py\n+++ b/a/x.py\n@@ -2 +2 @@\n-    return helper('\ud800')\n+    return 1\n"
    around = Surroundings(parse(diff), Sides(RecordedTree({"a/x.py": source.encode()})))
    assert "`helper`, in removed lines of `use`" in around.within(4_000).text


def test_a_prototype_in_c_behind_macros_is_no_use() -> None:
    table = "struct entry all_entries[] = {\n    {1, make_thing},\n};\n"
    files = {
        "a/x.c": f"{LONG}Thing *make_thing(Options options)\n{{\n    return find(options);\n}}\n",
        "a/x.h": "extern SDL_DECLSPEC SDL_Renderer * SDLCALL make_thing(SDL_PropertiesID props);\n" + LONG,
        "a/t.c": table + LONG,
    }
    text = shown(files, "a/x.c", "find(options)", "find(options + 1)")
    assert "a/x.h" not in text
    assert "`all_entries` uses `make_thing`" in text
