"""Replies that were paid for, kept on disk, and a model that does not ask for them again.

One file a reply, named by its key: the hash of model id, prompt (text and parameters) and reply schema. ``batch
import`` fills the same folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from bot.core.errors import OperatorError
from bot.models.conversation import strict
from bot.models.protocol import Model, Prompt, Reply
from evaluation.run.lines import replace

T = TypeVar("T", bound=BaseModel)

_KEY = re.compile(r"[0-9a-f]{32,64}")


class FolderStore:
    """A folder of replies as JSON text; several threads and processes may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> str | None:
        """The reply under a key; None if there is none. Raises OperatorError if it cannot be read."""
        file = self._file(key)
        try:
            return file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise OperatorError(f"{file}: cannot be read: {error}") from None

    def put(self, key: str, reply: str) -> None:
        file = self._file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, reply)

    def _file(self, key: str) -> Path:
        assert is_key(key)
        return self.folder / key[:2] / f"{key}.json"


def is_key(text: str) -> bool:
    """Return True if a text can name a reply: hex digits only, so that it can never lead out of the folder."""
    return _KEY.fullmatch(text) is not None


class Cached:
    """Answers the very same question from the store, so that nothing is paid for twice; failures are not stored.

    A remembered reply keeps its usage.
    """

    def __init__(self, model: Model, store: FolderStore) -> None:
        self._model = model
        self._store = store

    @property
    def id(self) -> str:
        return self._model.id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        key = cache_key(self._model.id, prompt, schema)
        if (content := self._store.get(key)) is not None:
            try:
                return Reply[schema].model_validate_json(content)  # type: ignore[valid-type]
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
