"""A desk at which commands about repositories are tried."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from bot.simgithub import SimulatedGitHub
from tests.bot.cli.github_commands import Desk


@pytest.fixture
def desk(tmp_path: Path, httpserver: HTTPServer, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    with SimulatedGitHub() as github:
        yield Desk(github, httpserver, tmp_path, capsys)
