"""The conversation that all providers share: ask, read, one try at low effort, one repair turn, a typed reply.

An adapter is a ``Provider``: it sends one request and says what came back. Everything else happens here, once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from bot.core import tracing
from bot.core.actions import Usage
from bot.errors import ModelError, TransientError
from bot.models.parsing import Unusable, read
from bot.models.prices import Price
from bot.models.protocol import Effort, Prompt, Reply
from bot.models.schema import strict

T = TypeVar("T", bound=BaseModel)

Finish = Literal["stop", "length", "refusal"]

#: Characters of an unusable answer that are shown to the model again.
_SHOWN = 8_000


class Turn(NamedTuple):
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Request:
    """One request as a provider is to make it; ``fault`` says what was wrong with the answer before it."""

    prompt: Prompt
    schema: type[BaseModel]
    effort: Effort
    retort: tuple[Turn, ...] = ()
    fault: str = ""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation after the system part; it begins and ends with the user."""
        return (Turn("user", self.prompt.user), *self.retort)


@dataclass(frozen=True)
class Answer:
    """What a provider answered to one request."""

    text: str
    finish: Finish = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input: read from the provider's prompt cache."""
    written_tokens: int = 0
    """Of the input: written to it, where that has a price."""


class Provider(Protocol):
    """One provider's way to carry a request. Raises ModelError or TransientError, and nothing else."""

    @property
    def has_effort(self) -> bool:
        """Whether asking with less effort can change the answer."""
        ...

    def complete(self, request: Request) -> Answer: ...


class Conversation:
    """A Model that talks to a provider."""

    def __init__(
        self,
        model_id: str,
        provider: Provider,
        price: Price | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = model_id
        self._provider = provider
        self._price = price
        self._clock = clock

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        """As ``Model.complete``; what an error cost is in its ``usage``."""
        spent: list[Usage] = []
        about = {"model": self.id, "purpose": prompt.purpose, "subject": prompt.subject}
        with tracing.span("model", **about) as span:
            try:
                return self._converse(Request(prompt, schema, prompt.effort), schema, spent)
            except (ModelError, TransientError) as error:
                error.usage = sum(spent, Usage()) if spent else None
                raise
            finally:
                total = sum(spent, Usage())
                span.set_attributes(
                    {
                        f"bouncer.{name}": getattr(total, name)
                        for name in ("calls", "input_tokens", "output_tokens")
                    }
                )

    def _converse(self, request: Request, schema: type[T], spent: list[Usage]) -> Reply[T]:
        answer, value, fault = self._turn(request, schema, spent)
        if fault and answer.finish == "length" and request.effort != "low" and self._provider.has_effort:
            # BouncerBench, IV.A: an answer that the limit cut is asked for once more, at low effort.
            request = replace(request, effort="low")
            answer, value, fault = self._turn(request, schema, spent)
        if fault and answer.finish != "length":
            request = replace(request, retort=_retort(answer.text, fault, schema), fault=str(fault))
            answer, value, fault = self._turn(request, schema, spent)
        if fault and answer.finish == "length":
            raise ModelError(f"{self.id} was cut off after {request.prompt.max_tokens} tokens", "length")
        if fault or value is None:
            raise ModelError(f"{self.id} answered with something unusable: {fault}", _reason(fault))
        usage = sum(spent, Usage())
        return Reply(value=value, text=answer.text, usage=usage, finish_reason=answer.finish, model=self.id)

    def _turn(
        self, request: Request, schema: type[T], spent: list[Usage]
    ) -> tuple[Answer, T | None, Unusable | None]:
        start = self._clock()
        answer = self._provider.complete(request)
        spent.append(self._usage(answer, self._clock() - start))
        if answer.finish == "refusal":
            raise ModelError(f"{self.id} refused to answer", "refused")
        try:
            return answer, read(answer.text, schema), None
        except Unusable as fault:
            return answer, None, fault

    def _usage(self, answer: Answer, seconds: float) -> Usage:
        return Usage(
            calls=1,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cached_tokens=answer.cached_tokens,
            seconds=seconds,
            cost_usd=cost(answer, self._price),
        )


def cost(answer: Answer, price: Price | None) -> float | None:
    """What an answer cost in US dollars; None where no price is known."""
    if price is None:
        return None
    return price.cost(answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.written_tokens)


def _reason(fault: Unusable | None) -> str:
    return fault.reason if fault else "malformed"


def _retort(text: str, fault: Unusable, schema: type[BaseModel]) -> tuple[Turn, ...]:
    """What the model said and what is wrong with it; a provider refuses an empty turn, so that one is left out."""
    wanted = json.dumps(strict(schema), separators=(",", ":"))
    demand = Turn(
        "user",
        f"That answer cannot be used: {fault}. Answer the question again with one JSON object, "
        f"nothing before or after it, that fits this JSON Schema:\n{wanted}",
    )
    return (Turn("assistant", text[:_SHOWN]), demand) if text.strip() else (demand,)
