"""Hostile set-up steps must not reach the worker, the host or other repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.reproduction.execution import SandboxHarness
from bot.reproduction.protocol import SetupFailed, Target, TestCommand, TestReport
from bot.reproduction.setup import Environments, Recipe
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits

pytestmark = pytest.mark.debian("bubblewrap")

SECRET = "ghs_planted_credentials"
LIMITS = Limits(seconds=60, disk_bytes=128 << 20)
#: None of these set-ups downloads anything, and what they leave behind has nothing to do with a network.
SANDBOX = Bubblewrap(offline=True)
#: Makes no environment at all, at once: what these set-ups write is their own.
NOTHING = "true"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    )
    return folder


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "x" / "lib" / "python3.11").mkdir(parents=True)
    (folder / "x" / "bin").mkdir()
    (folder / "x" / "credentials.json").write_text(SECRET)
    (folder / "x" / "lib" / "credentials.json").write_text(SECRET)
    return folder / "x"


def run(tmp_path: Path, checkout: Path, script: str, *commands: str, repository: int = 1) -> TestReport:
    """Set up an environment by ``commands``, then run ``script`` in it as the test command."""
    recipe = Recipe(repository=repository, python=NOTHING, commands=commands)
    with Environments(tmp_path / "environments", limits=LIMITS).prepared(SANDBOX, checkout, recipe) as environment:
        harness = SandboxHarness(
            SANDBOX,
            TestCommand(argv=("sh", "-c", script)),
            env=environment.env,
            readable=environment.readable,
            limits=LIMITS,
        )
        return harness.run(checkout, [Target(path="test_it.py")], {})


@pytest.mark.parametrize(
    "forged",
    [
        'printf "home = {place}/bin\\n" >"$VIRTUAL_ENV/pyvenv.cfg"',
        'mkdir "$VIRTUAL_ENV/bin"; ln -s {place}/bin/python3 "$VIRTUAL_ENV/bin/"; ln -s {place} "$VIRTUAL_ENV/x"',
        'ln -s {place}/lib "$VIRTUAL_ENV/lib"',
    ],
)
def test_a_set_up_cannot_choose_the_command_that_is_shown(
    tmp_path: Path, checkout: Path, planted: Path, forged: str
) -> None:
    reads = f'cat {planted}/credentials.json {planted}/lib/*.json "$VIRTUAL_ENV"/*/*.json; echo FAILED; exit 1'
    report = run(tmp_path, checkout, reads, forged.format(place=planted))
    assert SECRET not in report.model_dump_json()


@pytest.mark.parametrize("kind", ["mkfifo {}", "ln -s /dev/zero {}"])
def test_no_file_of_an_environment_blocks_the_worker(tmp_path: Path, checkout: Path, kind: str) -> None:
    name = '"$VIRTUAL_ENV/pyvenv.cfg"'
    report = run(tmp_path, checkout, "python3 -m unittest test_it", kind.format(name))
    assert report.outcome.status in ("passed", "error", "failed")


def test_environments_are_not_shared_between_repositories(tmp_path: Path, checkout: Path) -> None:
    site = '"$(echo "$VIRTUAL_ENV"/lib/python*/site-packages)"'
    plant = f'echo "import os; os.environ.update(OWNED=str(1))" >{site}/x.pth'
    # Commands and dependency files are those of the victim.
    shared = f'python3 -m venv --without-pip "$VIRTUAL_ENV"; if test -e /repo/evil; then {plant}; fi'
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "test_it.py").write_text((checkout / "test_it.py").read_text())
    (evil / "evil").touch()
    script = 'python -c \'import os; assert "OWNED" not in os.environ, "owned"\''
    lookalike = run(tmp_path, evil, script, shared, repository=2)
    victim = run(tmp_path, checkout, script, shared, repository=1)
    assert "owned" in lookalike.outcome.message
    assert victim.outcome.status == "passed"


def test_an_endless_folder_tree_is_measured_and_removed(tmp_path: Path, checkout: Path) -> None:
    deep = (
        'python3 -c \'import os; os.chdir(os.environ["VIRTUAL_ENV"]); [(os.mkdir("d"), os.chdir("d")) '
        'for _ in range(1200)]\'; chmod 0 "$VIRTUAL_ENV/d"'
    )
    with pytest.raises(SetupFailed, match="exit code 5"):
        run(tmp_path, checkout, "true", deep, "sleep 1.5; exit 5")
    assert not [folder for folder in (tmp_path / "environments").iterdir() if folder.is_dir()]


def test_a_failed_run_shows_the_runner_s_report(checkout: Path) -> None:
    command = TestCommand(
        argv=("sh", "-c", "echo private detail; python3 -m unittest test_none; env | sort; exit 1")
    )
    report = SandboxHarness(SANDBOX, command, limits=LIMITS).run(checkout, [Target(path="test_it.py")], {})
    assert "No module named 'test_none'" in report.outcome.output
    assert "private detail" not in report.outcome.output
    assert "TMPDIR" not in report.outcome.output
