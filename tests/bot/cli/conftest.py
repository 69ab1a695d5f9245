"""Ways to run ``bouncer`` in this process: as it is, and against a simulated GitHub and a scripted model."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from bot.simgithub import SimulatedGitHub
from tests.bot.cli.github_commands import Desk, Ran, run_here


@pytest.fixture
def bouncer(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    return partial(run_here, capsys)


@pytest.fixture
def desk(tmp_path: Path, httpserver: HTTPServer, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    with SimulatedGitHub() as github:
        yield Desk(github, httpserver, tmp_path, capsys)
