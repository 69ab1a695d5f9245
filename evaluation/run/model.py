"""The models of one command share a cache of replies and a budget; the benchmarks' own prompts.

Replies that were paid for are kept on disk, one file a reply, named by its key: the hash of model id, prompt (text
and parameters) and reply schema. ``batch import`` fills the same folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from bot import app
from bot.core.errors import ModelError, OperatorError
from bot.core.frozen import Frozen
from bot.models.budget import Budget, Budgeted, Limit, MemoryBudget, load_prices
from bot.models.conversation import strict
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt, Reply, Wrapper
from bot.settings import Settings
from evaluation.run.lines import write_file

T = TypeVar("T", bound=BaseModel)
log = logging.getLogger(__name__)

_KEY = re.compile(r"[0-9a-f]{32,64}")


class FolderStore:
    """A folder of replies as JSON text; several threads and processes may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> str | None:
        """The reply under a key; None if there is none. Raises OperatorError if it cannot be read."""
        file = self._file(key)
        try:
            return file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise OperatorError(f"{file}: cannot be read: {error}") from None

    def put(self, key: str, reply: str) -> None:
        """Store a reply. Raises OperatorError."""
        write_file(self._file(key), reply)

    def _file(self, key: str) -> Path:
        assert is_key(key)
        return self.folder / key[:2] / f"{key}.json"


def is_key(text: str) -> bool:
    """Return True if a text can name a reply: hex digits only, so that it can never lead out of the folder."""
    return _KEY.fullmatch(text) is not None


class Cut(Frozen):
    """Stored in place of a batch's reply that the limit cut."""

    finish_reason: Literal["length"] = "length"
    has_effort: bool = Field(description="less effort can change the answer")

    @classmethod
    def read(cls, content: str) -> Cut | None:
        """Parse what a store holds; None if it is a reply."""
        try:
            return cls.model_validate_json(content)
        except ValidationError:
            return None


class Cached(Wrapper):
    """Answers the very same question from the store, so that nothing is paid for twice; failures are not stored.

    A remembered reply keeps its usage.
    """

    def __init__(self, model: Model, store: FolderStore) -> None:
        super().__init__(model)
        self._store = store

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        key = cache_key(self._model.id, prompt, schema)
        if (content := self._store.get(key)) is not None:
            try:
                return Reply[schema].model_validate_json(content)  # type: ignore[valid-type]
            except ValidationError:
                if (cut := Cut.read(content)) is not None:
                    return self._after_cut(cut, prompt, schema)
                # Written for an older shape of the reply: ask again, and overwrite it.
        reply = self._model.complete(prompt, schema)
        try:
            self._store.put(key, reply.model_dump_json())
        except OperatorError as error:
            # The reply is paid for: the task is decided with it.
            log.warning("a reply is not kept: %s", error)
        return reply

    def _after_cut(self, cut: Cut, prompt: Prompt, schema: type[T]) -> Reply[T]:
        """Ask once more at low effort, as a live conversation does. Raises ModelError if that was done."""
        if prompt.effort == "low" or not cut.has_effort:
            raise ModelError(f"{self.id} was cut off after {prompt.max_tokens} tokens", "length")
        return self.complete(prompt.model_copy(update={"effort": "low"}), schema)


def is_cached(model: object) -> bool:
    """Return True if a cache keeps the model's replies."""
    return isinstance(model, Cached) or (isinstance(model, Wrapper) and is_cached(model._model))


def cache_key(model_id: str, prompt: Prompt, schema: type[BaseModel]) -> str:
    """Identifies a question put to a model: what is sent, which draw, to whom, in what shape. 32 hex digits."""
    shape = json.dumps(strict(schema), sort_keys=True)
    content = "\0".join((model_id, prompt.hash, schema.__name__, shape))
    return hashlib.sha256(content.encode()).hexdigest()[:32]


#: Providers whose replies cost nothing to get again: a copy would outlive its file.
NOT_KEPT = ("recorded:", "scripted:")


#: Prompts of the benchmarks (construction, judging, rewriting), beside the benchmark that asks them.
_PROMPTS = tuple(sorted(Path(__file__).parents[1].glob("*/prompts")))


def benchmark_prompts(folder: str | None = None) -> Prompts:
    """Return the benchmarks' own prompts, or files of the same name in ``folder``. Raises SettingsError."""
    return Prompts(None if folder is None else Path(folder), _PROMPTS)


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
        return self.cached(self.capped(app.build_model(self._environment, model_id)))

    def capped(self, model: Model) -> Model:
        """Refuses a call whose worst case would pass what is left."""
        if self._budget is None:
            return model
        prices = load_prices(self._environment.bouncer_prices_file)
        return Budgeted(model, prices.of(model.id), self._budget)

    def cached(self, model: Model) -> Model:
        if model.id.startswith(NOT_KEPT) and not self._always:
            return model
        return Cached(model, FolderStore(self._cache))
