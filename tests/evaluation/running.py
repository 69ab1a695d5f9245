"""``bouncer-eval`` in this process, and the JSON Lines that it reads and writes."""

from __future__ import annotations

import gzip
import io
import json
import shlex
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evaluation.cli import main
from evaluation.run.folder import RunFacts, Tasks

#: A change of one line.
PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"


class Captured(io.StringIO):
    """One stream of a command's output."""


@dataclass(frozen=True)
class Ran:
    """The output of a command and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object and nothing else."""
        result = json.loads(self.out)
        assert isinstance(result, dict)
        return result


def command(*arguments: object, code: int = 0) -> Ran:
    """Run ``bouncer-eval``, which ends with ``code``; the first argument may be the whole line, as in a shell."""
    line, *more = map(str, arguments)
    out, err = Captured(), Captured()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([*shlex.split(line), *more])
    assert (ended.value.code or 0) == code, err.getvalue() or out.getvalue()
    return Ran(code, out.getvalue(), err.getvalue())


def printed(*arguments: object) -> dict[str, Any]:
    """Run a command with ``--json`` and return the object."""
    return command(*arguments, "--json").json


def refusal(*arguments: object) -> str:
    """Run a command that cannot be done, and return the one line that says why."""
    ran = command(*arguments, code=2)
    assert (ran.out, len(ran.err.strip().splitlines())) == ("", 1)
    return ran.err


def facts_of(benchmark: str, **more: Any) -> RunFacts:
    """The facts of a run that was put together by hand."""
    started = datetime(2026, 1, 1, tzinfo=UTC)
    facts = {
        "benchmark": benchmark,
        "model": "m",
        "version": "0",
        "tasks": Tasks(source="t"),
        "started_at": started,
    }
    return RunFacts.model_validate({**facts, **more})


def write(file: str | Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSON Lines, gzipped where the name says so; return the file's whole path."""
    path = Path(file).absolute()
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def replies(file: str | Path, labels: Mapping[str, str], model: str = "m") -> Path:
    """Record a model's labels by task, as its replies to bouncers' questions; return the file's whole path."""
    shared = {"model": model, "explanation": "e"}
    return write(file, ({**shared, "instance_id": name, "label": label} for name, label in labels.items()))


def read(file: str | Path) -> list[dict[str, Any]]:
    """Read the rows of a file of JSON Lines."""
    data = Path(file).read_bytes()
    return [
        json.loads(line) for line in (gzip.decompress(data) if Path(file).suffix == ".gz" else data).splitlines()
    ]
