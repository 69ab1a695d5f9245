"""Which tests a change to a file adds or alters. Pure."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

from bot.reproduce.command import Target
from bot.reproduce.java.language import tests_by_text


@dataclass(frozen=True)
class Added:
    """The tests to run for one changed file.

    ``alone``: the targets are the added or altered tests and nothing else. Where a change touches data or
    helpers but no test, the whole file is the target, with tests in it that may fail for reasons of their own.
    """

    targets: tuple[Target, ...]
    alone: bool


def added_tests(path: str, before: str | None, after: str) -> Added | None:
    """What to run of ``path``, whose text was ``before`` (None = a new file); None where it holds no test."""
    tests = tests_by_text if path.endswith(".java") else _tests
    old = {} if before is None else tests(before)
    new = tests(after)
    if new is None:  # it does not parse: running it is what says so
        return Added((Target(path=path),), alone=True)
    if not new:
        return None
    if before is None or old is None:
        return Added((Target(path=path),), alone=before is None)
    names = tuple(name for name, text in new.items() if old.get(name) != text)
    if not names:
        return Added((Target(path=path),), alone=False)
    return Added(tuple(Target(path=path, name=name) for name in names), alone=True)


def _tests(text: str) -> dict[str, str] | None:
    """Tests by name (``TestC::test_d``) with their syntax; None where ``text`` does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: dict[str, str] = {}
    _collect(tree.body, "", found)
    return found


def _collect(body: list[ast.stmt], prefix: str, found: dict[str, str]) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found[prefix + node.name] = ast.dump(node)
        elif isinstance(node, ast.ClassDef):
            _collect(node.body, f"{prefix}{node.name}::", found)
