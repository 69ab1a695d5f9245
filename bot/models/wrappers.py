"""Models around models: one that asks again, a chain in which the next one answers, one that remembers."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from bot.core.actions import Usage
from bot.errors import BudgetExceeded, ModelError, TransientError
from bot.models.protocol import Model, Prompt, Reply
from bot.models.schema import strict

T = TypeVar("T", bound=BaseModel)

#: The longest pause between two tries, seconds.
LONGEST_SECONDS = 60.0


class Retried:
    """Tries again where that may help, ``attempts`` times; waits as it was asked to, else twice as long each time.

    A wait beyond ``LONGEST_SECONDS`` is not sat out: the TransientError is handed on, with its wait.
    """

    def __init__(
        self,
        model: Model,
        attempts: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._attempts = attempts
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
                wait = 2.0 ** (attempt - 1) if error.wait is None else error.wait
                if attempt == self._attempts or wait > LONGEST_SECONDS:
                    error.usage = spent if spent.calls else None
                    raise
                self._sleep(wait)
            else:
                return reply.model_copy(update={"usage": spent + reply.usage})
        raise AssertionError("attempts must be positive")


class Fallback:
    """Asks its models in order; the reply names who answered.

    Every failure falls through, except a spent budget: that one means not to ask at all. Where all fail, the
    error is a TransientError if one of them may succeed later, else the last ModelError. The usage of failed
    models is part of the reply's, or of the error's.
    """

    def __init__(self, models: tuple[Model, ...]) -> None:
        if not models:
            raise ValueError("a chain needs a model")
        self._models = models

    @property
    def id(self) -> str:
        return ",".join(model.id for model in self._models)

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        failures: list[ModelError | TransientError] = []
        for model in self._models:
            try:
                reply = model.complete(prompt, schema)
            except BudgetExceeded as error:
                error.usage = spent(failures)
                raise
            except (ModelError, TransientError) as error:
                failures.append(error)
            else:
                return reply.model_copy(update={"usage": (spent(failures) or Usage()) + reply.usage})
        raise failed(failures)


def spent(failures: Sequence[ModelError | TransientError]) -> Usage | None:
    """What failed questions cost together; None where nothing is known."""
    usages = [error.usage for error in failures if error.usage]
    return sum(usages, Usage()) if usages else None


def failed(failures: Sequence[ModelError | TransientError]) -> ModelError | TransientError:
    """The one error that stands for several: a TransientError where one of them may pass."""
    if len(failures) == 1:
        return failures[0]
    message = "; ".join(str(error) for error in failures)
    passing = [error for error in failures if isinstance(error, TransientError)]
    final: ModelError | TransientError
    if passing:
        # As soon as the first of them may be asked again; one that did not say when may be asked any time.
        waits = [error.wait for error in passing]
        final = TransientError(message, None if None in waits else min(wait or 0.0 for wait in waits))
    else:
        last = failures[-1]
        assert isinstance(last, ModelError)
        final = ModelError(message, last.reason)
    final.usage = spent(failures)
    return final


class ReplyStore(Protocol):
    """Keeps replies as JSON text by key; both methods may be called from several threads."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, reply: str) -> None: ...


class Cached:
    """Answers the very same question from the store, so that nothing is paid for twice; failures are not stored.

    A remembered reply keeps its usage.
    """

    def __init__(self, model: Model, store: ReplyStore) -> None:
        self._model = model
        self._store = store

    @property
    def id(self) -> str:
        return self._model.id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        key = cache_key(self._model.id, prompt, schema)
        if (known := self._store.get(key)) is not None:
            try:
                return Reply[schema].model_validate_json(known)  # type: ignore[valid-type]
            except ValidationError:
                pass  # written for an older shape of the reply: ask again, and overwrite it
        reply = self._model.complete(prompt, schema)
        self._store.put(key, reply.model_dump_json())
        return reply


def cache_key(model_id: str, prompt: Prompt, schema: type[BaseModel]) -> str:
    """Identifies a question put to a model: what is sent, which draw, to whom, in what shape. 32 hex digits."""
    shape = json.dumps(strict(schema), sort_keys=True)
    content = "\0".join((model_id, prompt.hash, schema.__name__, shape))
    return hashlib.sha256(content.encode()).hexdigest()[:32]
