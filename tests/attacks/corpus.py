"""The attack corpus: one or more tables for each class; ``python -m tests.attacks`` counts.

A table says what must never happen, and below it by name what is tried to make it happen. It is in the module of
its tests; those of a running app, and of text that other tests post too, are in modules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
#: What must never happen -> name of an attack -> what is tried.
Table = Mapping[str, Mapping[str, T]]

#: Class of attacks -> the module with its tables.
CLASSES = {
    "webhook": "webhook",
    "commands": "commands",
    "model text": "model_text",
    "repository content": "test_repository",
    "configuration": "configuration",
    "changes and what is written for them": "test_changes",
    "the gate": "gate",
    "a bug's life": "test_life",
    "sandbox": "test_sandbox",
    "dashboard": "dashboard",
    "set-up": "test_setup",
    "diffs and file commands": "test_files",
    "source code": "test_code",
    "workflow": "test_action",
}


def tables(module: str) -> tuple[Table[Any], ...]:
    """Return the tables of a class."""
    module_tables: tuple[Table[Any], ...] = import_module(f"tests.attacks.{module}").TABLES
    return module_tables


def cases(table: Table[T]) -> Iterator[tuple[str, str, T]]:
    """Yield every attack: the result that must not happen, the name, and the input."""
    for never, attacks in table.items():
        for name, attack in attacks.items():
            yield never, name, attack


def params(table: Table[Any]) -> list[Any]:
    """Return the parameters ``never`` and ``attack`` of a test for every attack."""
    return [pytest.param(never, attack, id=name) for never, name, attack in cases(table)]


def named(table: Table[Any]) -> list[Any]:
    """Return the parameters ``never`` and ``name`` of a test about attacks that were made together."""
    return [pytest.param(never, name, id=name) for never, name, _ in cases(table)]
