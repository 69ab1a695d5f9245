"""A small project with a known bug, and a real sandbox for its tests."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from bot.reproduction.execution import SandboxHarness
from bot.reproduction.protocol import TestCommand
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits

REPORT = """\
split drops the rest

`split([1, 2, 3], 2)` from `shapes.lists` returns `[[1, 2]]`. I expect `[[1, 2], [3]]`.
"""

FILES = {
    "shapes/__init__.py": "",
    "shapes/lists.py": """
        def split(items, size):
            \"\"\"Pieces of ``size`` items.\"\"\"
            return [items[i * size : (i + 1) * size] for i in range(len(items) // size)]
        """,
    "shapes/area.py": """
        def area(width, height):
            return width * height
        """,
    "tests/test_lists.py": """
        from shapes.lists import split


        def test_split_even():
            assert split([1, 2, 3, 4], 2) == [[1, 2], [3, 4]]
        """,
    "tests/test_area.py": """
        from shapes.area import area


        def test_area():
            assert area(2, 3) == 6
        """,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a checkout whose ``split`` drops an incomplete last piece."""
    folder = tmp_path / "project"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())
    return folder


@pytest.fixture
def harness() -> SandboxHarness:
    """Return a harness: pytest of this interpreter, in bubblewrap."""
    command = TestCommand(argv=(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "{tests}"))
    # Without this interpreter's many plugins pytest starts ten times as fast.
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return SandboxHarness(
        sandbox=Bubblewrap(), command=command, env=env, limits=Limits(seconds=20, cpu_seconds=20)
    )
