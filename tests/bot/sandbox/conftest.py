"""A small project to run programs on, and the check that nothing of it, or around it, was touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.monitor import descendants
from bot.sandbox.protocol import Limits, ProgramResult, ProgramRun
from tests.conftest import ROOT

#: Runs a Python program of one string, with limits by name.
RunPython = Callable[..., ProgramResult]


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
    before, running = _picture(tmp_path), set(descendants(os.getpid()))
    yield private
    assert _picture(tmp_path) == before
    assert set(descendants(os.getpid())) <= running


def _picture(folder: Path) -> Mapping[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def python(project: Path) -> RunPython:
    def run(code: str, *, collect: Sequence[str] = (), **limits: Any) -> ProgramResult:
        return Bubblewrap().run(
            ProgramRun(
                ["python3", "-c", code],
                workdir=project,
                limits=Limits.model_validate({"seconds": 20, **limits}),
                collect=collect,
            )
        )

    return run


#: Starts a worker as an ordinary user; a mount namespace of its own shows it an interpreter below /root.
_AS_ORDINARY = """\
set -eu
home=$1 keep=$2
shift 2
if [ -d "$home" ] && [ "$home" != / ]; then
    mount -t tmpfs -o mode=0755 keep "$keep"
    mkdir "$keep/python"
    mount --bind "$3" "$keep/python"
    mount -t tmpfs -o mode=0755 home "$home"
    mkdir -p "$3"
    mount --bind "$keep/python" "$3"
fi
user=$1 script=$2
shift 3
exec setpriv --reuid "$user" --regid "$user" --clear-groups -- "$@" -c "$script"
"""
_WORKER = """\
import json, sys
from pathlib import Path
from bot.sandbox import seccomp
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits, ProgramRun
told = json.load(sys.stdin)
seccomp._ALLOWED += told.pop("allowed")
limits = Limits.model_validate(told.pop("limits"))
argv, workdir = told.pop("argv"), Path(told.pop("workdir"))
print(Bubblewrap().run(ProgramRun(argv, workdir, limits, **told)).model_dump_json())
"""
ORDINARY = 61234


@pytest.fixture(params=["as it is", "ordinary user"])
def attack(request: pytest.FixtureRequest, project: Path, tmp_path: Path) -> RunPython:
    """Runs a hostile command in the sandbox of a worker: the one that runs the tests, or an ordinary user.

    ``allowed``: system calls that the filter lets through beside its own, to see what would hold without it.
    """

    def run(argv: Sequence[str], *, network: bool = False, allowed: str = "", **limits: Any) -> ProgramResult:
        told = {"argv": list(argv), "limits": {"seconds": 20, **limits}, "network": network}
        if request.param == "as it is" and not allowed:
            known = Limits.model_validate(told["limits"])
            return Bubblewrap().run(ProgramRun(argv, workdir=project, limits=known, network=network))
        words = [sys.executable, "-c", _WORKER]
        if request.param != "as it is":
            words = as_ordinary()
        done = subprocess.run(
            words,
            input=json.dumps({**told, "workdir": str(project), "allowed": f" {allowed} "}),
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert done.returncode == 0, done.stderr
        return ProgramResult.model_validate_json(done.stdout)

    def as_ordinary() -> list[str]:
        if os.geteuid() != 0:
            pytest.skip("the worker is an ordinary user already")
        keep = tmp_path / "keep"
        keep.mkdir(exist_ok=True)
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_uid == 0 and folder.is_relative_to("/tmp/") and folder != Path("/tmp"):
                folder.chmod(folder.stat().st_mode | 0o055)
        base = Path(sys.base_prefix)
        home = Path("/root") if base.is_relative_to("/root") else Path("/")
        words = ["unshare", "--mount", "sh", "-c", _AS_ORDINARY, "worker", str(home), str(keep)]
        return [*words, str(ORDINARY), _WORKER, str(base), sys.executable]

    return run
