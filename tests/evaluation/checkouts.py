"""A bug as two checkouts, before and after its fix, and as a case in a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: The fields of a case in the working directory whose tests pytest runs, without the plugins around these tests.
CASE: dict[str, Any] = {
    "base": "base",
    "fixed": "fixed",
    "command": [sys.executable, "-m", "pytest", "-q", "{tests}"],
    "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
}
#: The same with unittest, which starts in a third of the time.
UNITTEST_CASE: dict[str, Any] = {
    "base": "base",
    "fixed": "fixed",
    "command": [sys.executable, "-m", "unittest", "-q", "{tests}"],
}
#: The beginning of a draft of one test for it, up to the test's first statement.
UNITTEST_HEAD = """\
import unittest
from lists import {name}

class RestTest(unittest.TestCase):
    def test_rest(self):
        """


def place(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder; return the folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def checkouts(folder: Path, base: Mapping[str, str], fixed: Mapping[str, str]) -> dict[str, Path]:
    """Write the folders ``base`` and ``fixed``; return them by name."""
    return {"base": place(folder / "base", base), "fixed": place(folder / "fixed", fixed)}
