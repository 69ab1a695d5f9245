"""The interface of language models: one prompt, one schema, one typed reply."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, Field

from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ModelError
from bot.core.frozen import Frozen

T = TypeVar("T", bound=BaseModel)

Effort = Literal["low", "medium", "high"]


class Prompt(Frozen):
    """One question, complete: two equal prompts deserve the same answer."""

    purpose: str = Field(description="the purpose of the question, e.g. ``triage``; recorded, counted, and shown")
    system: str
    user: str
    subject: str = Field("", description="owner/name#number or a benchmark's instance id; keys recorded replies")
    temperature: float | None = Field(0.0, description="None = provider default; reasoning models ignore it")
    max_tokens: int = Field(4000, gt=0, description="completion limit, tokens (BouncerBench, IV.A)")
    effort: Effort = Field("medium", description="for reasoning models (BouncerBench, IV.A)")
    sample: int = Field(0, ge=0, description="which of several draws from the same question")
    turn: int = Field(0, ge=0, description="whose turn it is where several models answer and no mean can be made")

    @property
    def hash(self) -> str:
        """Identifies the text sent to the model and the draw, not the caller: 32 hex digits."""
        content = self.model_dump(exclude={"purpose", "subject", "turn"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[
            :32
        ]


class Messages(NamedTuple):
    """A filled-in prompt."""

    system: str
    user: str


class Templates(Protocol):
    """The texts of prompts, by name."""

    def render(self, name: str, **values: object) -> Messages:
        """Fill in the prompt ``name``."""
        ...

    def hash(self, *names: str) -> str:
        """Identifies the texts of prompts before they are filled in: 16 hex digits."""
        ...


class Voice(Frozen):
    """The answer of one of several models to the same question."""

    model: str
    probabilities: dict[str, int] = Field(default_factory=dict, description="by field of the schema, percent")
    label: str = ""
    error: str = Field("", description="why it gave no answer")
    cost_usd: float | None = None


class Reply(BaseModel, Generic[T], frozen=True, extra="forbid"):
    """A model's reply: parsed, raw, and its usage (all turns of the exchange together)."""

    value: T
    text: str
    usage: Usage
    finish_reason: str = "stop"
    model: str = Field(description="``provider:name`` of the model that answered")
    voices: tuple[Voice, ...] = Field((), description="the single answers, if several models were asked")
    left_out: int = Field(0, description="list items of the text that are not in ``value``, as they were invalid")

    @property
    def disagreement(self) -> int | None:
        """The largest difference between the voices' probabilities, percent points; None for one voice."""
        probabilities = [voice.probabilities for voice in self.voices if voice.probabilities]
        if len(probabilities) < 2:
            return None
        spread = [[values[name] for values in probabilities if name in values] for name in probabilities[0]]
        return max((max(values) - min(values) for values in spread), default=None)


class Model(Protocol):
    """Anything that answers a prompt in the shape of a schema."""

    @property
    def id(self) -> str:
        """``provider:name``, or a comma-separated chain."""
        ...

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        """Ask once, with one repair turn if the reply does not fit ``schema``.

        If that does not help, invalid items of the schema's ``incomplete_lists`` are left out.
        Raises ModelError if there is no usable reply, TransientError if a later try may succeed.
        """
        ...


class Wrapper:
    """The base of models around a model, which keep its id."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def id(self) -> str:
        return self._model.id


@contextmanager
def usage_added(usage: Usage) -> Iterator[None]:
    """Add the usage of earlier questions to that of a question which fails."""
    try:
        yield
    except ModelError as error:
        error.usage = usage + (error.usage or Usage())
        raise


def ask_all(
    model: Model, prompts: Sequence[Prompt], schema: type[T], at_once: int
) -> tuple[Reply[T] | ModelError, ...]:
    """Ask several questions in parallel; an error takes the place of its answer.

    Once the budget is spent, the remaining questions are not asked. Raises TransientError if a later try may
    succeed.
    """
    spent_on: list[str] = []

    def ask(prompt: Prompt) -> Reply[T] | ModelError:
        try:
            return BudgetExceeded(spent_on[0]) if spent_on else model.complete(prompt, schema)
        except ModelError as error:
            if isinstance(error, BudgetExceeded):
                spent_on.append(str(error))
            return error

    with ThreadPoolExecutor(at_once) as pool:
        # Each thread sees what the caller's context binds (log fields, the job at hand).
        futures = [pool.submit(copy_context().run, ask, prompt) for prompt in prompts]
        return tuple(future.result() for future in futures)


#: Also inside of ``mean(...)``, ``cascade(...)`` and a chain.
_PROVIDERS = re.compile(r"(?:^|[(,])([a-z]+):")

_CAVEATS = {
    "scripted": "A scripted model answered: this is a rehearsal, not a verdict.",
    "recorded": "This is a recorded answer: no model was asked just now.",
}


def caveat(model: str) -> str:
    """Return the note to show beside a model's name; empty for a real model."""
    providers = _PROVIDERS.findall(model)
    return next((text for provider, text in _CAVEATS.items() if provider in providers), "")
