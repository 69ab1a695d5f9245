"""The part of the style that a program can see, in the places that are clean already.

Most of the tree is not clean: when this check was written it had about 3,600 hits. ``CLEAN`` lists the files and
folders without any, and has to grow until it is the whole tree. The check knows a fixed list of participles and
words; it cannot tell good English from bad.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

CLEAN = (
    "bot",
    "evaluation/ambiguity",
    "evaluation/benchmark.py",
    "evaluation/bloom",
    "evaluation/bouncerbench",
    "evaluation/brt",
    "evaluation/calibration",
    "evaluation/cli.py",
    "evaluation/crbench",
    "evaluation/dataset.py",
    "evaluation/duplicates",
    "evaluation/git",
    "evaluation/report",
    "evaluation/run",
    "evaluation/statistics.py",
    "tests",
)

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


@pytest.mark.parametrize("place", CLEAN)
def test_clean_place_stays_clean(place: str) -> None:
    path = ROOT / place
    files: list[Path] = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    assert files, f"{place} is listed and has no files"
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


def test_plain_code_has_no_hits() -> None:
    assert list(hits('"""Count matches."""\n\nmatches = 1  # found in the file\n')) == []
    assert list(hits("class Row:\n    kept: bool\n")) == []
