"""A small project to run programs on, and the check that nothing in it or around it changed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.monitor import descendants
from bot.sandbox.protocol import Limits, ProgramResult, ProgramRun, Sandbox
from tests.conftest import ROOT

#: Runs a Python program of one string, with limits by name.
RunPython = Callable[..., ProgramResult]


def run(project: Path, argv: Sequence[str], sandbox: Sandbox | None = None, **more: Any) -> ProgramResult:
    """Run a command on the project, in bubblewrap and for 20 seconds at most if nothing else is said."""
    return (sandbox or Bubblewrap()).run(ProgramRun(argv, project, **{"limits": Limits(seconds=20), **more}))


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
    """A folder of the operator beside the project. Check that both are unchanged and no process is left."""
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
    def run_python(code: str, *, collect: Sequence[str] = (), **limits: Any) -> ProgramResult:
        all_limits = Limits.model_validate({"seconds": 20, **limits})
        return run(project, ["python3", "-c", code], limits=all_limits, collect=collect)

    return run_python


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


def _reachable(folders: set[Path], keep: Path) -> list[str]:
    """Mounts, in a namespace of the worker's own, that let every user reach the folders below private ones."""
    closed = {folder: _outermost_private(folder) for folder in sorted(folders)}
    closed = {folder: private for folder, private in closed.items() if private is not None}
    lines = [f"mount -t tmpfs -o mode=0755 keep {shlex.quote(str(keep))}"]
    for number, folder in enumerate(closed):
        lines += [f"mkdir {number}", f"mount --bind {shlex.quote(str(folder))} {number}"]
    lines.insert(1, f"cd {shlex.quote(str(keep))}")
    lines += [f"mount -t tmpfs -o mode=0755 open {shlex.quote(str(private))}" for private in set(closed.values())]
    for number, folder in enumerate(closed):
        lines += [f"mkdir -p {shlex.quote(str(folder))}", f"mount --bind {number} {shlex.quote(str(folder))}"]
    return [*lines, f"cd {shlex.quote(str(ROOT))}"]


def _outermost_private(folder: Path) -> Path | None:
    """Return the first folder on the way that an ordinary user may not enter; skip if it is the last one."""
    if not folder.stat().st_mode & 0o001:
        pytest.skip(f"an ordinary user may not enter {folder}: chmod 755 it")
    return next((parent for parent in reversed(folder.parents) if not parent.stat().st_mode & 0o001), None)


@pytest.fixture(params=["as it is", "ordinary user"])
def attack(request: pytest.FixtureRequest, project: Path, tmp_path: Path) -> RunPython:
    """Runs a hostile command in the sandbox of a worker: the one that runs the tests, or an ordinary user.

    ``allowed``: system calls that the filter lets through beside its own, to see what would hold without it.
    """

    def tried(argv: Sequence[str], *, network: bool = False, allowed: str = "", **limits: Any) -> ProgramResult:
        message = {"argv": list(argv), "limits": {"seconds": 20, **limits}, "network": network}
        if request.param == "as it is" and not allowed:
            return run(project, argv, limits=Limits.model_validate(message["limits"]), network=network)
        words = [sys.executable, "-c", _WORKER]
        if request.param != "as it is":
            words = as_ordinary()
        done = subprocess.run(
            words,
            input=json.dumps({**message, "workdir": str(project), "allowed": f" {allowed} "}),
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert done.returncode == 0, done.stderr
        return ProgramResult.model_validate_json(done.stdout)

    def as_ordinary() -> list[str]:
        if os.geteuid() != 0:
            pytest.skip("the worker is an ordinary user already")
        tmp_path.chmod(0o755)
        keep = tmp_path / "keep"
        keep.mkdir(exist_ok=True)
        worker = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--"]
        worker += [sys.executable, "-c", _WORKER]
        mounts = _reachable({Path(sys.base_prefix), Path(sys.prefix), ROOT, tmp_path}, keep)
        return ["unshare", "--mount", "sh", "-euc", "\n".join([*mounts, "exec " + shlex.join(worker)])]

    return tried
