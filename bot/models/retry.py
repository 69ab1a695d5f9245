"""A Model that asks again where a later try may succeed: for commands and experiments, which have no job queue."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from bot.core.actions import Usage
from bot.errors import TransientError
from bot.models.protocol import Model, Prompt, Reply

T = TypeVar("T", bound=BaseModel)


class Retried:
    """Tries ``attempts`` times, waiting as long as it was asked to, else twice as long each time.

    A wait beyond ``longest`` seconds is not sat out: the TransientError is handed on, with its wait.
    """

    def __init__(
        self,
        model: Model,
        attempts: int = 3,
        first: float = 1.0,
        longest: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._attempts = attempts
        self._first = first
        self._longest = longest
        self._sleep = sleep

    @property
    def id(self) -> str:
        return self._model.id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        spent = Usage()
        for attempt in range(1, self._attempts + 1):
            try:
                reply = self._model.complete(prompt, schema)
            except TransientError as error:
                spent += error.usage or Usage()
                wait = self._first * 2 ** (attempt - 1) if error.wait is None else error.wait
                if attempt == self._attempts or wait > self._longest:
                    error.usage = spent if spent.calls else None
                    raise
                self._sleep(wait)
            else:
                return reply.model_copy(update={"usage": spent + reply.usage})
        raise AssertionError("attempts must be positive")
