# ruff: noqa: E501 - lines of code in other languages
"""Which code is shown beside a change in Go, Java, Rust and C, and which namesakes are not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bot.code.symbols.languages.go import signature
from tests.bot.code.context.test_context import surroundings

#: A file of this many further lines is not shown whole.
LONG = "\n" * 60


def shown(files: Mapping[str, str], path: str, new: str) -> str:
    """Return the context of a change whose new line is ``new``, which stands once in the file."""
    return surroundings(files, path, f"{new} // old", new).within(6_000).text


GO_STORE = {
    "go.mod": "module e.com/a\n",
    "s/s.go": "package s\n\ntype Store struct{ n int }\n\nfunc New() *Store {\n\treturn &Store{}\n}\n\n"
    "func Open(k string) (*Store, error) {\n\treturn New(), nil\n}\n\nfunc Both() (*Other, *Store) {\n\treturn nil, nil\n}\n\n"
    "func (s *Store) Get(k string) error {\n\treturn check(k)\n}\n" + LONG,
    "s/o.go": "package s\n\ntype Other struct{}\n\nfunc NewOther() *Other {\n\treturn nil\n}\n\nfunc (o *Other) Get(k string) error {\n\treturn nil\n}\n",
}


@pytest.mark.parametrize(
    "body",
    [
        "\tx := s.New()\n\treturn x.Get(k)",
        "\tx, err := s.Open(k)\n\tif err != nil {\n\t\treturn err\n\t}\n\treturn x.Get(k)",
        "\tif x, err := s.Open(k); err == nil {\n\t\treturn x.Get(k)\n\t}\n\treturn nil",
        "\tx := new(s.Store)\n\treturn x.Get(k)",
        "\tx := &s.Store{n: 1}\n\ty := x\n\treturn y.Get(k)",
    ],
)
def test_a_variable_has_the_type_of_what_it_is_set_to(body: str) -> None:
    user = f'package m\n\nimport "e.com/a/s"\n\nfunc user(k string) error {{\n{body}\n}}\n'
    text = shown({**GO_STORE, "m/m.go": user}, "s/s.go", "\treturn check(k)")
    assert "--- m/m.go\n@ 5 `user` calls `Get`" in text
    user = user.replace("New()", "NewOther()").replace("s.Open(k)", "s.Both()").replace("s.Store", "s.Other")
    assert "m/m.go" not in shown({**GO_STORE, "m/m.go": user}, "s/s.go", "\treturn check(k)")


@pytest.mark.parametrize("value", ["New() == nil", "New()[0]", "x.Get", "items[0]", "x.y.z()"])
def test_a_variable_of_another_expression_has_no_type(value: str) -> None:
    user = f"package s\n\nfunc user(k string) error {{\n\tx := {value}\n\treturn x.Get(k)\n}}\n"
    assert "`user`" not in shown({**GO_STORE, "s/u.go": user}, "s/s.go", "\treturn check(k)")


JAVA_CALC = "package com.x;\npublic class Calc {\n    public Calc(int n) {\n        check(n);\n    }\n    public int add(int a) {\n        return a;\n    }\n}\n"


def test_a_test_in_another_folder_of_the_package_is_shown() -> None:
    test = "package com.x;\nclass CalcTest {\n    void adds() {\n        Calc calc = new Calc(1);\n        equal(calc.add(1));\n    }\n}\n"
    files = {
        "a/src/main/java/com/x/Calc.java": JAVA_CALC + LONG,
        "b/src/main/java/com/x/Calc.java": JAVA_CALC,
        "a/src/test/java/com/x/CalcTest.java": test,
    }
    assert "`CalcTest.adds` calls `add`" in shown(files, "a/src/main/java/com/x/Calc.java", "        return a;")
    files["b/src/main/java/com/x/Calc.java"] += LONG
    assert "CalcTest" not in shown(files, "b/src/main/java/com/x/Calc.java", "        return a;")


JAVA_POOL = (
    "package p;\nclass Pool {\n    int size = 0;\n" + LONG + "    int size() {\n        return size;\n    }\n"
)
RUST_POOL = (
    "pub struct Pool {\n    pub a: u8,\n    pub size: u32,\n}\n"
    + LONG
    + "impl Pool {\n    pub fn size(&self) -> u32 {\n        self.size\n    }\n"
)


@pytest.mark.parametrize("new", ["        this.size += n;", "        size += n;"])
def test_a_field_is_not_the_method_of_its_name(new: str) -> None:
    files = {"p/Pool.java": JAVA_POOL + LONG + f"    void grow(int n) {{\n{new}\n    }}\n}}\n"}
    text = shown(files, "p/Pool.java", new)
    assert "`Pool.size`, set by `grow`" in text
    assert "    int size = 0;" in text
    assert "int size()" not in text
    new = "        self.size += n;"
    files = {"src/a.rs": RUST_POOL + LONG + f"    fn grow(&mut self, n: u32) {{\n{new}\n    }}\n}}\n"}
    text = shown(files, "src/a.rs", new)
    assert "pub size: u32" in text
    assert "pub fn size" not in text


GO_SERVER = {
    "go.mod": "module e.com/a\n",
    "s/base.go": "package s\n\ntype base struct{ n int }\n\nfunc (b *base) grow(k int) {\n\tb.n += check(k)\n}\n\n"
    "type other struct{}\n\nfunc (o *other) grow(k int) {\n}\n" + LONG,
    "s/server.go": 'package s\n\nimport "e.com/a/t"\n\ntype Server struct {\n\t*base\n\tt.Pool\n}\n\nfunc (s *Server) Accept(k int) {\n\ts.grow(k)\n\ts.base.grow(1)\n\ts.Drop(k)\n}\n'
    + LONG,
    "s/pool.go": "package s\n\ntype Pool struct{}\n\nfunc (p *Pool) Drop(k int) {\n}\n",
    "t/t.go": "package t\n\ntype Pool struct{}\n\nfunc (p *Pool) Drop(n int) {\n}\n",
}


GO_HANDLERS = {
    "go.mod": "module e.com/a\n",
    "s/handler.go": "package s\n\ntype Handler interface {\n\tHandle(a, b int, f func(int) error) (n int, err error)\n\tName() string\n}\n",
    "s/echo.go": "package s\n\ntype Echo struct{}\n\nfunc (e *Echo) Handle(x int, y int, f func(int) error) (int, error) {\n\treturn check(x)\n}\n\n"
    'func (e *Echo) Name() string { return "" }\n' + LONG,
    "s/half.go": "package s\n\ntype Half struct{}\n\nfunc (h *Half) Handle(x int, y int, f func(int) error) (int, error) {\n\treturn half(x)\n}\n"
    + LONG,
    "s/text.go": "package s\n\ntype Text struct{}\n\nfunc (t *Text) Handle(x, y string, f func(int) error) (int, error) {\n\treturn text(x)\n}\n\n"
    'func (t *Text) Name() string { return "" }\n' + LONG,
    "m/m.go": 'package m\n\nimport "e.com/a/s"\n\nfunc serve(h s.Handler) {\n\th.Handle(1, 2, nil)\n}\n' + LONG,
}


C_OPS = {
    "ops.h": "struct ops {\n    int (*read)(int n);\n    void (*drop)(int n);\n};\n" + LONG,
    "buf.c": '#include "ops.h"\nint buf_read(int n)\n{\n    return n;\n}\nstatic const struct ops table = {\n    .read = buf_read,\n};\n',
    "other.c": "struct other {\n    int (*read)(int n);\n};\nint no_read(int n)\n{\n    return 0;\n}\nstatic struct other o = {\n    .read = no_read,\n};\n",
    "use.c": '#include "ops.h"\nint run(struct ops *o)\n{\n    return o->read(1);\n}\nint unused(struct x *o)\n{\n    return o->read(2);\n}\n'
    + LONG,
}


def test_a_crate_of_the_repository_is_known_by_its_manifest() -> None:
    store = "pub struct Store;\nimpl Store {\n    pub fn get(&self) -> u8 {\n        check(1)\n    }\n}\n" + LONG
    test = "use my_app::Store;\n#[test]\nfn works() {\n    let s = Store::default();\n    assert_eq!(s.get(), 1);\n}\n"
    files = {
        "Cargo.toml": '[workspace]\nmembers = []\n\n[package]\nversion = "1"\nname = "my-app"\n\n[[bin]]\nname = "other"\n',
        "src/lib.rs": "mod store;\npub use store::Store;\n",
        "src/store.rs": store,
        "tests/it.rs": test,
    }
    assert "`works` calls `get`" in shown(files, "src/store.rs", "        check(1)")
    files["tests/it.rs"] = test.replace("my_app", "other")
    assert "works" not in shown(files, "src/store.rs", "        check(1)")


@pytest.mark.parametrize("head", ["func (s S) F(a int, b) {", "F(,)", "F((((", "F(a []", "F", ""])
def test_parameters_that_are_no_go_have_some_signature(head: str) -> None:
    assert isinstance(signature(head, "F"), tuple)


#: A path, a new line in it, parts of the context that is shown with it, and what is not in it.
Change = tuple[str, str, list[str], list[str]]
# fmt: off
#: Files, and changes in them.
CASES: dict[str, tuple[Mapping[str, str], list[Change]]] = {
    "a wrapped value in rust is that value": ({
        "src/a.rs": "pub struct Store;\nimpl Store {\n    pub fn open(p: u8) -> Result<Self, u8> {\n        Ok(Store)\n    }\n    pub fn get(&self) -> u8 {\n        check(1)\n    }\n}\npub fn make() -> Result<Store, u8> {\n    Store::open(1)\n}\n" + LONG,
        "src/b.rs": "use crate::a::{make, Store};\nfn opened() -> u8 {\n    let s = Store::open(1).unwrap();\n    s.get()\n}\nfn made() -> Result<u8, u8> {\n    let s = make()?;\n    Ok(s.get())\n}\nfn other(o: &O) {\n    let s = o.open(1).unwrap();\n    s.get()\n}\n",
    }, [("src/a.rs", "        check(1)", ["`opened` calls `get`", "`made` calls `get`"], ["other"])]),
    "a variable in java has the type of its value": ({
        "p/Store.java": "package p;\nclass Store {\n    static Store of(int n) {\n        return null;\n    }\n    int get() {\n        return check(1);\n    }\n}\n" + LONG,
        "p/Use.java": "package p;\nclass Use {\n    Store make() {\n        return null;\n    }\n    int a() {\n        var s = Store.of(1);\n        return s.get();\n    }\n    int b() {\n        var s = make();\n        return s.get();\n    }\n    int c() {\n        var s = other();\n        return s.get();\n    }\n}\n",
    }, [("p/Store.java", "        return check(1);", ["`Use.a` calls `get`", "`Use.b` calls `get`"], ["Use.c"])]),
    "an import of a whole package gives its classes": ({
        "src/com/x/Calc.java": JAVA_CALC,
        "src/z/Calc.java": JAVA_CALC,
        "src/q/Use.java": "package q;\nimport com.x.*;\nclass Use {\n    int f(Calc calc) {\n        return calc.add(2);\n    }\n}\n" + LONG,
    }, [("src/q/Use.java", "        return calc.add(2);", ["--- src/com/x/Calc.java\n@ 6 `Calc.add`, called by `f`"], ["src/z", "package q"])]),
    "constructors that call a changed one are shown: Java": ({
        "src/com/x/Calc.java": JAVA_CALC + LONG,
        "src/com/x/Child.java": "package com.x;\nclass Child extends Calc {\n    Calc other;\n    Child() {\n        super(3);\n    }\n    Child(int n) {\n        this();\n    }\n}\n",
    }, [("src/com/x/Calc.java", "        check(n);", ["@ 4 `Child.Child` calls `Calc`\n Child() {\n     super(3);\n }"], ["extends", "this();"])]),
    "constructors that call a changed one are shown: TypeScript": ({
        "src/a.ts": "export class Base {\n  constructor(n: number) {\n    check(n)\n  }\n}\n" + LONG,
        "src/b.ts": "import { Base } from './a'\nclass B extends Base {\n  constructor() {\n    super(1)\n  }\n}\nclass C extends D {\n  constructor() {\n    super(2)\n  }\n}\n",
    }, [("src/a.ts", "    check(n)", ["super(1)"], ["super(2)"])]),
    "a called constructor of a base is shown": ({
        "src/com/x/Calc.java": JAVA_CALC + LONG,
        "src/com/x/Child.java": "package com.x;\nclass Child extends Calc {\n    Child() {\n        super(3);\n    }\n}\n" + LONG,
    }, [("src/com/x/Child.java", "        super(3);", ["`Calc.Calc`, called by `Child`\n public Calc(int n) {"], [])]),
    "a package clause is no import": ({
        "s/s.go": "package s\n\ntype T struct{}\n\nfunc (s *T) f(n int) {\n\ts.g(n)\n}\n" + LONG,
    }, [("s/s.go", "\ts.g(n)", [], ["package s"])]),
    "uses of a field are no calls of the method of its name: Java": ({
        "p/Pool.java": JAVA_POOL + "}\n",
        "p/Use.java": "package p;\nclass Use {\n    int field(Pool pool) {\n        return pool.size;\n    }\n    int method(Pool pool) {\n        return pool.size();\n    }\n}\n",
    }, [
        ("p/Pool.java", "    int size = 0;", ["`Use.field` uses `size`"], ["Use.method"]),
        ("p/Pool.java", "        return size;", ["`Use.method` calls `size`"], ["Use.field"]),
    ]),
    "uses of a field are no calls of the method of its name: Rust": ({
        "src/a.rs": RUST_POOL + "}\n",
        "src/b.rs": "use crate::a::Pool;\nfn field(p: &Pool) -> u32 {\n    p.size\n}\nfn method(p: &Pool) -> u32 {\n    p.size()\n}\n",
    }, [("src/a.rs", "    pub size: u32,", ["`field` uses `size`"], ["`method`"])]),
    "a parameter in java is not the field of its name": ({
        "p/Pool.java": JAVA_POOL + LONG + "    int twice(int size) {\n        return size * 2;\n    }\n    int half() {\n        return size / 2;\n    }\n}\n",
    }, [("p/Pool.java", "    int size = 0;", ["`Pool.half` uses `size`"], ["twice"])]),
    "methods of an embedded type are those of the struct": (GO_SERVER, [
        ("s/server.go", "\ts.grow(k)", ["`base.grow`, called by `Accept`"], ["other"]),
        ("s/server.go", "\ts.Drop(k)", ["--- t/t.go\n@ 5 `Pool.Drop`, called by `Accept`"], ["s/pool.go"]),
        ("s/base.go", "\tb.n += check(k)", ["`Server.Accept` calls `grow`"], []),
    ]),
    "a method of an interface in go stands for its implementations": (GO_HANDLERS, [
        ("s/echo.go", "\treturn check(x)", ["`serve` calls `Handle`"], []),
        ("s/half.go", "\treturn half(x)", [], ["`serve`"]),
        ("s/text.go", "\treturn text(x)", [], ["`serve`"]),
        ("m/m.go", "\th.Handle(1, 2, nil)", ["`Handler.Handle`, called by `serve`", "`Echo.Handle`, called by `serve`"], ["s/half.go", "s/text.go"]),
    ]),
    "a called method without a body shows its implementation: Java": ({
        "p/Repo.java": "package p;\ninterface Repo extends Finder {\n}\ninterface Other {\n    int find(int n);\n}\n",
        "p/Finder.java": "package p;\ninterface Finder {\n    int find(int n);\n}\n",
        "p/Sql.java": "package p;\nclass Sql implements Repo {\n    public int find(int n) {\n        return n;\n    }\n}\n",
        "p/No.java": "package p;\nclass No implements Other {\n    public int find(int n) {\n        return 0;\n    }\n}\n",
        "q/Use.java": "package q;\nimport p.Repo;\nclass Use {\n    int use(Repo repo) {\n        return repo.find(1);\n    }\n}\n" + LONG,
    }, [("q/Use.java", "        return repo.find(1);", ["`Sql.find`, called by `use`"], ["p/No.java"])]),
    "a called method without a body shows its implementation: Rust": ({
        "src/a.rs": "pub trait Codec {\n    fn decode(&self, n: u8) -> u8;\n}\npub struct Plain;\nimpl Codec for Plain {\n    fn decode(&self, n: u8) -> u8 {\n        n\n    }\n}\npub struct No;\nimpl From<Codec> for No {\n    fn decode(&self, n: u8) -> u8 {\n        0\n    }\n}\n",
        "src/b.rs": "use crate::a::Codec;\nfn user(c: &dyn Codec) -> u8 {\n    c.decode(1)\n}\n" + LONG,
    }, [("src/b.rs", "    c.decode(1)", ["`Plain.decode`, called by `user`"], ["impl From"])]),
    "a type parameter is what it is bound to: Rust": ({
        "src/a.rs": "pub trait Codec {\n    fn name(&self) -> u8 {\n        check(1)\n    }\n}\n" + LONG,
        "src/b.rs": "use crate::a::Codec;\nfn used<C: Codec>(c: C) -> u8 {\n    c.name()\n}\nfn free<C: Other>(c: C) -> u8 {\n    c.name()\n}\nstruct Holder<C>\nwhere\n    C: Codec,\n{\n    c: C,\n}\nimpl<C: Codec> Holder<C> {\n    fn held(&self) -> u8 {\n        self.c.name()\n    }\n}\n",
    }, [("src/a.rs", "        check(1)", ["`used` calls `name`", "`Holder.held` calls `name`"], ["free"])]),
    "a type parameter is what it is bound to: Go": ({
        **GO_HANDLERS,
        "m/m.go": "package m\n\nimport \"e.com/a/s\"\n\nfunc user[T s.Handler](h T) {\n\th.Handle(1, 2, nil)\n}\n\nfunc other[T any](h T) {\n\th.Handle(1, 2, nil)\n}\n",
    }, [("s/echo.go", "\treturn check(x)", ["`user` calls `Handle`"], ["other"])]),
    "a type parameter is what it is bound to: Java": ({
        "src/com/x/Calc.java": JAVA_CALC + LONG,
        "src/q/Use.java": "package q;\nimport com.x.Calc;\nclass Use<T extends Calc> {\n    int f(T calc) {\n        return calc.add(2);\n    }\n    <U extends V> int g(U calc) {\n        return calc.add(2);\n    }\n}\n",
    }, [("src/com/x/Calc.java", "        return a;", ["`Use.f` calls `add`"], ["Use.g"])]),
    "a variant in the arguments of a macro is a use": ({
        "src/a.rs": "pub enum Kind {\n    First,\n    Second(u8),\n    Third,\n}\n" + LONG,
        "src/b.rs": "use crate::a::Kind;\nfn used(k: Kind) -> bool {\n    matches!(k, Kind::Second(_))\n}\nenum Other {\n    Second(u8),\n}\nfn unused(o: Other) -> bool {\n    matches!(o, Other::Second(_))\n}\n",
    }, [("src/a.rs", "    Second(u8),", ["matches!(k, Kind::Second(_))"], ["Other"])]),
    "a name in a literal is the field of its type: Go": ({
        "go.mod": "module e.com/a\n",
        "s/s.go": "package s\n\nconst Limit = 77\n\ntype Config struct {\n\tLimit int\n}\n",
        "m/m.go": "package m\n\nimport \"e.com/a/s\"\n\nconst Limit = 77\n\nvar c = s.Config{\n\tLimit: 3,\n}\n" + LONG,
    }, [("m/m.go", "\tLimit: 3,", ["type Config struct {\n     Limit int"], ["77"])]),
    "a name in a literal is the field of its type: Rust": ({
        "src/a.rs": "pub struct Config {\n    pub limit: u8,\n}\npub fn limit() -> u8 {\n    77\n}\n",
        "src/b.rs": "use crate::a::{limit, Config};\nfn make() -> Config {\n    Config {\n        limit: 3,\n    }\n}\n" + LONG,
    }, [("src/b.rs", "        limit: 3,", ["pub struct Config {\n     pub limit: u8,"], ["77"])]),
    "a name in a literal is the field of its type: C": ({
        "a.h": "struct config {\n    int limit;\n};\n",
        "b.c": "int limit(void)\n{\n    return 77;\n}\n",
        "c.c": "#include \"a.h\"\nstatic struct config c = {\n    .limit = 3,\n};\n" + LONG,
    }, [("c.c", "    .limit = 3,", ["struct config {\n     int limit;"], ["77"])]),
    "a pointer to a function in c stands for what it is set to": (C_OPS, [
        ("use.c", "    return o->read(1);", ["`ops.read`, called by `run`", "--- buf.c\n@ 2 `buf_read`, called by `run`"], ["other.c"]),
        ("ops.h", "    int (*read)(int n);", ["`buf_read` implements `ops.read`", "`run` calls `read`"], ["other.c", "unused"]),
    ]),
    "implementations of a changed method without a body are shown": ({
        "src/a.rs": "pub trait Codec {\n    fn decode(&self, n: u8) -> u8;\n}\n" + LONG,
        "src/b.rs": "use crate::a::Codec;\nstruct Plain;\nimpl Codec for Plain {\n    fn decode(&self, n: u8) -> u8 {\n        n\n    }\n}\n",
        "src/c.rs": "struct No;\nimpl No {\n    fn decode(&self, n: u8) -> u8 {\n        n\n    }\n}\n",
    }, [("src/a.rs", "    fn decode(&self, n: u8) -> u8;", ["`Plain.decode` implements `Codec.decode`"], ["src/c.rs"])]),
    "a reference to a method in java is a call": ({
        "src/com/x/Calc.java": JAVA_CALC + LONG,
        "src/q/Use.java": "package q;\nimport com.x.Calc;\nclass Use {\n    IntFunction used(Calc calc) {\n        return calc::add;\n    }\n    int add(int n) {\n        return 77;\n    }\n}\n",
    }, [("src/com/x/Calc.java", "        return a;", ["`Use.used` calls `add`"], [])]),
    "a reference to a method in java has a receiver": ({
        "src/com/x/Calc.java": JAVA_CALC,
        "src/q/Use.java": "package q;\nimport com.x.Calc;\nclass Use {\n    IntFunction used(Calc calc) {\n        return calc::add;\n    }\n    int add(int n) {\n        return 77;\n    }\n}\n" + LONG,
    }, [("src/q/Use.java", "        return calc::add;", [], ["77"])]),
    "a class in a class in java can be imported": ({
        "p/Limits.java": "package p;\nclass Limits {\n    enum Mode {\n        FAST,\n        SLOW\n    }\n}\n" + LONG,
        "q/Use.java": "package q;\nimport p.Limits.Mode;\nclass Use {\n    boolean slow(Mode mode) {\n        return mode == Mode.SLOW;\n    }\n}\n",
    }, [("p/Limits.java", "        SLOW", ["`Use.slow` uses `SLOW`"], [])]),
}
# fmt: on


@pytest.mark.parametrize(("files", "changes"), CASES.values(), ids=CASES)
def test_the_context_of_a_line(files: Mapping[str, str], changes: list[Change]) -> None:
    for path, new, present, absent in changes:
        text = shown(files, path, new)
        assert [part for part in present if part not in text] == [], text
        assert [part for part in absent if part in text] == [], text
