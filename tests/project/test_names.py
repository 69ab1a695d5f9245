"""A name stands for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.conftest import ROOT


def test_no_public_class_of_the_program_shares_its_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "bot").rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 100
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
