"""A Model that writes down what another one said, in the form that ``recorded:FILE#name`` answers from."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from bot.errors import ModelError, SettingsError
from bot.models.protocol import Model, Prompt, Reply

T = TypeVar("T", bound=BaseModel)


class Recording:
    """Appends one line a reply, and one for each failure that would be the same again.

    What may pass (TransientError) is not recorded, and neither is what was never asked (budget).
    Raises SettingsError where the file's folder is not there.
    """

    def __init__(self, model: Model, file: Path) -> None:
        if not file.absolute().parent.is_dir():
            raise SettingsError(f"recorded replies: there is no folder {file.parent}")
        self._model = model
        self._file = file
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        return self._model.id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        try:
            reply = self._model.complete(prompt, schema)
        except ModelError as error:
            if error.reason != "budget":
                self._write(prompt, {"error": {"reason": error.reason, "message": str(error)}})
            raise
        said = {"text": reply.text, "answered_by": reply.model, "usage": reply.usage.model_dump()}
        self._write(prompt, {**said, "finish_reason": reply.finish_reason})
        return reply

    def _write(self, prompt: Prompt, what: dict[str, Any]) -> None:
        line = {
            "subject": prompt.subject,
            "model": self._model.id,
            "purpose": prompt.purpose,
            "sample": prompt.sample,
            "prompt_hash": prompt.hash,
            **what,
        }
        text = json.dumps(line) + "\n"
        with self._lock, self._file.open("a", encoding="utf-8") as file:
            file.write(text)
