"""A small project to run programs on, and the check that nothing of it, or around it, was touched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.processes import descendants
from bot.sandbox.protocol import Limits, Outcome

#: Runs a Python program of one string, with limits by name.
RunPython = Callable[..., Outcome]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "data.txt").write_text("original\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("url = https://x-access-token:ghs_secret@example.org/a/b\n")
    return folder


@pytest.fixture
def untouched(tmp_path: Path, project: Path) -> Iterator[Path]:
    """A folder of the operator's beside the project; afterwards both are as they were and no process is left."""
    private = tmp_path / "operator"
    private.mkdir()
    (private / "key.pem").write_text("private key\n")
    before = _picture(tmp_path)
    yield private
    assert _picture(tmp_path) == before
    assert descendants(os.getpid()) == (os.getpid(),)


def _picture(folder: Path) -> Mapping[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def python(project: Path) -> RunPython:
    def run(code: str, *, collect: Sequence[str] = (), **limits: Any) -> Outcome:
        return Bubblewrap().run(
            ["python3", "-c", code],
            workdir=project,
            files={},
            limits=Limits.model_validate({"seconds": 20, **limits}),
            collect=collect,
        )

    return run
