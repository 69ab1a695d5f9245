"""A model whose every word is written down beforehand, for tests and demonstrations.

Its id starts with ``scripted:``, so that wherever its words are shown it is plain that no language model spoke.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import BaseModel

from bot.core.errors import BouncerError
from bot.models.conversation import Answer, Conversation, Request
from bot.models.protocol import Prompt, Reply

T = TypeVar("T", bound=BaseModel)

#: What to say: a value (or its JSON object), raw text as a provider might send it, a whole answer, or a failure.
Line = BaseModel | dict[str, Any] | str | Answer | BouncerError
Script = Iterable[Line] | Callable[[Prompt], Line]


class ScriptedModel:
    """Says its lines one after the other, or what a function makes of each prompt.

    Lines go through the same exchange as a provider's answers: one that does not fit is asked for again (and
    takes the next line). ``asked`` holds every prompt that was put to it. Running out of lines is an
    AssertionError: the script is wrong, not the program.
    """

    def __init__(self, script: Script = (), name: str = "test") -> None:
        self.asked: list[Prompt] = []
        self._provider = _Script(script)
        self._exchange = Conversation(f"scripted:{name}", self._provider)

    @property
    def id(self) -> str:
        return self._exchange.id

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every single request, second tries and repair turns included."""
        return tuple(self._provider.requests)

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        self.asked.append(prompt)
        return self._exchange.complete(prompt, schema)


class _Script:
    has_effort = True

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self._write = script if callable(script) else None
        self._lines = iter(()) if callable(script) else iter(script)
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            line = self._write(request.prompt) if self._write else next(self._lines, None)
        if line is None:
            raise AssertionError(
                f"the script has no line for {request.prompt.purpose} on {request.prompt.subject!r}"
            )
        if isinstance(line, BouncerError):
            raise line
        if isinstance(line, Answer):
            return line
        # Words stand in for tokens: small, stable numbers that tests can reason about.
        text = _text(line)
        return Answer(text, "stop", len(request.prompt.user.split()), len(text.split()))


def _text(line: BaseModel | dict[str, Any] | str) -> str:
    if isinstance(line, BaseModel):
        return line.model_dump_json()
    return line if isinstance(line, str) else json.dumps(line)
