"""A small model in this very process (llama.cpp): no key, no network. Its verdicts carry no signal."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bot.errors import ModelError, SettingsError
from bot.models import chat, faults
from bot.models.capabilities import Capabilities
from bot.models.conversation import Answer, Request
from bot.models.schema import bounded

PROVIDER = "local"
#: Tokens of question and answer together.
CONTEXT = 8192
#: Small models loop: free text and lists are cut off at these lengths (characters, elements).
_MAX_LENGTH, _MAX_ITEMS = 200, 3


class Local:
    """Carries one request at a time; ``weights`` says where they are, and is asked on the first one."""

    has_effort = False

    def __init__(self, weights: Callable[[], Path], threads: int = 1) -> None:
        self._weights = weights
        self._threads = threads
        self._server: Any = None
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Answer:
        payload = chat.body(request, PROVIDER, Capabilities(limits=("max_tokens",)))
        schema = bounded(request.schema, _MAX_LENGTH, _MAX_ITEMS)
        payload["response_format"]["json_schema"]["schema"] = schema
        # Without the cache of earlier questions the same question gets the same answer, byte for byte.
        payload["cache_prompt"] = False
        with self._lock:
            self._server = self._server or self._start()
            said: dict[str, Any] = self._server.handle_chat_completions(payload)
        if error := said.get("error"):
            raise faults.of_status(PROVIDER, int(error.get("code", 500)), {}, json.dumps(said))
        return chat.answer(PROVIDER, json.dumps(said).encode())

    def _start(self) -> Any:
        try:
            import xllamacpp
        except ImportError:
            raise SettingsError("local model: xllamacpp is missing: pip install 'bouncer-bot[local]'") from None
        weights = self._weights()
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(weights)
        parameters.n_ctx = CONTEXT
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = self._threads
        parameters.warmup = False
        parameters.verbosity = -1
        # It also listens on loopback, which we do not use: nobody else can guess the key.
        parameters.port = 0
        parameters.api_keys = [secrets.token_urlsafe()]
        try:
            return xllamacpp.Server(parameters)
        except RuntimeError as error:
            raise ModelError(f"local model: {weights} cannot be loaded: {error}", "unavailable") from None
