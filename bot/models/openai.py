"""OpenAI, and every server that speaks its chat completions (Ollama, vLLM, LM Studio, Azure, OpenRouter)."""

from __future__ import annotations

import httpx2
import openai

from bot.models import capabilities, chat, faults, http
from bot.models.conversation import Answer, Request

PROVIDER = "openai"
_URL = "https://api.openai.com/v1"


class OpenAI:
    """Carries one request; ``base_url`` None is OpenAI's own, ``timeout`` is in seconds."""

    def __init__(self, name: str, key: str, base_url: str | None = None, timeout: float = http.TIMEOUT) -> None:
        client = http.BoundedClient(timeout)
        self._client = openai.OpenAI(
            api_key=key, base_url=base_url or _URL, max_retries=0, timeout=client.timeout, http_client=client
        )
        self._name = name
        self._capabilities = capabilities.of_openai(name, compatible=base_url is not None)

    @property
    def has_effort(self) -> bool:
        return self._capabilities.effort != "never"

    def complete(self, request: Request) -> Answer:
        payload = chat.body(request, self._name, self._capabilities)
        try:
            response = self._client.post("/chat/completions", cast_to=httpx2.Response, body=payload)
        except openai.APIStatusError as error:
            said = error.response.text
            known = (
                capabilities.learned(self._capabilities, payload, said)
                if error.status_code in (400, 422)
                else None
            )
            if known is None:
                headers = error.response.headers
                raise faults.of_status(PROVIDER, error.status_code, headers, said, "OPENAI_API_KEY") from None
            self._capabilities = known
            return self.complete(request)
        except openai.APIConnectionError as error:
            raise faults.of_connection(PROVIDER, error) from None
        return chat.answer(PROVIDER, response.content)
