"""Methods under other names: the program does the same, or the name is refused with the reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.bloom.apply import Namer, mask_case
from evaluation.bloom.code_base import CannotMask, CodeBase, Kind, check
from evaluation.bloom.masking import mask_python, mask_report, patched_methods
from evaluation.bloom.masking_java import JavaCode, check_java, mask_java
from evaluation.brt.cases import Case
from evaluation.run.model import benchmark_prompts
from tests.evaluation.checkouts import checkouts, place
from tests.scripted import ScriptedModel

FUNCTION: frozenset[Kind] = frozenset({"function"})
METHOD: frozenset[Kind] = frozenset({"method"})

#: Every way in which a name is written that means the function, and that means something else.
PROGRAM = {
    "shop/__init__.py": "from .prices import total\n",
    "shop/prices.py": '''
"""Prices. Call total of this module."""
import math
__all__ = ["total", "key"]
if math:
    def total(items, key=None):
        return sum(key(each) if key else each for each in items)
else:
    total = None

def key(item):
    return -item

def shown(items, total=3):
    return f"{total} {key(2)!r:>{len(items)}} {sorted(items, key=key)}"

def outer(items):
    global total
    return {"total": total(items), "key": key}
''',
    "main.py": """
import shop, shop.prices as p
from shop.prices import *
from shop import prices, total as added
class Cart:
    total = 5
    def key(self): return 7
print(shop.total([1]), p.total([2], key=p.key), prices.total([3]), added([4]), total([5]))
print(p.shown([1, 3]), p.outer([6])["total"], getattr(p, "total")([7]), Cart().total, Cart().key(), "total")
from operator import methodcaller
print(methodcaller("total", [8])(prices), f"{total([9])}")
""",
}


def run(folder: Path, files: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=place(folder, files), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_masked_program_does_what_it_did(tmp_path: Path) -> None:
    code = CodeBase(PROGRAM)
    names = {"total": ("func_t", FUNCTION), "key": ("func_k", FUNCTION)}
    for name, (_, kinds) in names.items():
        check(name, kinds, code)

    masked = {path: mask_python(path, names, code) for path in PROGRAM}

    assert run(tmp_path / "masked", masked) == run(tmp_path / "plain", PROGRAM)
    assert "def func_t(items, key=None)" in masked["shop/prices.py"]
    assert "key=func_k" in masked["shop/prices.py"]
    assert 'f"{total} {func_k(2)!r:>{len(items)}}' in masked["shop/prices.py"]
    assert "Call total of this module" in masked["shop/prices.py"]


def test_a_method_is_renamed_where_its_class_family_is_meant(tmp_path: Path) -> None:
    files = {
        "main.py": """
import json, collections
class Base:
    def split_list(self): return 1
class Other(Base):
    def split_list(self): return super().split_list() + 1
    alias = split_list
def split_list(): return "function"
def use(x, split_list=4): return [x.split_list(), (lambda o: o.split_list())(x), split_list, Base.split_list(x)]
print(use(Other()), Other().alias(), split_list(), collections.OrderedDict(split_list=3))
"""
    }
    code = CodeBase(files)
    check("split_list", METHOD, code)

    masked = {"main.py": mask_python("main.py", {"split_list": ("func_x", METHOD)}, code)}

    assert run(tmp_path / "masked", masked) == run(tmp_path / "plain", files)
    assert masked["main.py"].count("func_x") == 7


@pytest.mark.parametrize(
    ("name", "source", "why"),
    [
        ("append", "class A:\n    def append(self): ...", "Python's own types"),
        ("__init__", "class A:\n    def __init__(self): ...", "called by Python itself"),
        ("run", "import threading\nclass A(threading.Thread):\n    def run(self): ...", "Thread, which calls run"),
        (
            "default",
            "from json import JSONEncoder\nclass A(JSONEncoder):\n    def default(self, o): ...",
            "JSONEncoder",
        ),
        (
            "run",
            "from threading import Thread\nclass A:\n    def run(self): ...\nclass B(A, Thread): ...",
            "B in m.py inherits from threading.Thread",
        ),
        (
            "is_alive",
            "import threading\nclass A:\n    def is_alive(self): ...\ndef f(t):\n    return t.is_alive()",
            "which may be threading.Thread.is_alive",
        ),
        ("visit_Name", "import ast\nclass A(ast.NodeVisitor):\n    def visit_Name(self, n): ...", "NodeVisitor"),
        (
            "visit_Name",
            "class A:\n    def visit(self, n):\n        return getattr(self, 'visit_' + n)()\n"
            "    def visit_Name(self): ...",
            "builds names like visit_",
        ),
        (
            "visit_Name",
            "class A:\n    def visit(self, n):\n        f = f'visit_{n}'\n        return getattr(self, f)()\n"
            "    def visit_Name(self): ...",
            "builds names like visit_",
        ),
        (
            "fit",
            "from sklearn import Base\nclass A(Base):\n    def fit(self): ...",
            "of which nothing is known here",
        ),
        ("size", "class A:\n    size: int = 1\nclass B:\n    def size(self): ...", "is a field of A"),
        ("size", "class B:\n    def size(self): ...\ndef f(b):\n    b.size = 3", "sets size as an attribute"),
    ],
)
def test_a_name_that_others_own_or_build_is_kept_with_the_reason(name: str, source: str, why: str) -> None:
    with pytest.raises(CannotMask, match=why):
        check(name, METHOD, CodeBase({"m.py": source}))


def test_a_name_that_is_own_or_imported_as_it_comes_is_refused() -> None:
    source = "try:\n    from fast import work\nexcept ImportError:\n    def work(): ...\nwork()\n"

    with pytest.raises(CannotMask, match="an own function or an imported one"):
        mask_python("m.py", {"work": ("func_w", FUNCTION)}, CodeBase({"m.py": source}))


def test_patched_methods_are_the_innermost_functions_that_differ() -> None:
    old = (
        "if True:\n    try:\n        def a(): return 1\n    finally:\n"
        "        class C:\n            def b(self): return 2\n"
    )
    assert patched_methods({"m.py": old}, {"m.py": old.replace("1", "3")}) == {"a": FUNCTION}
    assert patched_methods({"m.py": old}, {"m.py": old.replace("2", "3")}) == {"b": METHOD}
    assert patched_methods({"m.py": old}, {"m.py": f"{old}\ndef new(): ...\n"}) == {"new": FUNCTION}
    assert patched_methods({"m.py": old}, {"m.py": f"# only a comment\n{old}"}) == {}
    assert patched_methods({}, {"tests/test_m.py": "def test_a(): ...\n"}) == {}
    nested = "def outer():\n    def inner():\n        return 1\n    return inner()\n"
    assert patched_methods({"m.py": nested}, {"m.py": nested.replace("1", "2")}) == {"inner": FUNCTION}


def test_only_whole_words_of_a_report_are_masked() -> None:
    report = "`count` fails, counter and recount do not; my.count(1) does."
    masked = "`func_1` fails, counter and recount do not; my.func_1(1) does."
    assert mask_report(report, {"count": "func_1"}) == masked


def test_two_methods_never_get_one_name(tmp_path: Path) -> None:
    body = "def first(a):\n    return a + 1\n\n\ndef second(a):\n    return a + 2\n"
    trees = checkouts(tmp_path, {"sums.py": body}, {"sums.py": body.replace("+", "-")})
    case = Case(instance_id="x", **trees, command=("pytest",))
    model = ScriptedModel([{"name": "shift"}, {"name": "shift"}, {"name": "move"}])

    masked = mask_case(case, tmp_path / "out", Namer(model, benchmark_prompts()))

    assert masked.names == {"first": "func_shift", "second": "func_move"}


JAVA = {
    "src/main/java/A.java": r"""import java.util.*;
class A {
  int parse = 1; // parse
  @Column(parse = "parse") String parse(String text) {
    return this.parse(text) + parse + "parse" + p\u0061rse(text); }
  Object ref(Date d, Other o) { map(this::parse); d.parse(1); Integer.parse("x"); o.parse(); return new parse(); }
  Object more(A a) { "x".parse(); make().parse(); a.parse("x"); return A.class.getMethod("parse"); }
}
class Other { }
class B extends A { String parse(String t) { return super.parse(t); } }
class W extends Thread implements Comparable<W> { public void run() {} public int compareTo(W w) { return 0; } }
class L extends ArrayList<String> { public boolean contains(Object o) { return true; } }
class P extends Plugin { void start() {} }
@interface Column { String parse(); String title(); }
"""
}


def test_java_methods_are_renamed_where_they_are_meant() -> None:
    masked = mask_java("src/main/java/A.java", {"parse": "func_1"}, JavaCode(JAVA))

    before = JAVA["src/main/java/A.java"].splitlines()
    changed = [new for new, old in zip(masked.splitlines(), before, strict=True) if new != old]
    assert changed == [
        '  @Column(parse = "parse") String func_1(String text) {',
        '    return this.func_1(text) + parse + "parse" + func_1(text); }',
        "  Object ref(Date d, Other o) "
        '{ map(this::func_1); d.parse(1); Integer.parse("x"); o.parse(); return new parse(); }',
        '  Object more(A a) { "x".parse(); make().func_1(); a.func_1("x"); return A.class.getMethod("func_1"); }',
        "class B extends A { String func_1(String t) { return super.func_1(t); } }",
    ]


@pytest.mark.debian("default-jdk-headless")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("run", "inherits from Thread, which calls run itself"),
        ("compareTo", "inherits from Comparable"),
        ("contains", "inherits from ArrayList"),
        ("start", "inherits from Plugin, of which nothing is known here"),
        ("toString", "called by Java itself"),
        ("title", "an element of an annotation"),
    ],
)
def test_a_java_name_that_others_own_is_kept_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(CannotMask, match=why):
        check_java(name, JavaCode(JAVA))


@pytest.mark.debian("default-jdk-headless")
def test_a_class_of_the_working_directory_is_none_of_the_jdk(tmp_path: Path) -> None:
    place(tmp_path, {"demo/Plain.java": "package demo; public class Plain { public void start() {} }"})
    subprocess.run(["javac", "demo/Plain.java"], check=True)
    code = JavaCode({"A.java": "import demo.*;\nclass A extends Plain { void start() {} }\n"})

    with pytest.raises(CannotMask, match="inherits from Plain, of which nothing is known here"):
        check_java("start", code)


def test_patched_java_methods_are_those_whose_code_differs() -> None:
    old = JAVA["src/main/java/A.java"]
    assert patched_methods(JAVA, {"src/main/java/A.java": old.replace("d.parse(1)", "d.parse(2)")}) == {
        "ref": METHOD
    }
    assert patched_methods(JAVA, {"src/main/java/A.java": old.replace("// parse", "// other")}) == {}
    assert patched_methods(JAVA, {"src/main/java/A.java": old.replace("String parse", r"String p\u0061rse")}) == {}
