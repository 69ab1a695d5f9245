"""A draft goes into an existing test file in that file's own style, and nothing in the file changes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bot.reproduction.attempt import Trial
from bot.reproduction.context import Checkout, choose_host
from bot.reproduction.execution import SandboxHarness
from bot.reproduction.language import DraftRejected
from bot.reproduction.python.language import Python

PYTHON = Python()
#: The names of a repository of which nothing is known.
UNKNOWN = PYTHON.names({}, {})

FUNCTIONS = """\
# licence
import os
from pkg import Table

SIZE = 5


def test_a():
    assert 'a' == 'a'


if __name__ == '__main__':
    test_a()
"""

UNITTEST = """\
from django.test import SimpleTestCase, TestCase

from .models import Book


class PathTests(SimpleTestCase):
  def test_path(self):
    self.assertTrue("path")


class BookTests(TestCase):
  def test_title(self):
    self.assertEqual(Book(title="x").title, "x")

"""


def inject_draft(draft: str, host: str, name: str | None = "test_issue_12") -> tuple[str, str]:
    injected = PYTHON.inject(draft, host, name, UNKNOWN)
    assert_only_added(host, injected.content)
    return injected.content, injected.name


def assert_only_added(host: str, content: str) -> None:
    compile(content, "host", "exec", dont_inherit=True)
    ended = host if host.endswith("\n") or not host else host + ("\r\n" if "\r\n" in host else "\n")
    rest = iter(_lines(content))
    assert all(line in rest for line in _lines(ended)), "the host is not a subsequence of the result"


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


def test_a_function_joins_functions_and_brings_its_imports_and_helpers() -> None:
    draft = """
```python
import numpy as np
import unused
from pkg import Table

DATA = [1]

def test_empty():
    # the report's own example
    assert Table.read(DATA, np) == "empty"

def test_something_else():
    pass
```
"""
    content, test_id = inject_draft(draft, FUNCTIONS)

    assert test_id == "test_issue_12"
    assert content == FUNCTIONS.replace("Table\n", "Table\nimport numpy as np\n").replace(
        "if __name__",
        "DATA = [1]\n\n\ndef test_issue_12():\n    # the report's own example\n"
        '    assert Table.read(DATA, np) == "empty"\n\n\nif __name__',
    )


def test_a_method_moves_into_the_class_with_the_same_base() -> None:
    draft = """
from django.test import TestCase
from books.models import Novel

class TestReport(TestCase):
    def test_it(self):
        self.assertEqual(Novel(title='''
y''').title, "x")
"""
    content, test_id = inject_draft(draft, UNITTEST)

    assert test_id == "BookTests::test_issue_12"
    assert "from books.models import Novel\n" in content
    assert content.endswith(
        '    self.assertEqual(Book(title="x").title, "x")\n'
        "\n"
        "  def test_issue_12(self):\n"
        "    self.assertEqual(Novel(title='''\n"
        "y''').title, \"x\")\n"
        "\n"
    )


@pytest.mark.parametrize(
    ("host", "test_id", "draft", "added"),
    [
        (UNITTEST, "BookTests::test_issue_12", "def test_it(): Book()\n", "  def test_issue_12(self): Book()\n"),
        (UNITTEST, "test_issue_12", "def test_it(a):\n  pass\n", "def test_issue_12(a):\n  pass\n"),
        (FUNCTIONS, "test_issue_12", "class TestX:\n  def test_it(self, a): a\n", "def test_issue_12(a): a\n"),
    ],
    ids=["methods alone", "a fixture", "functions alone"],
)
def test_a_test_becomes_a_method_or_function_like_its_neighbours(
    host: str, test_id: str, draft: str, added: str
) -> None:
    content, injected_id = inject_draft(draft, host)
    assert injected_id == test_id
    assert f"\n{added}" in content


def test_a_method_gets_a_name_that_no_asynchronous_method_has() -> None:
    host = (
        "import unittest\n\n\nclass FetchTests(unittest.IsolatedAsyncioTestCase):\n"
        "    async def test_fetch(self):\n        self.assertTrue(True)\n"
    )
    content, test_id = inject_draft("def test_fetch():\n    assert 1 == 2\n", host, None)
    assert test_id == "FetchTests::test_fetch_2"
    assert content.startswith(host)


ASYNCHRONOUS = "    async def test_b(self):\n        assert True\n"


@pytest.mark.parametrize(("others", "test_id"), [("", "test_it"), (ASYNCHRONOUS, "FetchTests::test_it")])
def test_an_asynchronous_function_joins_only_a_class_that_awaits_its_tests(others: str, test_id: str) -> None:
    host = f"from base import TestCase\n\n\nclass FetchTests(TestCase):\n    def test_a(self): pass\n{others}"
    assert inject_draft("async def test_it():\n    assert await anext(x for x in ())\n", host, None)[1] == test_id


def test_a_class_with_its_own_set_up_is_added_as_a_whole() -> None:
    draft = """
import unittest

class ReportTests(unittest.TestCase):
    def setUp(self):
        self.book = Book()

    def test_it(self):
        self.assertTrue(self.book)

    def test_other(self):
        pass
"""
    content, test_id = inject_draft(draft, UNITTEST)

    assert test_id == "ReportTests::test_issue_12"
    assert "import unittest\n" in content
    assert "test_other" not in content


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        ("def test_x(:\n    pass\n", "it does not parse: line 1"),
        ("def check():\n    pass\n", "it defines no test"),
        ("I cannot do that.", "it does not parse"),
        ("from pkg import *\ndef test_x():\n    pass\n", "import the names"),
        ("run_everything()\ndef test_x():\n    pass\n", "runs on import"),
        ("def test_x():\n    assert frobnicate() == 3\n", "it uses `frobnicate` without importing it"),
        ("def test_x():\n    return await f()\n", "it does not parse"),
        ("def test_x():\n    s = '\x00'\n", "it does not parse"),
        ("def test_x():\n    assert not x or(lambda: y)\n", "it does not parse"),
        ("def test_x():\n    x = " + "lambda: " * 2_000 + "1\n", "it is nested more than 100 deep"),
        ("def test_x():\n    x = " + "[" * 150 + "]" * 150 + "\n", "it is nested more than 100 deep"),
        ("def test_x():\n    x = 1\n" + "    x = 2\n" * 2_500, "it has 25,024 characters"),
        ("import pytest\npytestmark = pytest.mark.slow\ndef test_x():\n    pass\n", "`pytestmark` would mark"),
        ("import pkg.io as os\ndef test_x():\n    assert os\n", "`os` means something else"),
        ("from other import open\ndef test_x():\n    assert open\n", "`open` means something else"),
        ("SIZE = 3\n\ndef test_x():\n    assert SIZE\n", "`SIZE` means something else"),
        ("class Table:\n    def test_x(self):\n        self.x()\n", "`Table` means something else"),
    ],
)
def test_an_unusable_draft_is_refused_with_the_reason(draft: str, reason: str) -> None:
    with pytest.raises(DraftRejected, match=reason):
        PYTHON.inject(draft, FUNCTIONS, None, UNKNOWN)


def test_a_file_that_only_python_itself_can_read_takes_a_test() -> None:
    host = "y = False or(lambda: 1)\n\n\ndef test_b():\n    assert y\n"
    assert PYTHON.inject("def test_a():\n    assert 1\n", host, None, UNKNOWN).content.startswith(host)


@pytest.mark.parametrize("host", ["", "import os\n\n\ndef test_b():\n    assert os\n"])
def test_a_byte_order_mark_stays_at_the_beginning(host: str) -> None:
    draft = "import sys\n\n\ndef test_a():\n    assert sys\n"
    plain = PYTHON.inject(draft, host, None, UNKNOWN)
    assert PYTHON.inject(draft, f"\ufeff{host}", None, UNKNOWN).content == f"\ufeff{plain.content}"
    assert PYTHON.tests_in(f"\ufeff{host}") == PYTHON.tests_in(host)


def test_standard_and_repository_names_are_imported() -> None:
    class Known:
        def provider(self, name: str) -> str | None:
            return "from pkg.shapes import Circle" if name == "Circle" else None

    draft = "def test_x():\n    with pytest.raises(ValueError):\n        Circle(math.pi)\n"

    injected = PYTHON.inject(draft, FUNCTIONS, None, Known())

    assert "from pkg import Table\nfrom pkg.shapes import Circle\nimport math\nimport pytest\n" in injected.content


def test_a_draft_that_does_not_fit_gets_a_new_file_beside_the_host(harness: SandboxHarness) -> None:
    files = {"tests/a/test_table.py": "import pkg as os\n\n\ndef test_a():\n    assert os\n", "setup_tests.py": ""}
    draft = "import os.path\n\ndef test_x():\n    assert os.path.sep\n"

    checkout = Checkout(Path(), files, files, tuple(files))
    trial = Trial(checkout, PYTHON, harness, "tests/a/test_table.py", "test_issue_7", UNKNOWN, deadline=0)

    candidate = trial.place(3, draft)

    assert candidate.path == "tests/a/test_issue_7.py"
    assert candidate.name == "test_issue_7"
    assert candidate.new_file
    assert candidate.content == "import os.path\n\n\ndef test_issue_7():\n    assert os.path.sep\n"


def test_the_most_similar_test_file_is_the_host() -> None:
    files = {
        "tests/test_table.py": "def test_read():\n    assert Table.read('x')\n",
        "tests/test_units.py": "def test_metre():\n    assert Unit('m')\n",
        "tests/test_empty.py": "",
    }

    assert choose_host("Table.read of an empty file", files) == "tests/test_table.py"
    assert choose_host("zzz", files) is None


def test_test_files_are_recognised_by_name() -> None:
    test_paths = ["tests/test_a.py", "a/b_test.py", "app/tests.py", "a/test.py", "a/b_tests.py"]
    others = ["tests/conftest.py", "tests/__init__.py", "contest.py", "test_a.pyc", "testing/util.py"]

    assert all(map(PYTHON.is_test_file, test_paths))
    assert not any(map(PYTHON.is_test_file, others))


def test_drafts_that_differ_in_layout_are_equal_and_others_are_not() -> None:
    base = "import os\ndef test_a():\n    '''doc'''\n    assert f(1) == 2  # why\n"
    other = "def test_b():\n\n    assert f( 1 )==2\n"

    assert PYTHON.syntax(base) == PYTHON.syntax(other)
    assert PYTHON.syntax(base) != PYTHON.syntax("def test_a():\n    assert f(1) == 3\n")
    assert PYTHON.length(base) > PYTHON.length(other) > 5


@pytest.mark.parametrize(
    ("assertion", "inverted"),
    [
        ("assert f() == 3", "assert f() != 3"),
        ("assert (x is None)", "assert x is not None"),
        ("assert a in b, 'why'", "assert a not in b, 'why'"),
        ("assert not f()", "assert f()"),
        ("assert a and b", "assert not (a and b)"),
        ("assert 1 < f() < 3", "assert not 1 < f() < 3"),
        ("self.assertEqual(f(), 3)", "self.assertNotEqual(f(), 3)"),
        ("self.assertIsNone(f())", "self.assertIsNotNone(f())"),
        ("with pytest.raises(ValueError):\n        f()", "f()"),
        (
            "with raises(E):\n        for x in y:\n            f('\\d')  # why",
            "for x in y:\n        f('\\\\d')  # why",
        ),
        ("a = 'é'; assert a == 1; b = 2  # why", "a = 'é'; assert a != 1; b = 2  # why"),
        ("assert a == 1\n    assert b == 2", "assert a == 1\n    assert b != 2"),
    ],
)
def test_the_last_assertion_of_a_passing_test_is_inverted(assertion: str, inverted: str) -> None:
    before, after = f"def test_x():\n    {assertion}\n", f"def test_x():\n    {inverted}\n"

    assert PYTHON.invert(before) == after


def test_a_test_without_an_assertion_cannot_be_inverted() -> None:
    assert PYTHON.invert("def test_x():\n    f()\n") is None
    assert PYTHON.invert("def helper():\n    assert 1\n\ndef test_x():\n    helper()\n") is None


NAMES = st.sampled_from(["a", "np", "os", "Table", "test_x", "TestX", "open", "data", "pytest"])
IMPORTS = st.one_of(
    st.builds("import {}\n".format, NAMES),
    st.builds("import {} as {}\n".format, NAMES, NAMES),
    st.builds("import {}.{}\n".format, NAMES, NAMES),
    st.builds("from {} import {}\n".format, NAMES, NAMES),
    st.builds("from .{} import {} as {}\n".format, NAMES, NAMES, NAMES),
)
BODIES = st.builds("assert {} == {!r}\n".format, NAMES, st.sampled_from(["x", "it's", 'say "x"', 3, None]))
FUNCTION = st.builds("def {}():\n    {}".format, NAMES, BODIES)
CLASS = st.builds("class {}({}):\n    def {}(self):\n        {}".format, NAMES, NAMES, NAMES, BODIES)
ASSIGNMENT = st.builds("{} = 1\n".format, NAMES)
BLOCKS = st.lists(
    st.one_of(FUNCTION, CLASS, ASSIGNMENT, IMPORTS, st.just("# note\n"), st.just('"""doc"""\n')), max_size=8
)
TEST = st.one_of(
    st.builds("def test_{}():\n    {}".format, NAMES, BODIES),
    st.builds(
        "class Test{}({}):\n    def test_{}(self):\n        self.x()\n        {}".format, *3 * [NAMES], BODIES
    ),
)


def bindings(tree: ast.Module) -> dict[str, list[str]]:
    """Return the values of each module-level name, in order."""
    bound: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                module = getattr(node, "module", None) or (alias.name if alias.asname else name)
                bound.setdefault(name, []).append(
                    f"{module}:{alias.name if isinstance(node, ast.ImportFrom) else ''}"
                )
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.setdefault(node.name, []).append(f"line {ast.dump(node)}")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                bound.setdefault(ast.unparse(target), []).append(ast.dump(node))
    return bound


@settings(max_examples=250, deadline=None)
@given(
    host=st.builds("".join, BLOCKS),
    draft=st.builds(
        lambda blocks, test: "".join([*blocks, test]),
        st.lists(st.one_of(IMPORTS, ASSIGNMENT, FUNCTION), max_size=4),
        TEST,
    ),
    newline=st.sampled_from(["\n", "\r\n"]),
    ended=st.booleans(),
)
def test_additions_never_change_what_the_host_binds(host: str, draft: str, newline: str, ended: bool) -> None:
    host = host.replace("\n", newline)
    host = host if ended else host.rstrip("\r\n")
    try:
        injected = PYTHON.inject(draft, host, "test_issue_1", UNKNOWN)
    except DraftRejected:
        assume(False)
        return
    assert_only_added(host, injected.content)
    before, after = bindings(ast.parse(host)), bindings(ast.parse(injected.content))
    grown = injected.name.partition("::")[0] if "::" in injected.name else None
    for name, values in before.items():
        if name != grown:
            assert after[name] == values or set(after[name]) == set(values), name
    assert find_test(ast.parse(injected.content), injected.name) == 1
    if "\n" in host:
        assert set(re.findall(r"\r?\n", injected.content)) == {newline}


def find_test(tree: ast.Module, test_id: str) -> int:
    """Count the definitions of a test id."""
    scope: list[list[ast.stmt]] = [tree.body]
    for part in test_id.split("::"):
        matches = [node for body in scope for node in body if getattr(node, "name", None) == part]
        scope = [getattr(node, "body", []) for node in matches]
    return len(scope)
