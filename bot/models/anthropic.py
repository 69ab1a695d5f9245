"""Anthropic's Claude, over the Messages API."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
from pydantic import BaseModel, Field, ValidationError

from bot.models import capabilities, faults, http
from bot.models.capabilities import Capabilities
from bot.models.conversation import Answer, Finish, Request
from bot.models.schema import strict

PROVIDER = "anthropic"
_URL = "https://api.anthropic.com"
_FINISHES: dict[str | None, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class _Block(BaseModel):
    type: str
    text: str = ""
    input: dict[str, Any] = Field(default_factory=dict)


class _Tokens(BaseModel):
    input_tokens: int = Field(0, ge=0)
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int = Field(0, ge=0)


class _Message(BaseModel):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Tokens = _Tokens()


class Anthropic:
    """Carries one request; ``base_url`` None is Anthropic's own, ``timeout`` is in seconds."""

    def __init__(self, name: str, key: str, base_url: str | None = None, timeout: float = http.TIMEOUT) -> None:
        client = http.BoundedClient(timeout)
        self._client = anthropic.Anthropic(
            api_key=key, base_url=base_url or _URL, max_retries=0, timeout=client.timeout, http_client=client
        )
        self._name = name
        self._capabilities = capabilities.of_claude(name)

    @property
    def has_effort(self) -> bool:
        return self._capabilities.effort != "never"

    def complete(self, request: Request) -> Answer:
        payload = body(request, self._name, self._capabilities)
        try:
            response = self._client.post("/v1/messages", cast_to=httpx2.Response, body=payload)
        except anthropic.APIStatusError as error:
            said = error.response.text
            known = capabilities.learned(self._capabilities, payload, said) if error.status_code == 400 else None
            if known is None:
                headers = error.response.headers
                raise faults.of_status(PROVIDER, error.status_code, headers, said, "ANTHROPIC_API_KEY") from None
            self._capabilities = known
            return self.complete(request)
        except anthropic.APIConnectionError as error:
            raise faults.of_connection(PROVIDER, error) from None
        return answer(response.content)


def body(request: Request, model: str, known: Capabilities) -> dict[str, Any]:
    """The JSON of the request."""
    payload: dict[str, Any] = {
        "model": model,
        "max_tokens": request.prompt.max_tokens,
        # The part that is the same from question to question: kept by the provider, where it is long enough.
        "system": [
            {"type": "text", "text": request.prompt.system, "cache_control": {"type": "ephemeral"}},
        ],
        "messages": [{"role": turn.role, "content": turn.text} for turn in request.turns],
    }
    if known.temperature and request.prompt.temperature is not None:
        payload["temperature"] = request.prompt.temperature
    output: dict[str, Any] = {"effort": request.effort} if known.effort == "always" else {}
    schema = strict(request.schema)
    if known.native_schema:
        output["format"] = {"type": "json_schema", "schema": schema}
    else:
        name = request.schema.__name__
        payload["tools"] = [{"name": name, "description": "Give the answer.", "input_schema": schema}]
        payload["tool_choice"] = {"type": "tool", "name": name}
    return {**payload, "output_config": output} if output else payload


def answer(content: bytes) -> Answer:
    """What a successful response says; raises ModelError where it is no message."""
    try:
        message = _Message.model_validate_json(content)
    except ValidationError:
        raise faults.unreadable(PROVIDER, content) from None
    called = [block.input for block in message.content if block.type == "tool_use"]
    said = "".join(block.text for block in message.content if block.type == "text")
    tokens = message.usage
    read, written = tokens.cache_read_input_tokens or 0, tokens.cache_creation_input_tokens or 0
    return Answer(
        text=json.dumps(called[0]) if called else said,
        finish=_FINISHES.get(message.stop_reason, "stop"),
        input_tokens=tokens.input_tokens + read + written,
        output_tokens=tokens.output_tokens,
        cached_tokens=read,
        written_tokens=written,
    )
