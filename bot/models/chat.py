"""The chat-completions format: a payload out of a request, an answer out of a body. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, ValidationError

from bot.models import faults
from bot.models.capabilities import Capabilities
from bot.models.conversation import Answer, Finish, Request
from bot.models.schema import strict

_FINISHES: dict[str | None, Finish] = {"length": "length", "content_filter": "refusal"}


class _Function(BaseModel):
    arguments: str


class _Call(BaseModel):
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Details(BaseModel):
    cached_tokens: int | None = Field(None, ge=0)


class _Tokens(BaseModel):
    prompt_tokens: int = Field(0, ge=0)
    prompt_tokens_details: _Details | None = None
    completion_tokens: int = Field(0, ge=0)


class _Fault(BaseModel):
    message: str = ""
    code: int | str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(default_factory=list)
    usage: _Tokens | None = None
    error: _Fault | None = None


def body(request: Request, model: str, known: Capabilities) -> dict[str, Any]:
    """The JSON of the request."""
    prompt = request.prompt
    payload: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": "system", "content": prompt.system},
            *({"role": turn.role, "content": turn.text} for turn in request.turns),
        ],
        known.limits[0]: prompt.max_tokens,
    }
    if known.temperature and prompt.temperature is not None:
        payload["temperature"] = prompt.temperature
    if known.effort == "always" or (known.effort == "lowered" and request.effort == "low"):
        payload["reasoning_effort"] = request.effort
    return {**payload, **_shape(request, known)}


def _shape(request: Request, known: Capabilities) -> dict[str, Any]:
    name, schema = request.schema.__name__, strict(request.schema)
    if known.native_schema:
        given = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": given}}
    tool = {"name": name, "description": "Give the answer.", "parameters": schema}
    return {
        "tools": [{"type": "function", "function": tool}],
        "tool_choice": {"type": "function", "function": {"name": name}},
    }


def answer(provider: str, content: bytes) -> Answer:
    """What a successful response says; raises ModelError or TransientError where it says nothing usable."""
    try:
        completion = _Completion.model_validate_json(content)
    except ValidationError:
        raise faults.unreadable(provider, content) from None
    if completion.error and not completion.choices:
        # Some gateways report their backend's failure with status 200.
        code = completion.error.code
        raise faults.of_status(provider, code if isinstance(code, int) else 500, {}, completion.error.message)
    if not completion.choices:
        raise faults.unreadable(provider, content)
    choice = completion.choices[0]
    message, tokens = choice.message, completion.usage or _Tokens()
    called = message.tool_calls[0].function.arguments if message.tool_calls else None
    return Answer(
        text=message.refusal or called or message.content or "",
        finish="refusal" if message.refusal else _FINISHES.get(choice.finish_reason, "stop"),
        input_tokens=tokens.prompt_tokens,
        output_tokens=tokens.completion_tokens,
        cached_tokens=(tokens.prompt_tokens_details and tokens.prompt_tokens_details.cached_tokens) or 0,
    )
