"""OpenAI, and every server that speaks its chat completions (Ollama, vLLM, LM Studio, Azure, OpenRouter).

The SDK is imported when a connection is made: batches need only the format.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx2
from pydantic_core import from_json

from bot.models.conversation import Answer, Finish, Request, strict
from bot.models.remote import (
    TIMEOUT,
    TOOL_ONLY,
    Capabilities,
    CappedClient,
    Remote,
    connection_error,
    parsing,
    status_error,
)

_URL = "https://api.openai.com/v1"
_FINISHES: dict[str | None, Finish] = {"length": "length", "content_filter": "refusal"}
# OpenAI's own, and the open families that think before they answer.
_REASONING = re.compile(
    r"(^|/)(o\d|gpt-([6-9]|[1-9]\d)|gpt-5(?!.*chat)|codex)|qwen-?3|qwq|deepseek-r|gpt-oss|magistral|thinking|reason"
)
_PLAIN = re.compile(r"(^|/)(gpt-4|gpt-3|gpt-5.*chat|chatgpt)|gemma|llama|smollm|mistral|instruct")


def connect(
    name: str, key: str, base_url: str | None = None, timeout: float = TIMEOUT, *, provider: str = "openai"
) -> Remote:
    """Connect to the model ``name``; ``base_url`` None is OpenAI's own, ``timeout`` is in seconds.

    ``provider`` is another company at that address: errors name it, and the variable of its key.
    """
    import openai

    http = CappedClient(timeout)
    client = openai.OpenAI(
        api_key=key, base_url=base_url or _URL, max_retries=0, timeout=http.timeout, http_client=http
    )

    def send(payload: dict[str, Any] | None) -> httpx2.Response:
        try:
            if payload is None:
                return client.get(f"/models/{quote(name, safe='')}", cast_to=httpx2.Response)
            return client.post("/chat/completions", cast_to=httpx2.Response, body=payload)
        except openai.APIStatusError as error:
            return error.response
        except openai.APIConnectionError as error:
            raise connection_error(provider, error) from None

    own_server = base_url is not None and provider == "openai"
    features = capabilities(name, compatible=base_url is not None)
    return Remote(provider, features, partial(body, name), send, partial(answer, provider=provider), own_server)


def capabilities(name: str, *, compatible: bool = False) -> Capabilities:
    """Guess the capabilities of a model by its name; refusals of the server correct them."""
    name = name.lower()
    plain = bool(_PLAIN.search(name))
    reasons = not plain and bool(_REASONING.search(name))
    # The newer word for the limit is OpenAI's own; other servers know the older one.
    limits = ("max_tokens", "max_completion_tokens") if compatible and not reasons else Capabilities().limits
    return Capabilities(
        temperature=not reasons,
        effort="always" if reasons else "never" if plain else "lowered",
        native_schema=not TOOL_ONLY.search(name),
        limits=limits,
    )


def body(model: str, request: Request, features: Capabilities) -> dict[str, Any]:
    """Build the JSON of the request."""
    prompt = request.prompt
    payload: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": "system", "content": prompt.system},
            *({"role": turn.role, "content": turn.text} for turn in request.turns),
        ],
        features.limits[0]: prompt.max_tokens,
    }
    if features.temperature and prompt.temperature is not None:
        payload["temperature"] = prompt.temperature
    if features.effort == "always" or (features.effort == "lowered" and request.effort == "low"):
        payload["reasoning_effort"] = request.effort
    name, schema = request.schema.__name__, strict(request.schema)
    if features.native_schema:
        definition = {"name": name, "strict": True, "schema": schema}
        payload["response_format"] = {"type": "json_schema", "json_schema": definition}
    else:
        tool = {"name": name, "description": "Give the answer.", "parameters": schema}
        payload["tools"] = [{"type": "function", "function": tool}]
        payload["tool_choice"] = {"type": "function", "function": {"name": name}}
    return payload


def answer(content: bytes, provider: str = "openai") -> Answer:
    """Parse a successful response; raises ModelError or TransientError if it is unusable.

    The SDK's types are filled without validation, because compatible servers leave out fields that the types
    require. ``Answer`` validates the values that are used.
    """
    from openai.types.chat import ChatCompletion

    with parsing(provider, content):
        fields = from_json(content, cache_strings="keys")
        completion = ChatCompletion.construct(**fields)
        if not completion.choices and (error := fields.get("error")):
            # Some gateways report their backend's failure with status 200.
            code = error.get("code")
            raise status_error(provider, code if isinstance(code, int) else 500, {}, str(error.get("message")))
        choice, tokens = completion.choices[0], completion.usage
        message = choice.message
        arguments = message.tool_calls[0].function.arguments if message.tool_calls else None  # type: ignore[union-attr]
        details = tokens and tokens.prompt_tokens_details
        return Answer(
            text=message.refusal or arguments or message.content or "",
            finish="refusal" if message.refusal else _FINISHES.get(choice.finish_reason, "stop"),
            input_tokens=(tokens and tokens.prompt_tokens) or 0,
            output_tokens=(tokens and tokens.completion_tokens) or 0,
            cached_tokens=(details and details.cached_tokens) or 0,
        )
