"""A Model that remembers what was answered to the very same question, so that nothing is paid for twice."""

from __future__ import annotations

import hashlib
import json
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from bot.models.protocol import Model, Prompt, Reply
from bot.models.schema import strict

T = TypeVar("T", bound=BaseModel)


class ReplyStore(Protocol):
    """Keeps replies as JSON text by key; both methods may be called from several threads."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, reply: str) -> None: ...


class Cached:
    """Answers from the store where it can; failures are not stored. A remembered reply keeps its usage."""

    def __init__(self, model: Model, store: ReplyStore) -> None:
        self._model = model
        self._store = store

    @property
    def id(self) -> str:
        return self._model.id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        key = cache_key(self._model.id, prompt, schema)
        if (known := self._store.get(key)) is not None:
            try:
                return Reply[schema].model_validate_json(known)  # type: ignore[valid-type]
            except ValidationError:
                pass  # written for an older shape of the reply: ask again, and overwrite it
        reply = self._model.complete(prompt, schema)
        self._store.put(key, reply.model_dump_json())
        return reply


def cache_key(model_id: str, prompt: Prompt, schema: type[BaseModel]) -> str:
    """Identifies a question put to a model: what is sent, which draw, to whom, in what shape. 32 hex digits."""
    shape = json.dumps(strict(schema), sort_keys=True)
    content = "\0".join((model_id, prompt.hash, schema.__name__, shape))
    return hashlib.sha256(content.encode()).hexdigest()[:32]
