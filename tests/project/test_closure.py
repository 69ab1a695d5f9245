"""The files of ``bot`` that a reader of a feature's handler may have to open: its import closure.

Imports for type checking count as well.
"""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest

from tests.conftest import ROOT

GOAL = 25
#: Handlers above the goal, with the size that they must not exceed.
LIMITS = {
    "duplicates": 27, "feedback": 26, "review": 69, "triage": 26, "verify": 50, "why": 41,
}  # fmt: skip


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("bot", cache_dir=None)


HANDLERS = sorted(ROOT.glob("bot/features/*/handler.py"))


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda path: path.parent.name)
def test_import_closure_of_a_handler_is_limited(handler: Path, graph: grimp.ImportGraph) -> None:
    feature = handler.parent.name
    module = f"bot.features.{feature}.handler"
    closure = {module, *graph.find_upstream_modules(module)}
    assert len(closure) <= LIMITS.get(feature, GOAL), sorted(closure)
