"""A chain of models: who cannot answer is followed by the next; the reply names who did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from bot.core.actions import Usage
from bot.errors import BudgetExceeded, ModelError, TransientError
from bot.models.protocol import Model, Prompt, Reply

T = TypeVar("T", bound=BaseModel)


class Fallback:
    """Asks its models in order.

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
