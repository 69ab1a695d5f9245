"""Environments of set-up commands: cached, made again after an interruption, limited in size."""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot import app
from bot.core.errors import SandboxError
from bot.reproduction.protocol import SetupFailed
from bot.reproduction.setup import Environments, Recipe
from bot.sandbox import network
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.docker import Docker
from bot.sandbox.protocol import Limits, ProgramRun, Sandbox
from bot.settings import Settings
from tests.conftest import missing

pytestmark = pytest.mark.debian("bubblewrap")

#: A mark of when an environment was made. ``true`` stands for the interpreter, which would take seconds.
COMMAND = 'date +%s%N >"$VIRTUAL_ENV"/made'
RECIPE = Recipe(repository=1, python="true", commands=(COMMAND,))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "tests").mkdir(parents=True)
    (folder / "requirements.txt").write_text("dep==1\n")
    return folder


#: No download is part of these, and no machine has to offer a network for them.
SANDBOX = Bubblewrap(offline=True)


def prepared_environment(
    environments: Environments, checkout: Path, recipe: Recipe = RECIPE, sandbox: Sandbox | None = SANDBOX
) -> str:
    assert sandbox
    with environments.prepared(sandbox, checkout, recipe) as environment:
        return Path(environment.env["VIRTUAL_ENV"], "made").read_text()


def test_a_changed_dependency_command_or_interpreter_makes_a_new_one(tmp_path: Path, checkout: Path) -> None:
    environments = Environments(tmp_path / "environments")
    first = prepared_environment(environments, checkout)
    assert prepared_environment(environments, checkout) == first
    (checkout / "tests" / "test_more.py").write_text("# no dependency\n")
    assert prepared_environment(environments, checkout) == first
    other = RECIPE.model_copy(update={"commands": (COMMAND, "true")})
    assert len({first, prepared_environment(environments, checkout, other)}) == 2
    (checkout / "requirements.txt").write_text("dep==2\n")
    assert prepared_environment(environments, checkout) != first


def test_network_folders_and_image_are_part_of_the_key(checkout: Path) -> None:
    sandboxes = (
        Bubblewrap(),
        Bubblewrap(offline=True),
        Bubblewrap(folders=(Path("/opt/jdk"),)),
        Docker(),
        Docker(image="python:3.13"),
        Docker(network="apart"),
    )
    assert len({RECIPE.key(checkout, sandbox.surroundings) for sandbox in sandboxes}) == len(sandboxes)


def test_without_commands_there_is_no_environment(tmp_path: Path, checkout: Path) -> None:
    with Environments(tmp_path / "environments").prepared(SANDBOX, checkout, Recipe(repository=1)) as environment:
        assert (dict(environment.env), environment.readable) == ({}, ())
    assert not (tmp_path / "environments").exists()


def test_a_failed_command_is_reported_and_nothing_is_kept(
    tmp_path: Path, checkout: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    environments = Environments(tmp_path / "environments")
    commands = ("echo before", "echo ERROR: no such package >&2; exit 7", "echo after")
    recipe = RECIPE.model_copy(update={"commands": commands})
    with pytest.raises(SetupFailed, match=r"failed \(exit code 7\) at `echo ERROR: no such package") as caught:
        prepared_environment(environments, checkout, recipe)
    assert str(caught.value).splitlines()[1:] == ["ERROR: no such package"]
    assert "before" in caplog.text, "the operator sees all output"
    assert [path.name for path in (tmp_path / "environments").iterdir() if path.is_dir()] == []


def test_a_set_up_that_fills_the_disk_is_stopped(tmp_path: Path, checkout: Path) -> None:
    environments = Environments(tmp_path / "environments", limits=Limits(seconds=60, disk_bytes=64 << 20))
    flood = 'while true; do head -c 5000000 /dev/zero >"$VIRTUAL_ENV/flood$(date +%N)"; done'
    with pytest.raises(SetupFailed, match="limit: disk"):
        prepared_environment(environments, checkout, RECIPE.model_copy(update={"commands": (flood,)}))


def test_an_interrupted_set_up_starts_again(tmp_path: Path, checkout: Path) -> None:
    folder = tmp_path / "environments"
    script = (
        "from pathlib import Path\n"
        "from bot.reproduction.setup import Environments, Recipe\n"
        "from bot.sandbox.bubblewrap import Bubblewrap\n"
        f"recipe = Recipe(repository=1, python='true', commands=({COMMAND!r}, 'sleep 60'))\n"
        f"environments, sandbox = Environments(Path({str(folder)!r})), Bubblewrap(offline=True)\n"
        f"with environments.prepared(sandbox, Path({str(checkout)!r}), recipe): pass\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[3])
    deadline = time.monotonic() + 60
    while not list(folder.glob("*/env/made")):
        assert time.monotonic() < deadline
        assert worker.poll() is None
        time.sleep(0.05)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    half = next(folder.glob("*/env/made"))
    recipe = RECIPE.model_copy(update={"commands": (COMMAND, "sleep 60")})
    place = folder / recipe.key(checkout, SANDBOX.surroundings)
    assert half.parent.parent == place
    (place / "env" / "left").write_text("over")
    quick = Environments(folder, limits=Limits(seconds=5))
    # The recipe starts again and exceeds its time: an incomplete environment is never used.
    with pytest.raises(SetupFailed, match="limit: timeout"):
        prepared_environment(quick, checkout, recipe)
    assert not (place / "env" / "left").exists()


def test_old_and_surplus_environments_are_removed_unless_in_use(tmp_path: Path, checkout: Path) -> None:
    folder = tmp_path / "environments"
    recipes = [RECIPE.model_copy(update={"commands": (COMMAND, f"true {number}")}) for number in range(3)]
    places = [folder / recipe.key(checkout, SANDBOX.surroundings) for recipe in recipes]
    roomy, tight = Environments(folder), Environments(folder, max_bytes=1)
    with roomy.prepared(SANDBOX, checkout, recipes[0]):
        prepared_environment(roomy, checkout, recipes[1])
        assert all(place.is_dir() for place in places[:2])
        prepared_environment(tight, checkout, recipes[2])
        assert [place.is_dir() for place in places] == [True, False, True]
    os.utime(places[2] / "complete", (0, 0))
    prepared_environment(roomy, checkout, recipes[1])
    assert [place.is_dir() for place in places] == [True, True, False]


def test_without_network_a_set_up_is_refused_or_run_as_configured(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_TUN", tmp_path / "no-such-device")
    environments = Environments(tmp_path / "environments")
    recipe = Recipe(repository=1, python="true", commands=('grep -c : /proc/net/dev >"$VIRTUAL_ENV"/made',))
    with pytest.raises(SandboxError, match=r"no-such-device cannot be opened .* BOUNCER_SANDBOX_NETWORK=none"):
        prepared_environment(environments, checkout, recipe, app.build_sandbox(Settings(_env_file=None)))
    monkeypatch.setenv("BOUNCER_SANDBOX_NETWORK", "none")
    interfaces = prepared_environment(environments, checkout, recipe, app.build_sandbox(Settings(_env_file=None)))
    assert interfaces == "1\n"  # its own loopback


@pytest.mark.debian("slirp4netns")
@pytest.mark.index
def test_packages_of_the_index_can_be_installed(tmp_path: Path, checkout: Path) -> None:
    pip = " ".join(
        f"{name}={shlex.quote(value)}"
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_")) and name != "PIP_FIND_LINKS"
    )
    environments = Environments(tmp_path / "environments")
    install = f"{pip} python -m pip install --quiet iniconfig==2.0.0"
    recipe = Recipe(repository=1, python=sys.executable, commands=(install,))
    try:
        with environments.prepared(Bubblewrap(), checkout, recipe) as environment:
            outcome = Bubblewrap().run(
                ProgramRun(
                    [
                        environment.env["VIRTUAL_ENV"] + "/bin/python",
                        "-c",
                        "import iniconfig; print(iniconfig.__file__)",
                    ],
                    workdir=checkout,
                    limits=Limits(seconds=20),
                    readable=environment.readable,
                )
            )
    except SetupFailed as error:
        missing(f"the package index cannot be reached from the sandbox: {json.dumps(str(error)[-300:])}")
        return
    assert outcome.output.strip().endswith("iniconfig/__init__.py")
