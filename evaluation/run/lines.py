"""A file of finished lines that a build appends to and that outlives the process that fills it.

Beside ``F`` stands ``F.build.json``: what was asked for. A second call with the same question goes on where
the first one stopped; with another question it is refused, so that no file mixes two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel

from bot.errors import OperatorError


class LineFile:
    """JSON Lines, one finished value a line. Use as a context manager."""

    def __init__(self, path: Path, question: dict[str, Any], overwrite: bool = False) -> None:
        """Opens or continues ``path``. Raises OperatorError where it answers another question."""
        self.path = path
        self._facts = path.with_name(path.name + ".build.json")
        if overwrite:
            path.unlink(missing_ok=True)
            self._facts.unlink(missing_ok=True)
        self._require_same(question)
        self._stream: BinaryIO | None = None

    def __enter__(self) -> LineFile:
        _cut_torn_line(self.path)
        self._stream = self.path.open("ab", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def rows(self) -> Iterator[dict[str, Any]]:
        """What was finished before, oldest first. Raises OperatorError for a line that is no JSON object."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise OperatorError(f"{self.path}:{number}: not JSON") from error
                if not isinstance(row, dict):
                    raise OperatorError(f"{self.path}:{number}: a JSON object is needed")
                yield row

    def append(self, value: BaseModel) -> None:
        """Write one line; it is on its way to disk when this returns."""
        assert self._stream is not None, "opened by the with statement"
        self._stream.write(json.dumps(value.model_dump(mode="json")).encode("ascii") + b"\n")

    def forget(self, unwanted: Callable[[dict[str, Any]], bool]) -> None:
        """Drop some of the finished lines, in one step, so that they are made again."""
        rows = list(self.rows())
        kept = [row for row in rows if not unwanted(row)]
        if len(kept) == len(rows):
            return
        assert self._stream is not None, "opened by the with statement"
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.write_bytes(b"".join(json.dumps(row).encode("ascii") + b"\n" for row in kept))
        fresh.replace(self.path)
        self._stream.close()
        self._stream = self.path.open("ab", buffering=0)

    def _require_same(self, question: dict[str, Any]) -> None:
        asked = json.dumps(question, indent=2, sort_keys=True) + "\n"
        if not self.path.exists() or not self.path.stat().st_size:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._facts.write_text(asked, encoding="utf-8")
        elif not self._facts.exists() or self._facts.read_text(encoding="utf-8") != asked:
            raise OperatorError(
                f"{self.path} was built from other instances or with other options: "
                "name another --out, or give --overwrite"
            )


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        path.write_bytes(whole)
