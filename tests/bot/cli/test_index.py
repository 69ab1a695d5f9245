"""``bouncer index``: an interrupted first pass goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.pipeline.store import migrated
from bot.pipeline.store.issues import Issues
from bot.simgithub import SimulatedGitHub
from tests.bot.cli.github_commands import Ran

NAME = "acme/rocket"
URL = "sqlite:///bouncer.db"


def test_an_interrupted_first_pass_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bouncer: Callable[..., Ran]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", URL)
    with migrated(URL) as database, SimulatedGitHub() as github:
        monkeypatch.setenv("GITHUB_API_URL", github.api_url)
        github.create_repository(NAME)
        for number in range(101):
            github.open_issue(NAME, f"Issue {number}")
        github.close(NAME, github.open_issue(NAME, "Old"))
        fault = github.fail("forbidden", path="/issues$", after=2, times=9)
        assert bouncer("index", NAME, "--pause", "0").code != 0
        assert Issues(database).count(NAME) == 101
        assert Issues(database).history(NAME) is None, "an index that is not complete is not used"
        fault.times = 0
        before = len(github.requests)
        code, output, progress = bouncer("index", NAME, "--pause", "0")
        assert (code, output) == (0, f"{NAME}: 102 issues are indexed\n")
        assert progress == "closed issues, page 1\ncomments, page 1\n"
        pages = [request.query for request in list(github.requests)[before:] if request.path.endswith("/issues")]
        assert [page["state"] for page in pages] == ["closed"]
