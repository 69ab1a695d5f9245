"""The conversation that all providers share: ask, read, one try at low effort, one repair turn, a typed reply.

An adapter is a ``Provider``: it sends one request and returns the answer. Everything else happens here.
A model gets the names and descriptions of a reply's fields, as a JSON Schema of the subset that providers accept;
bounds that the subset lacks are checked when the answer is parsed.
Parsing tolerates a code fence, a visible chain of thought or a sentence around the one JSON object. It refuses
ambiguous answers: two different objects, a repeated key, NaN, an object that was cut off.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel, Field, ValidationError
from pydantic.dataclasses import dataclass as validated

from bot.core import tracing
from bot.core.actions import Usage
from bot.core.errors import AnswerLost, ModelError, OperatorNeeded, ProviderRefused, TransientError
from bot.core.frozen import Lenient
from bot.models.budget import Price, most_tokens
from bot.models.protocol import Effort, Model, Prompt, Reply, T, Wrapper

Finish = Literal["stop", "length", "refusal"]

#: Characters of an unusable answer that are shown to the model again.
_QUOTED_CHARACTERS = 8_000


class Turn(NamedTuple):
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Request:
    """One request to a provider; ``retort`` is an unusable answer, and the demand to repair it."""

    prompt: Prompt
    schema: type[BaseModel]
    effort: Effort
    retort: tuple[Turn, ...] = ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation after the system part; it begins and ends with the user."""
        return (Turn("user", self.prompt.user), *self.retort)


Tokens = Annotated[int, Field(ge=0)]


@validated(frozen=True)
class Answer:
    """A provider's answer to one request. Raises ValidationError for values that no provider documents."""

    text: str
    finish: Finish = "stop"
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cached_tokens: Tokens = 0
    """Of the input: read from the provider's prompt cache."""
    written_tokens: Tokens = 0
    """Of the input: written to it, if that has a price."""


class Provider(Protocol):
    """One provider's way to carry a request. Raises ModelError or TransientError, and nothing else."""

    @property
    def has_effort(self) -> bool:
        """Return True if less effort can change the answer."""
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
        self.provider = provider
        self._price = price
        self._clock = clock

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        """Ask the model; an error carries its ``usage``."""
        usages: list[Usage] = []
        about = {"model": self.id, "purpose": prompt.purpose, "subject": prompt.subject}
        with tracing.span("model", **about) as span:
            try:
                return self._converse(Request(prompt, schema, prompt.effort), schema, usages)
            except (ModelError, TransientError) as error:
                error.usage = sum(usages, Usage()) if usages else None
                raise
            finally:
                total, names = sum(usages, Usage()), ("calls", "input_tokens", "output_tokens")
                span.set_attributes({f"bouncer.{name}": getattr(total, name) for name in names})

    def _converse(self, request: Request, schema: type[T], usages: list[Usage]) -> Reply[T]:
        answer, value = self._ask(request, schema, usages)
        is_cut = isinstance(value, Unusable) and answer.finish == "length"
        if is_cut and request.effort != "low" and self.provider.has_effort:
            # BouncerBench, IV.A: an answer that the limit cut is asked for once more, at low effort.
            request = replace(request, effort="low")
            answer, value = self._ask(request, schema, usages)
        if isinstance(value, Unusable) and answer.finish != "length":
            request = replace(request, retort=_retort(answer.text, value, schema))
            answer, value = self._ask(request, schema, usages)
        left_out = 0
        if isinstance(value, Unusable):
            value, left_out = _without_invalid_items(answer.text, schema, value)
        if isinstance(value, Unusable):
            if answer.finish == "length":
                raise ModelError(f"{self.id} was cut off after {request.prompt.max_tokens} tokens", "length")
            raise ModelError(f"{self.id} answered with something unusable: {value}", value.reason)
        usage = sum(usages, Usage())
        return Reply(
            value=value,
            text=answer.text,
            usage=usage,
            finish_reason=answer.finish,
            model=self.id,
            left_out=left_out,
        )

    def _ask(self, request: Request, schema: type[T], usages: list[Usage]) -> tuple[Answer, T | Unusable]:
        """Send one request. Return the answer with its value, or with the fault that makes it unusable."""
        start = self._clock()
        try:
            answer = self.provider.complete(request)
        except AnswerLost:
            # It may be billed in full, and a budget must not be exceeded.
            text = request.prompt.system + "".join(turn.text for turn in request.turns)
            answer = Answer("", input_tokens=most_tokens(text), output_tokens=request.prompt.max_tokens)
            usages.append(self._usage(answer, start))
            raise
        usages.append(self._usage(answer, start))
        if answer.finish == "refusal":
            raise ModelError(f"{self.id} refused to answer", "refused")
        try:
            return answer, read(answer.text, schema)
        except Unusable as fault:
            return answer, fault

    def _usage(self, answer: Answer, start: float) -> Usage:
        return Usage(
            calls=1,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cached_tokens=answer.cached_tokens,
            seconds=self._clock() - start,
            cost_usd=cost(answer, self._price),
        )


def cost(answer: Answer, price: Price | None) -> float | None:
    """Return the cost of an answer in US dollars; None if no price is known."""
    if price is None:
        return None
    return price.cost(answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.written_tokens)


def _retort(text: str, fault: Unusable, schema: type[BaseModel]) -> tuple[Turn, ...]:
    """Return the model's answer and the demand to repair it; providers refuse an empty turn, so it is left out."""
    wanted_schema = json.dumps(strict(schema), separators=(",", ":"))
    demand = Turn(
        "user",
        f"That answer cannot be used: {fault}. Answer the question again with one JSON object, "
        f"nothing before or after it, that fits this JSON Schema:\n{wanted_schema}",
    )
    return (Turn("assistant", text[:_QUOTED_CHARACTERS]), demand) if text.strip() else (demand,)


#: Longest answer that is parsed, characters: far more than 4,000 completion tokens.
MAX_CHARACTERS = 200_000
_MAX_FAULTS = 5
_MAX_LATER = 100  # braces after the object: with more it is not prose

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


class Unusable(Exception):
    """An answer that is not a value of the schema; ``reason`` is ``malformed`` or ``invalid`` as in ModelError.

    ``places`` are the faulty fields, and the faulty items of lists by field and index.
    """

    def __init__(self, message: str, reason: str, places: frozenset[tuple[int | str, ...]] = frozenset()) -> None:
        super().__init__(message)
        self.reason = reason
        self.places = places


def read(text: str, schema: type[T]) -> T:
    """Parse a value of ``schema`` from ``text``; raises Unusable with a message for the model."""
    try:
        return schema.model_validate(extract(text))
    except ValidationError as error:
        places = frozenset(fault["loc"][:2] for fault in error.errors(include_url=False))
        raise Unusable(_faults(error), "invalid", places) from None


def _without_invalid_items(text: str, schema: type[T], fault: Unusable) -> tuple[T | Unusable, int]:
    """Parse a value without invalid items of ``incomplete_lists``, and count these; ``fault`` if more is wrong.

    A list keeps at least one item: without any it would say that there is nothing.
    """
    if not fault.places or not issubclass(schema, Lenient):
        return fault, 0
    value = extract(text)
    for name in schema.incomplete_lists:
        if isinstance(items := value.get(name), list) and items:
            value[name] = [item for index, item in enumerate(items) if (name, index) not in fault.places]
            if not value[name]:
                return fault, 0
    try:
        return schema.model_validate(value), len(fault.places)
    except ValidationError:
        return fault, 0


def extract(text: str) -> dict[str, Any]:
    """Return the one JSON object in ``text``; raises Unusable if there is none, or more than one."""
    if len(text) > MAX_CHARACTERS:
        raise Unusable(f"the answer is longer than {MAX_CHARACTERS} characters", "malformed")
    bare = _THOUGHT.sub("", text, count=1).strip()
    if not bare:
        raise Unusable("the answer is empty", "malformed")
    fenced = [block for block in _fenced(bare) if block.lstrip().startswith("{")]
    if len(fenced) == 1 and not bare.startswith("{"):
        bare = fenced[0]
    return _only_object(bare)


def _fenced(text: str) -> Iterator[str]:
    """Yield the text between two fences, the first of them bare or for JSON."""
    block: list[str] | None = None
    for line in text.split("\n"):
        mark = "".join(line.split())
        if block is not None and mark == "```":
            yield "\n".join(block)
            block = None
        elif block is not None:
            block.append(line)
        elif mark in ("```", "```json"):
            block = []


def _only_object(text: str) -> dict[str, Any]:
    start = text.find("{")
    if start < 0:
        raise Unusable("the answer holds no JSON object", "malformed")
    value, end = _decode(text, start)
    if _has_other_object(text[end:], value):
        raise Unusable("the answer holds more than one JSON object", "malformed")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # JSON can escape it.
        raise Unusable("a string holds half of a surrogate pair", "malformed") from None
    return value


def _has_other_object(text: str, first: dict[str, Any]) -> bool:
    """Return True if an object that differs from the first one follows, or if too many braces follow to tell."""
    start = text.find("{")
    for _ in range(_MAX_LATER):
        if start < 0:
            return False
        try:
            value, end = _decode(text, start)
        except Unusable:
            end = start + 1
        else:
            if value != first:
                return True
        start = text.find("{", end)
    return True


def _decode(text: str, start: int) -> tuple[dict[str, Any], int]:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise Unusable("the JSON is nested too deeply", "malformed") from None
    except ValueError as error:
        raise Unusable(f"the JSON is broken: {str(error)[:200]}", "malformed") from None
    return value, end


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is given twice")
    return members


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _faults(error: ValidationError) -> str:
    """List the faults of a value, without the input, which may be long or hostile."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, fault['loc'])) or 'the object'}: {fault['msg']}" for fault in faults]
    more = f" (and {len(lines) - _MAX_FAULTS} more)" if len(lines) > _MAX_FAULTS else ""
    return "; ".join(lines[:_MAX_FAULTS]) + more


#: Keywords that OpenAI's strict mode and Anthropic's structured output both take.
_SCHEMA_KEYWORDS = frozenset(
    {"type", "properties", "items", "enum", "const", "anyOf", "$ref", "$defs", "description", "required"}
)
_KEYWORDS_WITH_NAMES = frozenset({"properties", "$defs"})


def strict(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema with closed objects, every field required, and no keyword outside the subset."""
    closed_schema: dict[str, Any] = _closed(schema.model_json_schema(), _SCHEMA_KEYWORDS)
    closed_schema.pop("description", None)
    return closed_schema


def _closed(node: Any, keywords: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_closed(child, keywords) for child in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        # Only definitions may accompany a reference.
        keywords = frozenset({"$ref", "$defs"})
    result = {
        key: {name: _closed(child, keywords) for name, child in value.items()}
        if key in _KEYWORDS_WITH_NAMES
        else _closed(value, keywords)
        for key, value in node.items()
        if key in keywords
    }
    for definition in result.get("$defs", {}).values():
        definition.pop("description", None)
    if result.get("type") == "object":
        result["required"] = list(result.setdefault("properties", {}))
        result["additionalProperties"] = False
    return result


class Refusals(Protocol):
    """Remembers which models a provider refuses; see ``bot.pipeline.store.calls.Faults``."""

    def refused(self, model: str, why: str) -> None: ...

    def answered(self, model: str) -> None: ...


class ReportingRefusals(Wrapper):
    """A model on a server: a refusal is reported to the operator, and becomes an OperatorNeeded."""

    def __init__(self, model: Model, refusals: Refusals) -> None:
        super().__init__(model)
        self._refusals = refusals

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        try:
            reply = self._model.complete(prompt, schema)
        except ProviderRefused as error:
            self._refusals.refused(self.id, str(error))
            needed = OperatorNeeded(str(error))
            needed.usage = error.usage
            raise needed from error
        self._refusals.answered(self.id)
        return reply
