# ruff: noqa: E501 - lines of code in other languages
"""Which code is shown beside a change in Go, Java, Rust and C, and which namesakes are not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bot.code.declarations import go_signature
from tests.bot.code.test_context import surroundings

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


def test_a_wrapped_value_in_rust_is_that_value() -> None:
    files = {
        "src/a.rs": "pub struct Store;\nimpl Store {\n    pub fn open(p: u8) -> Result<Self, u8> {\n        Ok(Store)\n    }\n"
        "    pub fn get(&self) -> u8 {\n        check(1)\n    }\n}\npub fn make() -> Result<Store, u8> {\n    Store::open(1)\n}\n"
        + LONG,
        "src/b.rs": "use crate::a::{make, Store};\nfn opened() -> u8 {\n    let s = Store::open(1).unwrap();\n    s.get()\n}\n"
        "fn made() -> Result<u8, u8> {\n    let s = make()?;\n    Ok(s.get())\n}\nfn other(o: &O) {\n    let s = o.open(1).unwrap();\n    s.get()\n}\n",
    }
    text = shown(files, "src/a.rs", "        check(1)")
    assert "`opened` calls `get`" in text
    assert "`made` calls `get`" in text
    assert "other" not in text


def test_a_variable_in_java_has_the_type_of_its_value() -> None:
    files = {
        "p/Store.java": "package p;\nclass Store {\n    static Store of(int n) {\n        return null;\n    }\n    int get() {\n        return check(1);\n    }\n}\n"
        + LONG,
        "p/Use.java": "package p;\nclass Use {\n    Store make() {\n        return null;\n    }\n    int a() {\n        var s = Store.of(1);\n        return s.get();\n    }\n"
        "    int b() {\n        var s = make();\n        return s.get();\n    }\n    int c() {\n        var s = other();\n        return s.get();\n    }\n}\n",
    }
    text = shown(files, "p/Store.java", "        return check(1);")
    assert "`Use.a` calls `get`" in text
    assert "`Use.b` calls `get`" in text
    assert "Use.c" not in text


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


def test_an_import_of_a_whole_package_gives_its_classes() -> None:
    use = (
        "package q;\nimport com.x.*;\nclass Use {\n    int f(Calc calc) {\n        return calc.add(2);\n    }\n}\n"
        + LONG
    )
    files = {"src/com/x/Calc.java": JAVA_CALC, "src/z/Calc.java": JAVA_CALC, "src/q/Use.java": use}
    text = shown(files, "src/q/Use.java", "        return calc.add(2);")
    assert "--- src/com/x/Calc.java\n@ 6 `Calc.add`, called by `f`" in text
    assert "src/z" not in text
    assert "package q" not in text


def test_constructors_that_call_a_changed_one_are_shown() -> None:
    child = "package com.x;\nclass Child extends Calc {\n    Calc other;\n    Child() {\n        super(3);\n    }\n    Child(int n) {\n        this();\n    }\n}\n"
    files = {"src/com/x/Calc.java": JAVA_CALC + LONG, "src/com/x/Child.java": child}
    text = shown(files, "src/com/x/Calc.java", "        check(n);")
    assert "@ 4 `Child.Child` calls `Calc`\n Child() {\n     super(3);\n }" in text
    assert "extends" not in text
    assert "this();" not in text
    files = {
        "src/a.ts": "export class Base {\n  constructor(n: number) {\n    check(n)\n  }\n}\n" + LONG,
        "src/b.ts": "import { Base } from './a'\nclass B extends Base {\n  constructor() {\n    super(1)\n  }\n}\nclass C extends D {\n  constructor() {\n    super(2)\n  }\n}\n",
    }
    text = shown(files, "src/a.ts", "    check(n)")
    assert "super(1)" in text
    assert "super(2)" not in text


def test_a_called_constructor_of_a_base_is_shown() -> None:
    child = "package com.x;\nclass Child extends Calc {\n    Child() {\n        super(3);\n    }\n}\n" + LONG
    files = {"src/com/x/Calc.java": JAVA_CALC + LONG, "src/com/x/Child.java": child}
    assert "`Calc.Calc`, called by `Child`\n public Calc(int n) {" in shown(
        files, "src/com/x/Child.java", "        super(3);"
    )


def test_a_package_clause_is_no_import() -> None:
    files = {"s/s.go": "package s\n\ntype T struct{}\n\nfunc (s *T) f(n int) {\n\ts.g(n)\n}\n" + LONG}
    assert "package s" not in shown(files, "s/s.go", "\ts.g(n)")


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


def test_uses_of_a_field_are_no_calls_of_the_method_of_its_name() -> None:
    use = "package p;\nclass Use {\n    int field(Pool pool) {\n        return pool.size;\n    }\n    int method(Pool pool) {\n        return pool.size();\n    }\n}\n"
    files = {"p/Pool.java": JAVA_POOL + "}\n", "p/Use.java": use}
    text = shown(files, "p/Pool.java", "    int size = 0;")
    assert "`Use.field` uses `size`" in text
    assert "Use.method" not in text
    text = shown(files, "p/Pool.java", "        return size;")
    assert "`Use.method` calls `size`" in text
    assert "Use.field" not in text
    use = "use crate::a::Pool;\nfn field(p: &Pool) -> u32 {\n    p.size\n}\nfn method(p: &Pool) -> u32 {\n    p.size()\n}\n"
    text = shown({"src/a.rs": RUST_POOL + "}\n", "src/b.rs": use}, "src/a.rs", "    pub size: u32,")
    assert "`field` uses `size`" in text
    assert "`method`" not in text


def test_a_parameter_in_java_is_not_the_field_of_its_name() -> None:
    use = "    int twice(int size) {\n        return size * 2;\n    }\n    int half() {\n        return size / 2;\n    }\n}\n"
    text = shown({"p/Pool.java": JAVA_POOL + LONG + use}, "p/Pool.java", "    int size = 0;")
    assert "`Pool.half` uses `size`" in text
    assert "twice" not in text


GO_SERVER = {
    "go.mod": "module e.com/a\n",
    "s/base.go": "package s\n\ntype base struct{ n int }\n\nfunc (b *base) grow(k int) {\n\tb.n += check(k)\n}\n\n"
    "type other struct{}\n\nfunc (o *other) grow(k int) {\n}\n" + LONG,
    "s/server.go": 'package s\n\nimport "e.com/a/t"\n\ntype Server struct {\n\t*base\n\tt.Pool\n}\n\nfunc (s *Server) Accept(k int) {\n\ts.grow(k)\n\ts.base.grow(1)\n\ts.Drop(k)\n}\n'
    + LONG,
    "s/pool.go": "package s\n\ntype Pool struct{}\n\nfunc (p *Pool) Drop(k int) {\n}\n",
    "t/t.go": "package t\n\ntype Pool struct{}\n\nfunc (p *Pool) Drop(n int) {\n}\n",
}


def test_methods_of_an_embedded_type_are_those_of_the_struct() -> None:
    text = shown(GO_SERVER, "s/server.go", "\ts.grow(k)")
    assert "`base.grow`, called by `Accept`" in text
    assert "other" not in text
    text = shown(GO_SERVER, "s/server.go", "\ts.Drop(k)")
    assert "--- t/t.go\n@ 5 `Pool.Drop`, called by `Accept`" in text
    assert "s/pool.go" not in text
    assert "`Server.Accept` calls `grow`" in shown(GO_SERVER, "s/base.go", "\tb.n += check(k)")


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


def test_a_method_of_an_interface_in_go_stands_for_its_implementations() -> None:
    assert "`serve` calls `Handle`" in shown(GO_HANDLERS, "s/echo.go", "\treturn check(x)")
    assert "`serve`" not in shown(GO_HANDLERS, "s/half.go", "\treturn half(x)")
    assert "`serve`" not in shown(GO_HANDLERS, "s/text.go", "\treturn text(x)")
    text = shown(GO_HANDLERS, "m/m.go", "\th.Handle(1, 2, nil)")
    assert "`Handler.Handle`, called by `serve`" in text
    assert "`Echo.Handle`, called by `serve`" in text
    assert "s/half.go" not in text
    assert "s/text.go" not in text


@pytest.mark.parametrize(
    ("files", "path", "new", "shows", "hides"),
    [
        (
            {
                "p/Repo.java": "package p;\ninterface Repo extends Finder {\n}\ninterface Other {\n    int find(int n);\n}\n",
                "p/Finder.java": "package p;\ninterface Finder {\n    int find(int n);\n}\n",
                "p/Sql.java": "package p;\nclass Sql implements Repo {\n    public int find(int n) {\n        return n;\n    }\n}\n",
                "p/No.java": "package p;\nclass No implements Other {\n    public int find(int n) {\n        return 0;\n    }\n}\n",
                "q/Use.java": "package q;\nimport p.Repo;\nclass Use {\n    int use(Repo repo) {\n        return repo.find(1);\n    }\n}\n"
                + LONG,
            },
            "q/Use.java",
            "        return repo.find(1);",
            "`Sql.find`, called by `use`",
            "p/No.java",
        ),
        (
            {
                "src/a.rs": "pub trait Codec {\n    fn decode(&self, n: u8) -> u8;\n}\npub struct Plain;\nimpl Codec for Plain {\n    fn decode(&self, n: u8) -> u8 {\n        n\n    }\n}\n"
                "pub struct No;\nimpl From<Codec> for No {\n    fn decode(&self, n: u8) -> u8 {\n        0\n    }\n}\n",
                "src/b.rs": "use crate::a::Codec;\nfn user(c: &dyn Codec) -> u8 {\n    c.decode(1)\n}\n" + LONG,
            },
            "src/b.rs",
            "    c.decode(1)",
            "`Plain.decode`, called by `user`",
            "impl From",
        ),
    ],
    ids=["java", "rust"],
)
def test_a_called_method_without_a_body_shows_its_implementation(
    files: Mapping[str, str], path: str, new: str, shows: str, hides: str
) -> None:
    text = shown(files, path, new)
    assert shows in text
    assert hides not in text


def test_a_type_parameter_is_what_it_is_bound_to() -> None:
    files = {
        "src/a.rs": "pub trait Codec {\n    fn name(&self) -> u8 {\n        check(1)\n    }\n}\n" + LONG,
        "src/b.rs": "use crate::a::Codec;\nfn used<C: Codec>(c: C) -> u8 {\n    c.name()\n}\nfn free<C: Other>(c: C) -> u8 {\n    c.name()\n}\n"
        "struct Holder<C>\nwhere\n    C: Codec,\n{\n    c: C,\n}\nimpl<C: Codec> Holder<C> {\n    fn held(&self) -> u8 {\n        self.c.name()\n    }\n}\n",
    }
    text = shown(files, "src/a.rs", "        check(1)")
    assert "`used` calls `name`" in text
    assert "`Holder.held` calls `name`" in text
    assert "free" not in text
    user = 'package m\n\nimport "e.com/a/s"\n\nfunc user[T s.Handler](h T) {\n\th.Handle(1, 2, nil)\n}\n\nfunc other[T any](h T) {\n\th.Handle(1, 2, nil)\n}\n'
    text = shown({**GO_HANDLERS, "m/m.go": user}, "s/echo.go", "\treturn check(x)")
    assert "`user` calls `Handle`" in text
    assert "other" not in text
    use = "package q;\nimport com.x.Calc;\nclass Use<T extends Calc> {\n    int f(T calc) {\n        return calc.add(2);\n    }\n    <U extends V> int g(U calc) {\n        return calc.add(2);\n    }\n}\n"
    text = shown(
        {"src/com/x/Calc.java": JAVA_CALC + LONG, "src/q/Use.java": use},
        "src/com/x/Calc.java",
        "        return a;",
    )
    assert "`Use.f` calls `add`" in text
    assert "Use.g" not in text


def test_a_variant_in_the_arguments_of_a_macro_is_a_use() -> None:
    files = {
        "src/a.rs": "pub enum Kind {\n    First,\n    Second(u8),\n    Third,\n}\n" + LONG,
        "src/b.rs": "use crate::a::Kind;\nfn used(k: Kind) -> bool {\n    matches!(k, Kind::Second(_))\n}\nenum Other {\n    Second(u8),\n}\nfn unused(o: Other) -> bool {\n    matches!(o, Other::Second(_))\n}\n",
    }
    text = shown(files, "src/a.rs", "    Second(u8),")
    assert "matches!(k, Kind::Second(_))" in text
    assert "Other" not in text


@pytest.mark.parametrize(
    ("files", "path", "new", "shows"),
    [
        (
            {
                "go.mod": "module e.com/a\n",
                "s/s.go": "package s\n\nconst Limit = 77\n\ntype Config struct {\n\tLimit int\n}\n",
                "m/m.go": 'package m\n\nimport "e.com/a/s"\n\nconst Limit = 77\n\nvar c = s.Config{\n\tLimit: 3,\n}\n'
                + LONG,
            },
            "m/m.go",
            "\tLimit: 3,",
            "type Config struct {\n     Limit int",
        ),
        (
            {
                "src/a.rs": "pub struct Config {\n    pub limit: u8,\n}\npub fn limit() -> u8 {\n    77\n}\n",
                "src/b.rs": "use crate::a::{limit, Config};\nfn make() -> Config {\n    Config {\n        limit: 3,\n    }\n}\n"
                + LONG,
            },
            "src/b.rs",
            "        limit: 3,",
            "pub struct Config {\n     pub limit: u8,",
        ),
        (
            {
                "a.h": "struct config {\n    int limit;\n};\n",
                "b.c": "int limit(void)\n{\n    return 77;\n}\n",
                "c.c": '#include "a.h"\nstatic struct config c = {\n    .limit = 3,\n};\n' + LONG,
            },
            "c.c",
            "    .limit = 3,",
            "struct config {\n     int limit;",
        ),
    ],
    ids=["go", "rust", "c"],
)
def test_a_name_in_a_literal_is_the_field_of_its_type(
    files: Mapping[str, str], path: str, new: str, shows: str
) -> None:
    text = shown(files, path, new)
    assert shows in text
    assert "77" not in text


C_OPS = {
    "ops.h": "struct ops {\n    int (*read)(int n);\n    void (*drop)(int n);\n};\n" + LONG,
    "buf.c": '#include "ops.h"\nint buf_read(int n)\n{\n    return n;\n}\nstatic const struct ops table = {\n    .read = buf_read,\n};\n',
    "other.c": "struct other {\n    int (*read)(int n);\n};\nint no_read(int n)\n{\n    return 0;\n}\nstatic struct other o = {\n    .read = no_read,\n};\n",
    "use.c": '#include "ops.h"\nint run(struct ops *o)\n{\n    return o->read(1);\n}\nint unused(struct x *o)\n{\n    return o->read(2);\n}\n'
    + LONG,
}


def test_a_pointer_to_a_function_in_c_stands_for_what_it_is_set_to() -> None:
    text = shown(C_OPS, "use.c", "    return o->read(1);")
    assert "`ops.read`, called by `run`" in text
    assert "--- buf.c\n@ 2 `buf_read`, called by `run`" in text
    assert "other.c" not in text
    text = shown(C_OPS, "ops.h", "    int (*read)(int n);")
    assert "`buf_read` implements `ops.read`" in text
    assert "`run` calls `read`" in text
    assert "other.c" not in text
    assert "unused" not in text


def test_implementations_of_a_changed_method_without_a_body_are_shown() -> None:
    files = {
        "src/a.rs": "pub trait Codec {\n    fn decode(&self, n: u8) -> u8;\n}\n" + LONG,
        "src/b.rs": "use crate::a::Codec;\nstruct Plain;\nimpl Codec for Plain {\n    fn decode(&self, n: u8) -> u8 {\n        n\n    }\n}\n",
        "src/c.rs": "struct No;\nimpl No {\n    fn decode(&self, n: u8) -> u8 {\n        n\n    }\n}\n",
    }
    text = shown(files, "src/a.rs", "    fn decode(&self, n: u8) -> u8;")
    assert "`Plain.decode` implements `Codec.decode`" in text
    assert "src/c.rs" not in text


def test_a_reference_to_a_method_in_java_has_a_receiver() -> None:
    use = "package q;\nimport com.x.Calc;\nclass Use {\n    IntFunction used(Calc calc) {\n        return calc::add;\n    }\n    int add(int n) {\n        return 77;\n    }\n}\n"
    text = shown(
        {"src/com/x/Calc.java": JAVA_CALC + LONG, "src/q/Use.java": use},
        "src/com/x/Calc.java",
        "        return a;",
    )
    assert "`Use.used` calls `add`" in text
    files = {"src/com/x/Calc.java": JAVA_CALC, "src/q/Use.java": use + LONG}
    assert "77" not in shown(files, "src/q/Use.java", "        return calc::add;")


def test_a_class_in_a_class_in_java_can_be_imported() -> None:
    limits = "package p;\nclass Limits {\n    enum Mode {\n        FAST,\n        SLOW\n    }\n}\n" + LONG
    use = "package q;\nimport p.Limits.Mode;\nclass Use {\n    boolean slow(Mode mode) {\n        return mode == Mode.SLOW;\n    }\n}\n"
    assert "`Use.slow` uses `SLOW`" in shown(
        {"p/Limits.java": limits, "q/Use.java": use}, "p/Limits.java", "        SLOW"
    )


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
    assert isinstance(go_signature(head, "F"), tuple)
