"""Files that outlive the process that writes them: JSON Lines that are appended to, small files written whole.

Lines are forced to disk one by one, so that killing the process at any moment loses no finished one; a line that
was cut in half is removed when the file is opened again.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel

from bot.core.errors import OperatorError
from evaluation.dataset import json_row


def write_file(file: Path, data: str | bytes) -> None:
    """Write a small file whole or not at all, and make its folder. Raises OperatorError."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace"))
        fresh.replace(file)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise OperatorError(f"{file}: {error.strerror}") from None


def write_result(file: Path, data: str) -> None:
    """Write a file that the operator names: a link, a pipe or a device is written into. Raises OperatorError.

    ``write_file`` replaces a link: one in a folder of another person cannot lead out of it.
    """
    if not file.is_symlink() and (file.is_file() or not file.exists()):
        write_file(file, data)
        return
    try:
        file.write_text(data, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror}") from None


def replace_rows(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a small file of JSON Lines whole or not at all, and make its folder. Raises OperatorError."""
    write_file(file, "".join(json.dumps(row) + "\n" for row in rows))


def locked(file: Path, place: Path) -> BinaryIO:
    """Open a lock file, until it is closed; ``place`` is what it protects. Raises OperatorError if it is taken."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = file.open("wb")
    except OSError as error:
        raise OperatorError(f"{place}: cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        stream.close()
        raise OperatorError(f"{place}: another process is writing to it") from error
    return stream


class Lines:
    """A file of finished lines. ``append`` is safe from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mutex = threading.Lock()
        self._stream: BinaryIO | None = None

    def finished(self) -> Iterator[tuple[str, bytes]]:
        """``(file:line, line)``, oldest first; what a kill left of the last one is no line."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.endswith(b"\n"):
                    yield f"{self.path}:{number}", line

    def cut(self) -> None:
        """Remove what a kill left of a line."""
        if self.path.exists():
            with self.path.open("rb+") as stream:
                stream.truncate(sum(len(line) for line in stream if line.endswith(b"\n")))

    def write(self, line: bytes) -> None:
        """Append one line and force it to disk. Raises OperatorError if the disk refuses it."""
        try:
            with self._mutex:
                if self._stream is None:
                    self._stream = self.path.open("ab")
                self._stream.write(line)
                self._stream.flush()
                os.fsync(self._stream.fileno())
        except OSError as error:
            raise OperatorError(f"{self.path}: {error.strerror}") from error

    def drop(self, unwanted: Callable[[bytes], bool]) -> int:
        """Remove some of the finished lines in one step, so that they are made again; returns how many."""
        self.close()
        fresh = self.path.with_name(self.path.name + ".new")
        dropped = 0
        with fresh.open("wb") as stream:
            for _, line in self.finished():
                if unwanted(line):
                    dropped += 1
                else:
                    stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(self.path)
        return dropped

    def close(self) -> None:
        """Let go of the file; a further line opens it again. Raises OperatorError if a line is not on disk."""
        with self._mutex:
            stream, self._stream = self._stream, None
            try:
                if stream is not None:
                    stream.close()
            except OSError as error:
                raise OperatorError(f"{self.path}: {error.strerror}") from error


class LineFile(Lines):
    """The output of a build, one value per line. Use as a context manager.

    Beside ``F`` stands ``F.build.json``: what was asked for. A second call with the same question goes on where
    the first one stopped; with another question it is refused, so that no file mixes two.
    """

    def __init__(self, path: Path, question: dict[str, Any], overwrite: bool = False) -> None:
        super().__init__(path)
        self._facts = path.with_name(path.name + ".build.json")
        self._question = question
        self._overwrite = overwrite
        self._lock: BinaryIO | None = None

    def __enter__(self) -> LineFile:
        """Open the file, new or continued.

        Raises OperatorError if it answers another question, is no file, or another process writes to it.
        """
        if self.path.exists() and not self.path.is_file():
            raise OperatorError(f"{self.path}: not a regular file")
        self._lock = locked(self.path.with_name(f".{self.path.name}.lock"), self.path)
        try:
            if self._overwrite:
                self.path.unlink(missing_ok=True)
                self._facts.unlink(missing_ok=True)
            self._require_same(self._question)
        except OperatorError:
            self._lock.close()
            raise
        self.cut()
        self.path.touch()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._lock is not None:
            self._lock.close()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the finished rows, oldest first. Raises OperatorError for a line that is not a JSON object."""
        for where, line in self.finished():
            yield json_row(line, where).data

    def append(self, value: BaseModel) -> None:
        """Write one line; it is on disk when this returns."""
        self.write(json.dumps(value.model_dump(mode="json")).encode("ascii") + b"\n")

    def forget(self, unwanted: Callable[[dict[str, Any]], bool]) -> None:
        """Drop some of the finished lines, in one step, so that they are made again."""
        if any(unwanted(row) for row in self.rows()):
            self.drop(lambda line: unwanted(json.loads(line)))

    def _require_same(self, question: dict[str, Any]) -> None:
        text = json.dumps(question, indent=2, sort_keys=True) + "\n"
        if not self.path.exists() or not self.path.stat().st_size:
            write_file(self._facts, text)
        elif not self._facts.exists() or self._facts.read_text(encoding="utf-8") != text:
            raise OperatorError(
                f"{self.path} was built from other instances or with other options: "
                "name another --out, or give --overwrite"
            )
