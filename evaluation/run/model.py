"""The models of one command share a cache of replies and a budget; the benchmarks' own prompts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bot import app
from bot.models.budget import Budget, Budgeted, Limit, MemoryBudget, load_prices
from bot.models.prompts import Prompts
from bot.models.protocol import Model
from bot.settings import Settings
from evaluation.run.cache import Cached, FolderStore

#: Providers whose replies cost nothing to get again: a copy would outlive its file.
NOT_KEPT = ("recorded:", "scripted:")


#: Prompts of the benchmarks (construction, judging, rewriting), beside the benchmark that asks them.
_PROMPTS = tuple(sorted(Path(__file__).parents[1].glob("*/prompts")))


def benchmark_prompts(folder: Path | None = None) -> Prompts:
    """Return the benchmarks' own prompts, or files of the same name in ``folder``. Raises SettingsError."""
    return Prompts(folder, _PROMPTS)


class Account:
    """Replies are kept in ``cache``; all models of the account may cost ``max_cost`` USD, None = no limit.

    ``spent`` of it is gone already; ``scope`` names in messages what the limit is on. Without ``always`` free
    replies are not kept.
    """

    def __init__(
        self,
        environment: Settings,
        cache: Path,
        max_cost: float | None,
        *,
        scope: str = "this command",
        spent: float = 0.0,
        always: bool = False,
    ) -> None:
        self._environment = environment
        self._cache = cache
        self._always = always
        self._budget: Budget | None = None
        if max_cost is not None:
            # A command that passes midnight is still one command: its budget's day never ends.
            started = datetime.now(UTC)
            limit = Limit(scope=scope, usd=max(0.0, max_cost - spent))
            self._budget = Budget(MemoryBudget(), (limit,), lambda: started)

    def model(self, model_id: str) -> Model:
        """The model of that id, asked again where that helps.

        Raises SettingsError if a key, a file or (with a limit) a price is missing.
        """
        return self.kept(self.capped(app.build_model(self._environment, model_id)))

    def capped(self, model: Model) -> Model:
        """Refuses a call whose worst case would pass what is left."""
        if self._budget is None:
            return model
        prices = load_prices(self._environment.bouncer_prices_file)
        return Budgeted(model, prices.of(model.id), self._budget)

    def kept(self, model: Model) -> Model:
        if model.id.startswith(NOT_KEPT) and not self._always:
            return model
        return Cached(model, FolderStore(self._cache))
