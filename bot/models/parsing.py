"""From what a model wrote to a value of the schema. Pure, and strict about what it takes for an answer.

A code fence, a visible chain of thought or a sentence around the one JSON object is tolerated. Anything that
leaves a choice is not: two different objects, a key given twice, NaN, an object that was cut off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound=BaseModel)

#: Characters of an answer that are looked at: far beyond 4,000 completion tokens.
MAX_CHARACTERS = 200_000
_MAX_FAULTS = 5
_MAX_LATER = 100  # braces after the object: beyond this it is no prose

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


class Unusable(Exception):
    """An answer that is not a value of the schema; ``reason`` is ``malformed`` or ``invalid`` as in ModelError."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def read(text: str, schema: type[T]) -> T:
    """The value of ``schema`` that ``text`` states; raises Unusable, its message fit to be shown to the model."""
    try:
        return schema.model_validate(extract(text))
    except ValidationError as error:
        raise Unusable(_faults(error), "invalid") from None


def extract(text: str) -> dict[str, Any]:
    """The one JSON object in ``text``; raises Unusable where there is none, or more than one."""
    if len(text) > MAX_CHARACTERS:
        raise Unusable(f"the answer is longer than {MAX_CHARACTERS} characters", "malformed")
    bare = _THOUGHT.sub("", text, count=1).strip()
    if not bare:
        raise Unusable("the answer is empty", "malformed")
    fenced = [each for each in _fenced(bare) if each.lstrip().startswith("{")]
    if len(fenced) == 1 and not bare.startswith("{"):
        bare = fenced[0]
    return _only_object(bare)


def _fenced(text: str) -> Iterator[str]:
    """What stands between two fences, the first of them bare or for JSON."""
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
    if _states_more(text[end:], value):
        raise Unusable("the answer holds more than one JSON object", "malformed")
    if not _encodable(value):
        raise Unusable("a string holds half of a surrogate pair", "malformed")
    return value


def _encodable(value: dict[str, Any]) -> bool:
    """Whether the value can be stored and sent: JSON can escape what UTF-8 cannot hold."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _states_more(rest: str, first: dict[str, Any]) -> bool:
    """Whether what follows the object holds another one that says something else."""
    start = rest.find("{")
    for _ in range(_MAX_LATER):
        if start < 0:
            return False
        try:
            value, end = _decode(rest, start)
        except Unusable:
            end = start + 1
        else:
            if value != first:
                return True
        start = rest.find("{", end)
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
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _faults(error: ValidationError) -> str:
    """Where the value departs from the schema; without the input, which may be long or hostile."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, each['loc'])) or 'the object'}: {each['msg']}" for each in faults]
    more = f" (and {len(lines) - _MAX_FAULTS} more)" if len(lines) > _MAX_FAULTS else ""
    return "; ".join(lines[:_MAX_FAULTS]) + more
