"""The files of ``bot`` that a reader of a feature's handler may have to open: its import closure."""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest

from tests.conftest import ROOT

GOAL = 25
#: Handlers above the goal, with the size that they must not exceed.
LIMITS = {"feedback": 42, "gate": 26, "reproduce": 57, "review": 89, "verify": 58, "watch": 36, "why": 43}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("bot", exclude_type_checking_imports=True)


HANDLERS = sorted(ROOT.glob("bot/features/*/handler.py"))


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda path: path.parent.name)
def test_import_closure_of_a_handler_is_limited(handler: Path, graph: grimp.ImportGraph) -> None:
    feature = handler.parent.name
    module = f"bot.features.{feature}.handler"
    closure = {module, *graph.find_upstream_modules(module)}
    assert len(closure) <= LIMITS.get(feature, GOAL), sorted(closure)
