"""Recorded replies: experiments without a model, tests without a network.

A file is JSON Lines, optionally gzipped. Each line has ``model`` and ``subject`` (or ``instance_id``, as in the
responses published with BouncerBench). Lines of ``Recording`` have the reply's ``text`` and a ``prompt_hash``,
and answer only that question; in other lines every further field is part of the reply, but for ``purpose``
and ``contains``: if they are given, the line answers questions of that purpose, and those that hold that text.
"""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections import defaultdict
from pathlib import Path
from typing import IO, Any, cast

from bot.core.errors import ModelError, SettingsError
from bot.core.io_limits import complete, regular
from bot.models.conversation import Answer, Request
from bot.models.protocol import Model, Prompt, Reply, T, Wrapper

#: Largest file of replies, bytes, unpacked.
MAX_BYTES = 512 << 20
_KEYS = ("model", "subject", "instance_id", "sample", "purpose", "contains")
#: Optional fields that are not part of a reply.
_SHAPES = {"prompt_hash": str, "contains": str, "purpose": str, "error": dict, "usage": dict}
_Line = dict[str, Any]


class Recorded:
    """A provider of recorded replies, by subject and model, or by the prompt's hash if one was recorded.

    Several lines for one subject are several draws, in the order of the file. A demand to repair a reply gets the
    same reply again. Raises SettingsError for a file or a model name that is not there.
    """

    has_effort = False

    def __init__(self, file: Path, name: str = "") -> None:
        self._file = file
        lines = _read(file)
        self._name = _choose(file, name, {line["model"] for line in lines})
        self._by_hash: dict[str, _Line] = {}
        self._by_subject: dict[str, list[_Line]] = defaultdict(list)
        for line in lines:
            if line["model"] != self._name:
                continue
            if "prompt_hash" in line:
                self._by_hash[line["prompt_hash"]] = line
            else:
                self._by_subject[line["subject"]].append(line)

    def complete(self, request: Request) -> Answer:
        line = self._find(request)
        if line is None:
            raise ModelError(
                f"{self._file.name} holds no reply of {self._name} for {request.prompt.subject or 'no subject'}"
                f" (draw {request.prompt.sample})",
                "unrecorded",
            )
        if error := line.get("error"):
            raise ModelError(str(error.get("message")), str(error.get("reason")))
        usage = line.get("usage") or {}
        reply = json.dumps({key: value for key, value in line.items() if key not in _KEYS})
        text = str(line["text"]) if "text" in line else reply
        if request.retort:
            usage = {}  # counted with the reply itself
        return Answer(text, "stop", usage.get("input_tokens", 0), usage.get("output_tokens", 0))

    def _find(self, request: Request) -> _Line | None:
        prompt = request.prompt
        if self._by_hash and prompt.hash in self._by_hash:
            return self._by_hash[prompt.hash]
        candidates = [
            line
            for line in self._by_subject.get(prompt.subject, [])
            if line.get("purpose", prompt.purpose) == prompt.purpose and line.get("contains", "") in prompt.user
        ]
        # A line for a later state of the subject goes before one for every state.
        closest = max((line.get("contains", "") for line in candidates), key=len, default="")
        draws = [line for line in candidates if line.get("contains", "") == closest]
        return draws[prompt.sample] if prompt.sample < len(draws) else None


def _choose(file: Path, name: str, models: set[str]) -> str:
    if not name and len(models) == 1:
        return next(iter(models))
    if name in models:
        return name
    names = ", ".join(sorted(models)) or "nothing at all"
    problem = f"holds no model {name!r}" if name else "holds several models: name one after '#'"
    raise SettingsError(f"recorded replies: {file} {problem} (it holds {names})")


def _read(file: Path) -> list[_Line]:
    try:
        with regular(file) as stream:
            unpacked = cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if file.suffix == ".gz" else stream
            text = complete(unpacked, file, MAX_BYTES).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise SettingsError(f"recorded replies: {file} cannot be read: {why}") from None
    return [_line(file, number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _line(file: Path, number: int, text: str) -> _Line:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        raise SettingsError(f"recorded replies: {file}, line {number} is not JSON") from None
    subject = line.get("subject", line.get("instance_id")) if isinstance(line, dict) else None
    if not isinstance(subject, str) or not isinstance(line.get("model"), str):
        raise SettingsError(
            f"recorded replies: {file}, line {number} needs 'model' and 'subject' (or 'instance_id')"
        )
    for key, shape in _SHAPES.items():
        if not isinstance(line.get(key), shape | None):
            raise SettingsError(f"recorded replies: {file}, line {number}: {key!r} has the wrong type")
    return {**line, "subject": subject}


class Recording(Wrapper):
    """A model that appends a line to a file for each reply and each lasting failure.

    A TransientError and an exceeded budget are not recorded.
    Raises SettingsError if the file's folder is not there.
    """

    def __init__(self, model: Model, file: Path) -> None:
        if not file.absolute().parent.is_dir():
            raise SettingsError(f"recorded replies: there is no folder {file.parent}")
        super().__init__(model)
        self._file = file
        self._lock = threading.Lock()

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        try:
            reply = self._model.complete(prompt, schema)
        except ModelError as error:
            if error.reason != "budget":
                self._write(prompt, {"error": {"reason": error.reason, "message": str(error)}})
            raise
        fields = {"text": reply.text, "answered_by": reply.model, "usage": reply.usage.model_dump()}
        self._write(prompt, {**fields, "finish_reason": reply.finish_reason})
        return reply

    def _write(self, prompt: Prompt, fields: dict[str, Any]) -> None:
        line = {
            "subject": prompt.subject,
            "model": self._model.id,
            "purpose": prompt.purpose,
            "sample": prompt.sample,
            "prompt_hash": prompt.hash,
            **fields,
        }
        text = json.dumps(line) + "\n"
        with self._lock, self._file.open("a", encoding="utf-8") as file:
            file.write(text)
