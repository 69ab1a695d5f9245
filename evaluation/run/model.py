"""The models of a build and of a judge: replies kept on disk, and a cap on what they cost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bot.app import build_model
from bot.models.budget import Budget, Budgeted, Limit, MemoryBudget
from bot.models.cached import Cached
from bot.models.prices import load as load_prices
from bot.models.protocol import Model
from bot.ops.settings import Settings
from evaluation.run.cache import FolderStore


def asked_model(environment: Settings, model_id: str, cache: Path, max_cost: float | None) -> Model:
    """The model of that id; what it said is never paid for twice, and ``max_cost`` (USD) is never passed.

    Raises SettingsError where a key, a file or (with a cap) a price is missing.
    """
    model = build_model(environment, model_id)
    if max_cost is not None:
        started = datetime.now(UTC)
        limit = Limit(scope="this command", usd=max_cost)
        budget = Budget(MemoryBudget(), (limit,), lambda: started)
        model = Budgeted(model, load_prices(environment.bouncer_prices_file).of(model_id), budget)
    # A recorded reply costs nothing to get again, and a copy of it would outlive its file.
    return model if model_id.startswith("recorded:") else Cached(model, FolderStore(cache))
