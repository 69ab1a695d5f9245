"""The files of ``bot`` that a reader of a feature's handler may have to open: its import closure.

Imports for type checking count as well. What a handler is given by its feature's declaration does not.
"""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest

from tests.conftest import ROOT

MOST = 25


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("bot", cache_dir=None)


HANDLERS = sorted(ROOT.glob("bot/features/*/handler.py"))


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda path: path.parent.name)
def test_import_closure_of_a_handler_is_limited(handler: Path, graph: grimp.ImportGraph) -> None:
    module = f"bot.features.{handler.parent.name}.handler"
    closure = {module, *graph.find_upstream_modules(module)}
    assert len(closure) <= MOST, sorted(closure)
