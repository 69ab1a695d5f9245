"""A model that is not asked twice by one job: its replies are recorded before they are returned."""

from __future__ import annotations

from typing import TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from bot.core.actions import Usage
from bot.errors import ModelError, TransientError
from bot.models.protocol import Model, Prompt, Reply
from bot.store.calls import Calls

T = TypeVar("T", bound=BaseModel)

_log = structlog.get_logger(__name__)


class AskOnce:
    """Asks ``model`` for what this job has not been told yet. Safe to use from several threads."""

    def __init__(self, model: Model, calls: Calls, job: str) -> None:
        self._model = model
        self._calls = calls
        self._job = job

    @property
    def id(self) -> str:
        return self._model.id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        """As ``Model.complete``. A remembered reply carries the usage of the time when it was paid for."""
        known = self._calls.reply(self._job, prompt.hash, schema.__name__)
        if known is not None:
            try:
                return Reply[schema].model_validate_json(known)  # type: ignore[valid-type]
            except ValidationError:
                # Of another version of the program, which asked for something else.
                _log.warning("reply_unreadable", job=self._job, purpose=prompt.purpose)
        try:
            reply = self._model.complete(prompt, schema)
        except (ModelError, TransientError) as error:
            failure = f"{error.reason if isinstance(error, ModelError) else 'transient'}: {error}"
            spent = error.usage or Usage()
            self._calls.record(
                self._job, prompt, schema.__name__, self._model.id, spent, reply=None, error=failure
            )
            raise
        self._calls.record(
            self._job, prompt, schema.__name__, reply.model, reply.usage, reply=reply.model_dump_json()
        )
        return reply
