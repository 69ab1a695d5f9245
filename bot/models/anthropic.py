"""Anthropic's Claude, over the Messages API. Its SDK is imported when a connection is made."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx2
from pydantic_core import from_json

from bot.models.conversation import Answer, Finish, Request, strict
from bot.models.remote import TIMEOUT, TOOL_ONLY, Capabilities, CappedClient, Remote, connection_error, parsing

_URL = "https://api.anthropic.com"
_FINISHES: dict[str | None, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
# Claude takes a temperature up to 4.6; from 4.7 on it refuses one and is steered by effort alone.
_PLAIN = re.compile(r"claude-(2|3|instant|(opus|sonnet|haiku)-4-([0-6]($|-)|20))")


def connect(name: str, key: str, base_url: str | None = None, timeout: float = TIMEOUT) -> Remote:
    """Connect to the model ``name``; ``base_url`` None is Anthropic's own, ``timeout`` is in seconds."""
    import anthropic

    http = CappedClient(timeout)
    client = anthropic.Anthropic(
        api_key=key, base_url=base_url or _URL, max_retries=0, timeout=http.timeout, http_client=http
    )

    def send(payload: dict[str, Any] | None) -> httpx2.Response:
        try:
            if payload is None:
                return client.get(f"/v1/models/{quote(name, safe='')}", cast_to=httpx2.Response)
            return client.post("/v1/messages", cast_to=httpx2.Response, body=payload)
        except anthropic.APIStatusError as error:
            return error.response
        except anthropic.APIConnectionError as error:
            raise connection_error("anthropic", error) from None

    return Remote("anthropic", capabilities(name), partial(body, name), send, answer, base_url is not None)


def capabilities(name: str) -> Capabilities:
    """Return the capabilities of an Anthropic model; an unknown name counts as a new model."""
    plain = bool(_PLAIN.match(name.lower()))
    return Capabilities(
        temperature=plain,
        effort="never" if plain else "always",
        native_schema=not TOOL_ONLY.search(name.lower()),
        limits=("max_tokens",),
    )


def body(model: str, request: Request, features: Capabilities) -> dict[str, Any]:
    """Build the JSON of the request."""
    payload: dict[str, Any] = {
        "model": model,
        "max_tokens": request.prompt.max_tokens,
        # The same for many questions: the provider caches it if it is long enough.
        "system": [
            {"type": "text", "text": request.prompt.system, "cache_control": {"type": "ephemeral"}},
        ],
        "messages": [{"role": turn.role, "content": turn.text} for turn in request.turns],
    }
    if features.temperature and request.prompt.temperature is not None:
        payload["temperature"] = request.prompt.temperature
    output: dict[str, Any] = {"effort": request.effort} if features.effort == "always" else {}
    schema = strict(request.schema)
    if features.native_schema:
        output["format"] = {"type": "json_schema", "schema": schema}
    else:
        name = request.schema.__name__
        payload["tools"] = [{"name": name, "description": "Give the answer.", "input_schema": schema}]
        payload["tool_choice"] = {"type": "tool", "name": name}
    return {**payload, "output_config": output} if output else payload


def answer(content: bytes) -> Answer:
    """Parse a successful response; raises ModelError if it is not a message."""
    from anthropic.types import Message

    with parsing("anthropic", content):
        # Filled without validation, as for OpenAI: ``Answer`` validates the values that are used.
        message = Message.construct(**from_json(content, cache_strings="keys"))
        if not all(block.type for block in message.content):
            raise ValueError("a block without a type")
        tool_inputs = [block.input for block in message.content if block.type == "tool_use"]
        text = "".join(block.text for block in message.content if block.type == "text")
        tokens = message.usage
        cache_reads = (tokens and tokens.cache_read_input_tokens) or 0
        cache_writes = (tokens and tokens.cache_creation_input_tokens) or 0
        return Answer(
            text=json.dumps(tool_inputs[0]) if tool_inputs else text,
            finish=_FINISHES.get(message.stop_reason, "stop"),
            input_tokens=((tokens and tokens.input_tokens) or 0) + cache_reads + cache_writes,
            output_tokens=(tokens and tokens.output_tokens) or 0,
            cached_tokens=cache_reads,
            written_tokens=cache_writes,
        )
