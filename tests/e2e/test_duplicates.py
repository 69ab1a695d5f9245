"""A new issue that repeats an earlier one, on a whole installation with either database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.features.duplicates.record import DuplicatesRecord
from bot.features.triage.record import TriageRecord
from tests.e2e.site import Site, site

COMMENT = {".github/bouncer.yml": "duplicates: {mode: comment, suggest_above: 90}\n"}
CLEAR = "With version 4.2, `mean([])` raises an exception."
SUGGESTION = "This may be the same as #{}: both fail in the same call of"


@pytest.fixture
def shop(tmp_path: Path, database_url: str) -> Iterator[Site]:
    with site(tmp_path, url=database_url) as shop:
        yield shop


def index(shop: Site, home: str, *options: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "bot", "index", home, "--pause", "0", *options],
        env=shop.environment,
        cwd=shop.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def reads(shop: Site, home: str) -> int:
    return sum(
        request.method == "GET" and request.path.endswith(f"{home}/issues") for request in shop.github.requests
    )


def suggestion(shop: Site, home: str, number: int) -> DuplicatesRecord:
    (decision,) = shop.decided(home, number, "duplicates")
    assert isinstance(decision.record, DuplicatesRecord)
    return decision.record


def test_the_root_is_named_once_and_nothing_else_changes(shop: Site) -> None:
    home = shop.repository("acme/means", COMMENT)
    root = shop.github.open_issue(home, "Mean of nothing", CLEAR)
    shop.quiet()
    assert shop.decided(home, root, "duplicates") == (), "without an index nothing is decided"
    assert not shop.model.about("", "ComparisonReply")
    other = shop.github.open_issue(home, "Colours of plots", "With version 4.2, `plot()` draws in grey.")
    first = shop.github.open_issue(home, "Averages fail", CLEAR)
    shop.github.comment(home, first, f"Duplicate of #{root}", "mia")
    shop.quiet()
    assert index(shop, home) == "acme/means: 3 issues are indexed\n"
    shop.github.comment(home, other, f"Duplicate of #{root}", "stranger")
    shop.github.comment(home, first, f"Duplicate of #{root}", "mia")
    shop.quiet()

    before = reads(shop, home)
    clear = shop.github.open_issue(home, "Averages of empty lists fail", CLEAR)
    vague = shop.github.open_issue(home, "Averages", "`mean([])` fails.")
    grey = shop.github.open_issue(home, "Plots", "With version 4.2, plots in grey have no legend.")
    shop.quiet()
    assert reads(shop, home) == before, "the index costs no request once it stands"
    (comment,) = shop.said(home, clear)
    assert comment.startswith(SUGGESTION.format(root))
    assert "@octocat" not in comment
    (bounce,) = shop.said(home, vague)
    assert bounce.startswith("Thanks for the report.")
    assert SUGGESTION.format(root) in bounce
    assert shop.said(home, grey) == []
    assert {suggestion(shop, home, number).root for number in (clear, vague)} == {root}
    assert suggestion(shop, home, grey).root is None
    assert [shop.github.find(home, number)[1].state for number in (clear, vague)] == ["open", "open"]
    assert shop.github.labels(home, clear) == []
    assert len(shop.model.about("", "ComparisonReply")) == 3

    # What the author adds is judged again; the line stays in the comment.
    shop.github.comment(home, vague, "It is version 4.2.", "alice")
    shop.quiet()
    (bounce,) = shop.said(home, vague)
    assert bounce.startswith("Thanks, that answers my questions.")
    assert SUGGESTION.format(root) in bounce


def test_by_default_it_is_recorded_and_nothing_is_posted(shop: Site) -> None:
    home = shop.repository("acme/quiet")
    unset = shop.repository("acme/unset", {".github/bouncer.yml": "duplicates: {mode: comment}\n"})
    for name in (home, unset):
        root = shop.github.open_issue(name, "Mean of nothing", CLEAR)
        shop.github.close(name, root)
        shop.quiet()
        index(shop, name)
        number = shop.github.open_issue(name, "Averages fail", CLEAR)
        shop.quiet()
        (decision,) = shop.decided(name, number, "duplicates")
        assert (decision.verdict, decision.actions, len(decision.withheld)) == ("duplicate", (), 1)
        assert decision.reason.startswith("shadow mode")
        assert shop.said(name, number) == []
    assert "until duplicates.suggest_above is set" in decision.reason


def test_the_model_is_shown_what_maintainers_asked_on_closed_issues(shop: Site) -> None:
    triage = {".github/bouncer.yml": "triage: {examples: 3}\nduplicates: {mode: 'off'}\n"}
    home, plain = shop.repository("acme/asked", triage), shop.repository("acme/plain")
    for name in (home, plain):
        early, late, still_open = (shop.github.open_issue(name, f"Mean {word}", CLEAR) for word in ("a", "b", "c"))
        for number in (early, still_open):
            shop.github.comment(name, number, f"Which list did you pass to #{number}?", "mia")
        shop.github.comment(name, early, "Why is nobody working on this?", "stranger")
        shop.github.close(name, early)
        shop.quiet()
        index(shop, name)
        shop.github.comment(name, late, "Do you use `numpy` for it?", "mia")
        shop.github.close(name, late)
        shop.quiet()
    before = len(shop.github.requests)
    number = shop.github.open_issue(home, "Averages of empty lists fail", CLEAR)
    shop.github.open_issue(plain, "Averages without a list fail", CLEAR)
    shop.quiet()
    assert not [request for request in list(shop.github.requests)[before:] if request.path.endswith("/comments")]
    (question,) = shop.model.about("Averages of empty lists fail", "InputReply")
    assert f"Which list did you pass to #{early}?" in question.text
    assert "Do you use `numpy` for it?" in question.text
    assert f"#{still_open}?" not in question.text
    assert "nobody working" not in question.text
    (decision,) = shop.decided(home, number, "triage")
    assert isinstance(decision.record, TriageRecord)
    assert decision.record.prompt_hash
    (question,) = shop.model.about("Averages without a list fail", "InputReply")
    assert "maintainers of this project asked" not in question.text
