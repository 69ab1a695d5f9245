"""The part of the style that a program can see.

It knows a fixed list of participles and words, and cannot tell good English from bad.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

FOLDERS = ("bot", "evaluation", "tests")

#: Participles that say what was done to a value and not what it is, and pronouns.
BAD_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        each them
        answered asked called chosen counted drafted found given held judged kept known listed made marked meant
        named noted opened said seen sent shown stored taken told tried wanted written
        """,
    )
)
#: Fields whose names stand in files that the evaluation writes or prints as JSON: they keep them.
FILE_FIELDS = frozenset({"answered", "kept"})
BAD_WORDS = re.compile(r"\b(nobody|somebody|whoever)\b", re.IGNORECASE)
BAD_OPENINGS = re.compile(r"(Whether|What|Who|Where)\b")
TEST_NAME_LENGTH = 70


def hits(source: str) -> Iterator[str]:
    """Yield each breach in a Python source, with its line."""
    tree = ast.parse(source)
    file_fields = set(_file_fields(tree))
    for node in ast.walk(tree):
        name, line = _binding(node)
        if name in BAD_NAMES and node not in file_fields:
            yield f"{line}: variable {name!r}"
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            docstring = ast.get_docstring(node) or ""
            line = node.body[0].lineno if node.body else 1
            if BAD_OPENINGS.match(docstring):
                yield f"{line}: docstring begins with {docstring.split()[0]!r}"
            if word := BAD_WORDS.search(docstring):
                yield f"{line}: docstring says {word[0]!r}"
        if (
            isinstance(node, ast.FunctionDef)
            and node.name.startswith("test_")
            and len(node.name) > TEST_NAME_LENGTH
        ):
            yield f"{node.lineno}: test name of {len(node.name)} characters"
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and (word := BAD_WORDS.search(token.string)):
            yield f"{token.start[0]}: comment says {word[0]!r}"


def _file_fields(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for part in node.body if isinstance(node, ast.ClassDef) else ():
            match part:
                case ast.AnnAssign(target=ast.Name(id=name)) if name in FILE_FIELDS:
                    yield part.target


def _binding(node: ast.AST) -> tuple[str, int]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id, node.lineno
    if isinstance(node, ast.arg):
        return node.arg, node.lineno
    return "", 0


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_is_clean(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 50
    assert [f"{file.relative_to(ROOT)}:{hit}" for file in files for hit in hits(file.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "source",
    [
        "found = 1\n",
        "for each in (): pass\n",
        "def f(known): pass\n",
        "class C:\n    kept = True\n",
        "x = 1  # nobody knows\n",
        'def f():\n    """Whether it is so."""\n',
        'class C:\n    """What it is."""\n',
        'def f():\n    """Return it, or None if somebody took it."""\n',
        f"def test_{'a' * 70}(): pass\n",
    ],
)
def test_breach_is_seen(source: str) -> None:
    assert len(list(hits(source))) == 1


def test_no_public_class_of_the_program_shares_its_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "bot").rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 100
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
