# ruff: noqa: E501 - lines of code in other languages
"""Which code is shown beside a change in Python, TypeScript and JavaScript, and which namesakes are not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.bot.code.context.test_context import surroundings

#: A file of this many further lines is not shown whole.
LONG = "\n" * 60


def shown(files: Mapping[str, str], path: str, new: str) -> str:
    """Return the context of a change whose new line is ``new``, which stands once in the file."""
    return surroundings(files, path, f"{new}  # old", new).within(6_000).text


def test_an_import_of_a_foreign_package_is_no_namesake() -> None:
    files = {
        "src/a.ts": "export function createElement(x: string) {\n  return x\n}\n",
        "src/u.ts": "import { createElement } from 'react'\nexport function show(x: string) {\n  return createElement(x)\n}\n"
        + LONG,
    }
    assert "src/a.ts" not in shown(files, "src/u.ts", "  return createElement(x)")
    assert "`show` calls" not in shown(files, "src/a.ts", "  return x")


def test_a_member_of_an_unknown_value_is_no_namesake() -> None:
    fake = "class FakeResponse:\n    def raise_for_status(self):\n        return 1\n"
    use = "import requests\ndef check(response):\n    response.raise_for_status(1)\n" + LONG
    assert "FakeResponse" not in shown(
        {"a/f.py": fake, "a/u.py": use}, "a/u.py", "    response.raise_for_status(1)"
    )
    assert "`check`" not in shown({"a/f.py": fake, "a/u.py": use}, "a/f.py", "        return 1")
    fake = "export class FakeXhr {\n  setRequestHeader(n) {\n    return n\n  }\n}\n"
    use = "export function send(xhr) {\n  xhr.setRequestHeader(1)\n}\n" + LONG
    assert "FakeXhr" not in shown({"a/f.js": fake, "a/u.js": use}, "a/u.js", "  xhr.setRequestHeader(1)")
    fake += "const testRequest = new FakeXhr()\n"
    use = use.replace("xhr.set", "testRequest.set")
    assert "FakeXhr" not in shown({"a/f.js": fake, "a/u.js": use}, "a/u.js", "  testRequest.setRequestHeader(1)")


def test_a_member_of_an_unknown_struct_is_no_function() -> None:
    files = {
        "src/net.c": "void close(int fd)\n{\n    drop(fd);\n}\n",
        "src/u.c": "int use(struct ext *s)\n{\n    s->close(s, 1);\n}\nint more(void)\n{\n    sock->close(2);\n}\n"
        + LONG,
    }
    assert "src/net.c" not in shown(files, "src/u.c", "    s->close(s, 1);")
    assert "src/net.c" not in shown(files, "src/u.c", "    sock->close(2);")
    assert "`use`" not in shown(files, "src/net.c", "    drop(fd);")


@pytest.mark.parametrize("name", ["Queue", "Stream", "Record", "VectorStore", "HashRing", "LinkedList"])
def test_a_class_of_the_repository_is_no_container(name: str) -> None:
    own = f"export class {name} {{\n  push(item) {{\n    return item\n  }}\n}}\n" + LONG
    use = (
        f"import {{ {name} }} from './q'\nexport function fresh() {{\n  const q = new {name}()\n  q.push(1)\n}}\n"
    )
    assert "`fresh` calls `push`" in shown({"src/q.js": own, "src/u.js": use}, "src/q.js", "    return item")
    foreign = use.replace("./q", "queue")
    assert "`fresh`" not in shown({"src/q.js": own, "src/u.js": foreign}, "src/q.js", "    return item")
    elements = "import { Item } from './i'\nexport function all(items: Array<Item>, more: Item[]) {\n  items.push(1)\n  more.push(2)\n}\n"
    item = "export class Item {\n  push(item) {\n    return item\n  }\n}\n" + LONG
    assert "`all`" not in shown({"src/i.ts": item, "src/u.ts": elements}, "src/i.ts", "    return item")


def test_a_module_of_javascript_calls_what_it_exports() -> None:
    files = {
        "lib/u.js": "exports.one = function (n) {\n  return n\n}\nexports.all = function (n) {\n  return exports.one(n)\n}\n"
        + LONG,
        "lib/v.js": "exports.one = function (n) {\n  return 0\n}\n",
    }
    text = shown(files, "lib/u.js", "  return exports.one(n)")
    assert "`one`, called by `all`" in text
    assert "lib/v.js" not in text


@pytest.mark.parametrize(
    ("value", "use"),
    [
        ("exports.TIMEOUT = 30", "u.TIMEOUT"),
        ("module.exports.TIMEOUT = 30", "u.TIMEOUT"),
        ("  TIMEOUT: 30,", "u.TIMEOUT"),
    ],
)
def test_what_a_module_of_javascript_exports_is_a_value(value: str, use: str) -> None:
    own = f"module.exports = {{\n{value}\n}}\n" if value[0] == " " else f"{value}\n"
    user = f"const u = require('./u')\nfunction f () {{\n  return {use} * 2\n}}\nfunction g (v) {{\n  return v.TIMEOUT\n}}\n"
    text = shown({"lib/u.js": own + LONG, "lib/v.js": user}, "lib/u.js", value)
    assert "`f` uses `TIMEOUT`" in text
    assert "`g` uses" not in text


@pytest.mark.parametrize("function", ["function send (body)", "function (body)"])
def test_a_prototype_is_the_class_of_its_methods(function: str) -> None:
    other = "function Socket () {}\nSocket.prototype.send = function (x) { return x }\nSocket.prototype.set = function (x) { return x }\n"
    files = {
        "lib/r.js": "function Response () {\n  this.headers = {}\n}\nResponse.prototype.set = function set (k) {\n  return k\n}\n"
        + "\n" * 40
        + f"Response.prototype.send = {function} {{\n  this.set(body, this.headers)\n}}\nmodule.exports = Response\n{LONG}",
        "lib/app.js": "const Response = require('./r')\nfunction handle (req) {\n  const res = new Response()\n  return res.send('x')\n}\n",
        "lib/socket.js": f"{other}function other () {{\n  const s = new Socket()\n  s.send(1)\n}}\n",
    }
    text = shown(files, "lib/r.js", "  this.set(body, this.headers)")
    assert "`Response.set`, called by `send`" in text
    assert "`Response.headers`, used by `send`" in text
    assert "`handle` calls `send`" in text
    assert "lib/socket.js" not in text


SERVICE = {
    "src/repo.ts": "export class Repo {\n  load(id: string) {\n    return id\n  }\n}\nclass Other {\n  load(id: string) {\n    return 0\n  }\n}\n",
    "src/s.ts": "import { Repo } from './repo'\nexport class Service {\n  constructor(private readonly repo: Repo, other: Repo) {}\n"
    + "\n" * 40
    + "  find(id: string) {\n    return this.repo.load(id)\n  }\n  bad(id: string) {\n    return this.other.load(id)\n  }\n}\n"
    + LONG,
    "src/c.ts": "import { Service } from './s'\nexport class Ctl {\n  constructor(private service: Service) {}\n"
    "  show(id: string) {\n    return this.service.find(id)\n  }\n}\n"
    "export class Strange {\n  constructor(service: Service) {}\n  hide(id: string) {\n    return this.service.find(id)\n  }\n}\n",
}


def test_a_parameter_with_a_modifier_is_a_field_in_typescript() -> None:
    text = shown(SERVICE, "src/s.ts", "    return this.repo.load(id)")
    assert "`Repo.load`, called by `find`" in text
    assert "`Ctl.show` calls `find`" in text
    assert "Other" not in text
    assert "`Strange" not in text


STORE = (
    "class Store:\n    def __init__(self, path):\n        self.path = path\n\n    def __enter__(self):\n        return self\n\n"
    "    def get(self, k):\n        return check(k)\n\n    @classmethod\n    def open(cls, p) -> Self:\n        return cls(p)\n\n"
    "class Other:\n    def get(self, k):\n        return 0\n\n\ndef make(path) -> Store:\n    return Store(path)\n\n\n"
    "def other(path) -> Other:\n    return Other()\n\n\ndef find(path) -> list[Store]:\n    return []\n" + LONG
)


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("store: Store", "store"),
        ("store: 'Store | None' = None", "store"),
        ("path", "Store(path)"),
        ("path", "make(path)"),
        ("path", "s.Store.open(path)"),
        ("path", "None\n        self.store = Store(path)"),
    ],
)
def test_a_field_has_the_type_of_what_it_is_set_to(head: str, value: str) -> None:
    user = (
        "from a import s\nfrom a.s import Other, Store, make, other\n\n\nclass Service:\n"
        f"    def __init__(self, {head}):\n        self.store = {value}\n\n    def show(self):\n        return self.store.get(1)\n"
    )
    assert "`Service.show` calls `get`" in shown(
        {"a/s.py": STORE, "a/u.py": user}, "a/s.py", "        return check(k)"
    )
    user = user.replace("make(", "other(").replace(": Store", ": Other").replace("= Store(", "= Other(")
    user = user.replace(": 'Store", ": 'Other").replace("s.Store", "s.Missing")
    assert "a/u.py" not in shown({"a/s.py": STORE, "a/u.py": user}, "a/s.py", "        return check(k)")


USER = "export function label(t: string) {\n  return parse(t)\n}\n" + LONG
PARSE = "export function parse(text: string) {\n  return text\n}\n"
OTHER = PARSE.replace("return text", "return 0")
BASE = '{// "paths": {}\n "compilerOptions": {"baseUrl": "src", "paths": {"@/*": ["./*"], "~d": ["lib/d.ts"],},}, /* "*/}'


@pytest.mark.parametrize(
    ("target", "files"),
    [
        ("@/lib/d", {"tsconfig.json": BASE, "src/lib/d.ts": PARSE, "lib/d.ts": OTHER}),
        ("~d", {"tsconfig.json": BASE, "src/lib/d.ts": PARSE, "lib/d.ts": OTHER}),
        ("lib/d", {"tsconfig.base.json": BASE, "src/lib/d.ts": PARSE, "lib/d.ts": OTHER}),
        ("@x/core", {"core/package.json": '{"name": "@x/core"}', "core/src/index.ts": PARSE, "lib/d.ts": OTHER}),
        ("core/d", {"core/package.json": '{"name": "core"}', "core/d.js": PARSE, "lib/d.ts": OTHER}),
    ],
)
def test_a_path_of_a_tsconfig_and_a_package_lead_to_a_file(target: str, files: Mapping[str, str]) -> None:
    user = {"src/u.ts": f"import {{ parse }} from '{target}'\n{USER}"}
    text = shown({**files, **user}, "src/u.ts", "  return parse(t)")
    assert "`parse`, called by `label`" in text
    assert "return text" in text
    assert "return 0" not in text
    elsewhere = {path: text for path, text in files.items() if not path.endswith(".json")}
    assert "`parse`" not in shown(
        {**elsewhere, **user, "tsconfig.json": "{" * 40_000}, "src/u.ts", "  return parse(t)"
    )


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("p", "    s = make(p)\n    return s.get(1)"),
        ("p", "    s = make(p)\n    if s:\n        return s.get(1)"),
        ("p", "    with Store(p) as s:\n        return s.get(2)"),
        ("p", "    with open(p) as f, make(f) as s:\n        return s.get(2)"),
        ("stores: list[Store]", "    for s in stores:\n        s.get(4)"),
        ("stores: dict[str, list[Store]]", "    for s in find(stores):\n        s.get(4)"),
        ("p", "    found = find(p)\n    return [s.get(4) for s in found]"),
        ("rows: list[list[Store]]", "    for row in rows:\n        for s in row:\n            s.get(4)"),
    ],
)
def test_a_variable_has_the_type_of_what_binds_it_in_python(head: str, body: str) -> None:
    user = f"from a.s import Other, Store, find, make, other\n\n\ndef user({head}):\n{body}\n"
    assert "`user` calls `get`" in shown({"a/s.py": STORE, "a/u.py": user}, "a/s.py", "        return check(k)")
    user = user.replace("make(", "other(").replace("Store", "Other").replace("find(", "Other(")
    assert "a/u.py" not in shown({"a/s.py": STORE, "a/u.py": user}, "a/s.py", "        return check(k)")


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("p: string", "  const s = make(p)\n  return s.load('1')"),
        ("p: string", "  const s = await later(p)\n  return s.load('1')"),
        ("list: Repo[]", "  for (const s of list) {\n    s.load('1')\n  }"),
        ("list: ReadonlyArray<Repo>", "  for (const s of list) {\n    s.load('1')\n  }"),
    ],
)
def test_a_variable_has_the_type_of_what_binds_it_in_typescript(head: str, body: str) -> None:
    own = (
        SERVICE["src/repo.ts"]
        .replace("class Other", "export class Other")
        .replace("return id", "return check(id)")
    )
    factories = "export function make(p: string): Repo {\n  return new Repo()\n}\nexport async function later(p: string): Promise<Repo> {\n  return new Repo()\n}\n"
    user = (
        f"import {{ Other, Repo, later, make }} from './repo'\nexport async function user({head}) {{\n{body}\n}}\n"
    )
    files = {"src/repo.ts": own + factories + LONG, "src/u.ts": user}
    assert "`user` calls `load`" in shown(files, "src/repo.ts", "    return check(id)")
    files = {
        "src/repo.ts": own + factories.replace("Repo", "Other") + LONG,
        "src/u.ts": user.replace("Repo", "Other"),
    }
    assert "`user`" not in shown(files, "src/repo.ts", "    return check(id)")


@pytest.mark.parametrize(("base", "count"), [("(Variable)", 2), ("", 0)])
def test_a_member_of_two_related_classes_is_either(base: str, count: int) -> None:
    derived = f"class Index{base}:\n    def to_index_variable(self):\n        return self\n"
    files = {
        "a/v.py": f"class Variable:\n    def to_index_variable(self):\n        return Index(self)\n\n\n{derived}"
        + "\n" * 80,
        "a/d.py": "from a.v import Variable\n\n\ndef swap(items):\n    for _, v in items.values():\n        w = v.to_index_variable()\n",
    }
    text = shown(files, "a/d.py", "        w = v.to_index_variable()")
    assert text.count("to_index_variable`, called by `swap`") == count


def test_an_argument_on_the_first_line_of_a_function_is_no_parameter() -> None:
    files = {
        "a/s.py": "LIMIT_OF_ALL = 3\n" + "\n" * 80,
        "a/u.py": "from a.s import LIMIT_OF_ALL\n\n\ndef use(a):\n    return min(a, LIMIT_OF_ALL)\n",
    }
    assert "`LIMIT_OF_ALL`, used by `use`" in shown(files, "a/u.py", "    return min(a, LIMIT_OF_ALL)")


@pytest.mark.parametrize(("bases", "is_caller"), [("Meta", True), ("Base, metaclass=Meta", False)])
def test_a_metaclass_is_no_base(bases: str, is_caller: bool) -> None:
    meta = f"class Meta(type):\n    def __init__(self, a):\n        self.a = a.strip()\n{LONG}"
    user = f"from a.m import Base, Meta\n\n\nclass User({bases}):\n    def __init__(self, a):\n        super().__init__(a)\n"
    files = {"a/m.py": f"{meta}\n\nclass Base:\n    size = 1\n", "a/u.py": user}
    assert ("calls `Meta`" in shown(files, "a/m.py", "        self.a = a.strip()")) == is_caller


def test_of_a_field_the_place_that_sets_it_first_is_shown() -> None:
    setters = "".join(
        f"    def load{number}(self):\n        self.data_of_all = {number}\n        return self\n\n"
        for number in range(9)
    )
    store = f"class Store:\n    def __init__(self, data):\n        self.data_of_all = data\n\n{setters}"
    files = {
        "a/s.py": store + LONG,
        "a/u.py": "from a.s import Store\n\n\ndef use(store: Store):\n    return store.data_of_all\n",
    }
    text = shown(files, "a/u.py", "    return store.data_of_all")
    assert "self.data_of_all = data" in text
    assert "load8" not in text
