"""Running commands, and small task lists to run them on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluation.cli import main


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


Command = Callable[..., Ran]
Write = Callable[[str, Iterable[Mapping[str, Any]]], Path]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run ``bouncer-eval`` in this process, away from any ``.env`` and without keys."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "BOUNCER_MODEL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, output.out, output.err)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows as JSON Lines, gzipped where the name says so; returns the file."""

    def store(name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return tmp_path / name

    return store


def read_gz(file: Path) -> list[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


@pytest.fixture(scope="session")
def issues(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The annotated instances whose issue text is at hand, as a task file."""
    annotations = {row["instance_id"]: row for row in read_gz(shared_data / "bouncerbench/annotations.jsonl.gz")}
    file = tmp_path_factory.mktemp("tasks") / "issues.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for row in read_gz(shared_data / "swebench/instances.jsonl.gz"):
            if row["instance_id"] in annotations:
                text = {"problem_statement": row["problem_statement"], "repo": row["repo"]}
                out.write(json.dumps({**annotations[row["instance_id"]], **text}) + "\n")
    return file
