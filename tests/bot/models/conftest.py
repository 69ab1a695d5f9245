"""A provider with scripted answers, over real HTTP, for the real SDK clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.models import anthropic, openai
from bot.models.budget import Price
from bot.models.conversation import Conversation
from tests.bot.models.replies import CLEAR

KEY = "sk-canary-1234567890"

Script = list[Response | Callable[[Request], Response]]


@dataclass
class Provider:
    """The endpoint of one provider: answers its script, then a good reply; records all requests."""

    kind: str
    server: HTTPServer
    script: Script = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        path = "/v1" if self.kind == "openai" else ""
        return self.server.url_for(path)

    def handle(self, request: Request) -> Response:
        self.requests.append(json.loads(request.data))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        answer = self.script.pop(0) if self.script else self.good()
        return answer if isinstance(answer, Response) else answer(request)

    def good(self, text: str | None = CLEAR.model_dump_json(), finish: str | None = None) -> Response:
        """Return a success in this provider's format."""
        if self.kind == "openai":
            message = {"role": "assistant", "content": text, "refusal": None}
            body = {
                "id": "c1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": finish or "stop"}],
                "usage": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150},
            }
        else:
            body = {
                "id": "m1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": text}] if text is not None else [],
                "stop_reason": finish or "end_turn",
                "usage": {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 30},
            }
        return Response(json.dumps(body), content_type="application/json")

    def cut(self) -> Response:
        """Return an answer that the completion limit cut off."""
        return self.good('{"explanation": "and th', "length" if self.kind == "openai" else "max_tokens")

    def model(self, name: str | None = None, timeout: float = 30.0) -> Conversation:
        """Return the real adapter, connected to this endpoint."""
        price = Price(input=1.0, output=10.0)
        if self.kind == "openai":
            name = name or "gpt-5-mini"
            return Conversation(f"openai:{name}", openai.connect(name, KEY, self.url, timeout), price)
        name = name or "claude-opus-4-8"
        return Conversation(f"anthropic:{name}", anthropic.connect(name, KEY, self.url, timeout), price)


def failure(status: int, message: str = "no", headers: dict[str, str] | None = None, **more: str) -> Response:
    """Return an error in the format of both providers."""
    body = {"type": "error", "error": {"message": message, "type": "some_error", **more}}
    return Response(json.dumps(body), status, headers, content_type="application/json")


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest, httpserver: HTTPServer) -> Iterator[Provider]:
    """Both providers, one after the other."""
    provider = Provider(request.param, httpserver)
    path = "/v1/chat/completions" if provider.kind == "openai" else "/v1/messages"
    httpserver.expect_request(path, method="POST").respond_with_handler(provider.handle)
    yield provider
    httpserver.check()
