"""Docker as a sandbox: its arguments and its answers. A stand-in replaces the engine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import SandboxError
from bot.sandbox.docker import Docker
from bot.sandbox.protocol import IMAGE, Limits, ProgramResult
from tests.bot.sandbox import conftest

pytestmark = pytest.mark.debian("bubblewrap")


class Engine:
    """The stand-in's memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]

    @property
    def containers(self) -> list[str]:
        return [path.name for path in self.folder.glob("bouncer-*")]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    script = Path(__file__).with_name("stand_in_docker.py")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "docker"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {script} "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "engine"
    folder.mkdir()
    monkeypatch.setenv("STAND_IN", str(folder))
    monkeypatch.setenv("STAND_IN_IMAGE", IMAGE)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return Engine(folder)


def run(project: Path, code: str, **more: Any) -> ProgramResult:
    files = {"new.txt": "new"}
    return conftest.run(project, ["python3", "-c", code], Docker(), files=files, collect=("result.txt",), **more)


def test_a_program_runs_on_a_copy_and_returns_collected_files(engine: Engine, project: Path) -> None:
    outcome = run(project, "print(open('new.txt').read()); open('result.txt', 'w').write('done')")
    assert (outcome.ending, outcome.exit_code, outcome.output) == ("exited", 0, "new\n")
    assert dict(outcome.files) == {"result.txt": "done"}
    assert not (project / "new.txt").exists()
    assert engine.containers == []


def test_the_container_has_no_network_no_rights_and_the_given_limits(
    engine: Engine, project: Path, tmp_path: Path
) -> None:
    visible = tmp_path / "a,b"
    visible.mkdir()
    limits = Limits(memory_bytes=1 << 20, processes=7, disk_bytes=8 << 20)
    run(project, "pass", limits=limits, readable=(tmp_path / "bin", visible))
    verb, *arguments = engine.calls[0]
    text = " ".join(arguments)
    assert verb == "run"
    for expected in (
        "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--pids-limit 8",
        "--pull never", "--shm-size 1048576", "mode=1777,size=3145728,nr_inodes=500000", "--ulimit core=0",
        f"--mount type=bind,source={tmp_path}/bin,target={tmp_path}/bin,readonly", "--env HTTPS_PROXY= ",
        f'--mount type=bind,"source={visible}","target={visible}",readonly',
    ):  # fmt: skip
        assert expected in text
    memory = int(arguments[arguments.index("--memory") + 1])
    assert 9 << 20 < memory < 10 << 20
    assert arguments[arguments.index("--memory-swap") + 1] == str(memory)
    assert arguments[arguments.index("--user") + 1] not in ("0:0", "root")


def test_a_program_over_its_time_is_killed_in_the_engine(engine: Engine, project: Path) -> None:
    outcome = run(project, "import time; time.sleep(60)", limits=Limits(seconds=1))
    assert outcome.ending == "timeout"
    assert [call[0] for call in engine.calls] == ["run", "kill", "rm"]
    assert engine.containers == []


@pytest.mark.parametrize(("exhausted", "ending"), [(True, "memory"), (False, "killed")])
def test_the_engine_reports_if_memory_ended_a_program(
    engine: Engine, project: Path, exhausted: bool, ending: str
) -> None:
    if exhausted:
        (engine.folder / "out-of-memory").touch()
    assert run(project, "import os; os.kill(os.getpid(), 9)").ending == ending


def test_a_missing_image_is_one_clear_line(engine: Engine, project: Path) -> None:
    with pytest.raises(SandboxError, match="docker could not start the program: docker: No such image"):
        conftest.run(project, ["true"], Docker(image="nowhere"))


def test_a_missing_docker_is_one_clear_line(project: Path) -> None:
    with pytest.raises(SandboxError, match="no-such-docker is not installed"):
        conftest.run(project, ["true"], Docker(program="no-such-docker"))


def test_a_set_up_gets_a_network_that_the_operator_named_or_is_refused(engine: Engine, project: Path) -> None:
    with pytest.raises(SandboxError, match="BOUNCER_SANDBOX_NETWORK"):
        conftest.run(project, ["true"], Docker(), network=True)
    conftest.run(project, ["true"], Docker(network="fenced"), network=True)
    (call,) = [command for command in engine.calls if command[0] == "run"]
    assert call[call.index("--network") + 1] == "fenced"
    assert not any("seccomp" in word for word in call)
