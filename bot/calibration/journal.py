"""What a command has done so far, a line each: killed at any moment, it goes on behind the last whole one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.errors import OperatorError


class Journal:
    """A file of JSON objects that is only appended to; safe to share between threads."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def rows(self) -> Iterator[dict[str, Any]]:
        """What was written before, oldest first; the end of a line that a kill cut off is no row.

        Raises OperatorError where the file cannot be read.
        """
        try:
            content = self._file.read_bytes() if self._file.is_file() else b""
        except OSError as error:
            raise OperatorError(f"{self._file}: {error.strerror}") from None
        if content and not content.endswith(b"\n"):
            self._write(b"\n")
        for line in content.split(b"\n"):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row

    def append(self, row: dict[str, Any]) -> None:
        """Write one line. Raises OperatorError where the disk refuses it."""
        self._write(json.dumps(row).encode("ascii") + b"\n")

    def clear(self) -> None:
        """Forget everything."""
        self._file.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        try:
            with self._lock, self._file.open("ab") as out:
                out.write(line)
        except OSError as error:
            raise OperatorError(f"{self._file}: {error.strerror}") from None
