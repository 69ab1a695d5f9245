"""A bug's life on the default branch of 30 commits.

There are a regression, its revert, a commit that does not build, a flaky test, and pull requests that compete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bot.pipeline.rig import wait
from tests.e2e.provider import completion
from tests.e2e.site import Site, site
from tests.e2e.test_reproduce_life import BUGGY, FIXED, REPORT

pytestmark = pytest.mark.debian("bubblewrap")

CONFIG = """\
triage: {mode: "off"}
verify: {execute: true, context_tokens: 0}
review: {mode: "off"}
reproduce:
  mode: comment
  samples: 1
  watch: daily
  command: python -m unittest -q {tests}
"""
#: Of unittest, which starts in a third of pytest's time.
TESTS = """\
import unittest

from shapes import split


class ShapesTest(unittest.TestCase):
    def test_even(self):
        self.assertEqual(split([1, 2], 2), [[1, 2]])
"""
HOME = "acme/history"
STILL = "def tick():\n    return 0\n"
#: Each call returns the opposite of the call before, if less than five seconds pass in between.
FLAKY = """\
import time


def tick():
    slot = time.time() // 5
    time.sleep(5 * (slot + 1) - time.time())
    return int(slot % 2)
"""
TICKS = """\
import unittest

from clock import tick


class ClockTest(unittest.TestCase):
    def test_tick(self):
        self.assertEqual(tick(), 1)
"""


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose days are short."""
    with site(tmp_path_factory.mktemp("watch"), DAY_SECONDS="1") as shop:
        yield shop


def write_notes(shop: Site, count: int) -> None:
    for _ in range(count):
        number = len(shop.github.world.commits)
        shop.github.commit(HOME, {"NOTES.md": f"Note {number}.\n"})


def head_of(shop: Site) -> str:
    return shop.github.world.repositories[HOME].branches["main"]


def commits(shop: Site) -> int:
    """Return the number of commits of the default branch, by first parents."""
    count, sha = 0, head_of(shop)
    while sha:
        count, sha = count + 1, next(iter(shop.github.world.commits[sha].parents), "")
    return count


def comment_of(shop: Site, number: int, start: str) -> str:
    """Return our comment that begins so; empty if there is none."""
    return next((body for body in shop.comments_on(HOME, number) if body.startswith(start)), "")


def verified(shop: Site, number: int) -> str:
    """Return the title of the check on a pull request's head; empty if there is none."""
    runs = shop.checks(HOME, shop.head(HOME, number))
    return next((run.output["title"] for run in runs if run.name == "bouncer / verify" and run.output), "")


def compare_pull_requests(shop: Site, issue: int) -> None:
    """Open two pull requests for an issue, the second of which solves it only after a push."""
    github, solved = shop.github, f"Appears to solve #{issue}; its reproducing test"

    def becomes(number: int, title: str) -> None:
        wait(lambda: verified(shop, number) == title, 120, f"#{number}: {title}")

    # The model of these tests takes a patch for a solution where it says "if data".
    fix, body = f"{FIXED}\n\n# if data\n", f"Fixes #{issue}"
    first = github.open_pull(HOME, "Keep the rest", body, closes=[issue], files={"shapes.py": fix})
    becomes(first, f"{solved} passes here")
    not_one = {"shapes.py": f"{BUGGY}\n\n# if data\n"}
    second = github.open_pull(HOME, "Keep more", body, closes=[issue], files=not_one)
    becomes(second, f"Probably doesn't solve #{issue}; its reproducing test: fails here, passes on #{first}")
    becomes(first, f"{solved}: passes here, still fails on #{second}")
    github.push(HOME, second, {"shapes.py": fix})
    wait(lambda: verified(shop, second) == f"{solved}: passes here, passes on #{first}", 120, "the push solves it")
    wait(
        lambda: verified(shop, first) == f"{solved}: passes here, passes on #{second}", 120, "the first knows that"
    )
    pull = shop.pull(HOME, second)
    links, pull.closes = pull.closes, []
    github.edit(HOME, second, body="For later.")
    becomes(first, f"{solved} passes here")
    pull.closes = links
    github.edit(HOME, second, body=body)
    becomes(first, f"{solved}: passes here, passes on #{second}")
    github.close(HOME, second)
    becomes(first, f"{solved} passes here")
    renewed = [decision for decision in shop.decided(HOME, first, "verify") if not decision.verdict]
    assert {decision.usage.calls for decision in renewed} == {0}, "no model is asked to renew a check"
    github.close(HOME, first)


def make_flaky(shop: Site) -> int:
    """Open an issue whose test is reproduced and turns flaky, and return its number once it is left alone."""
    github, draft = shop.github, {"plan": "It stands still.", "code": TICKS}
    shop.model.misbehave("`tick()`", completion(json.dumps(draft)))
    number = github.open_issue(HOME, "tick stands still", "With version 4.2 `tick()` returns 0. I expect 1.")
    github.comment(HOME, number, "/bouncer reproduce", "mia")
    wait(lambda: comment_of(shop, number, "**Reproduced on `main`"), 60, "reproduced")

    sha = github.commit(HOME, {"clock.py": FLAKY})
    github.comment(HOME, number, "/bouncer bisect", "mia")
    wait(lambda: comment_of(shop, number, "mia: "), 240, "not bisected")
    assert comment_of(shop, number, "mia: ").startswith(
        f"mia: `tests/test_clock.py::ClockTest::test_issue_{number}` is flaky: its runs on {sha[:7]} differ, so a "
    )
    # A first run that fails as ever is enough for a day: it takes another commit then.
    while not is_flaky(shop, number):
        write_notes(shop, 1)
        # It may turn out on the commit before, and is then left alone.
        wait(
            lambda: is_flaky(shop, number) or head_of(shop) in [run.record.sha for run in watched(shop, number)],
            120,
            "run once more",
        )
    return number


def is_flaky(shop: Site, number: int) -> bool:
    """Return True if the watch found an issue's test to be flaky."""
    return "skipped:flaky" in [run.abstained for run in watched(shop, number)]


def watched(shop: Site, number: int) -> list[Any]:
    """Return the decisions of the watch on an issue, without bisections."""
    return [
        item for item in shop.decided(HOME, number, "watch") if "bisected" not in f"{item.verdict}{item.abstained}"
    ]


def test_the_watch_goes_on_under_the_new_name_of_the_default_branch(hasty: Site) -> None:
    files = {"shapes.py": BUGGY, "tests/test_shapes.py": TESTS}
    home = hasty.repository("acme/branches", {**files, ".github/bouncer.yml": CONFIG})
    number = hasty.github.open_issue(home, "split drops the rest", REPORT)
    hasty.github.comment(home, number, "/bouncer reproduce", "mia")
    wait(lambda: hasty.decided(home, number, "watch"), 120, "watched")
    with hasty.github.world.lock:
        place = hasty.github.world.repositories[home]
        place.branches["trunk"], place.default_branch = place.branches.pop("main"), "trunk"
    fix = hasty.github.commit(home, {"shapes.py": FIXED}, branch="trunk")
    wait(lambda: "maybe-fixed" in hasty.github.labels(home, number), 120, "the fix is told")
    assert any(f"since {fix[:7]}" in body for body in hasty.comments_on(home, number))
    hasty.github.close(home, number)


def test_regression_is_bisected_and_its_fix_and_its_return_are_told(hasty: Site) -> None:
    github = hasty.github
    files = {
        "shapes.py": FIXED,
        "tests/test_shapes.py": TESTS,
        "clock.py": STILL,
        "tests/test_clock.py": "from clock import tick\n",
        ".github/bouncer.yml": CONFIG,
    }
    hasty.repository(HOME, files)
    write_notes(hasty, 7)
    github.tag(HOME, "v1.1")  # on commit 8
    write_notes(hasty, 3)
    regression = github.open_pull(HOME, "Chunk faster", files={"shapes.py": BUGGY})
    github.merge(HOME, regression, by="mia")
    bad = head_of(hasty)
    github.commit(HOME, {"shapes.py": "def split(items, size:\n"})
    github.commit(HOME, {"shapes.py": BUGGY})
    write_notes(hasty, 4)
    github.tag(HOME, "v1.2")  # on commit 18
    write_notes(hasty, 2)

    number = github.open_issue(HOME, "split drops the rest", REPORT)
    github.comment(HOME, number, "/bouncer reproduce", "mia")
    wait(lambda: comment_of(hasty, number, "**Reproduced on `main`"), 60, "reproduced")

    github.comment(HOME, number, "/bouncer bisect", "carol")
    github.comment(HOME, number, "/bouncer bisect", "mia")
    wait(lambda: comment_of(hasty, number, "mia: "), 240, "bisected")
    assert comment_of(hasty, number, "mia: ").startswith(
        f"mia: `tests/test_shapes.py::ShapesTest::test_issue_{number}` fails since {bad[:7]} "
        f"(pull request #{regression}). It passes on `v1.1`; 7 commits were built, 1 of which cannot be run."
    )
    bisections = [item for item in hasty.decided(HOME, number, "watch") if item.verdict == "bisected"]
    assert len(bisections) == 1, "nothing is run for a stranger"

    compare_pull_requests(hasty, number)
    flaky = make_flaky(hasty)

    write_notes(hasty, 2)
    revert = github.revert(HOME, regression, by="mia")
    good = head_of(hasty)
    write_notes(hasty, 1)
    wait(lambda: "maybe-fixed" in github.labels(HOME, number), 240, "the fix is told")
    fixed = comment_of(hasty, number, "**The drafted test no longer fails")
    assert fixed.startswith(
        f"**The drafted test no longer fails since {good[:7]} (pull request #{revert}). Close?**"
    )

    again = github.commit(HOME, {"shapes.py": BUGGY})
    write_notes(hasty, 30 - commits(hasty))
    wait(lambda: "maybe-fixed" not in github.labels(HOME, number), 240, "the regression is told")
    wait(lambda: comment_of(hasty, number, "**The drafted test fails again"), 60, "the same comment says so")
    regressed = comment_of(hasty, number, "**The drafted test fails again")
    assert regressed.startswith(f"**The drafted test fails again since {again[:7]}.**")
    assert not comment_of(hasty, number, "**The drafted test no longer fails")
    assert github.find(HOME, number)[1].state == "open"
    assert "@" not in "".join(hasty.comments_on(HOME, number))
    assert not any(decision.usage.calls for decision in hasty.decided(HOME, number, "watch")), "no model is asked"
    assert commits(hasty) >= 30
    assert watched(hasty, flaky)[-1].abstained == "skipped:flaky", "it is not run again"
    assert github.labels(HOME, flaky) == ["reproduced"]
    assert len(hasty.comments_on(HOME, flaky)) == 2, "the reproduction, and the answer to the command"

    github.close(HOME, number, by="mia")
    wait(lambda: hasty.decided(HOME, number, "watch")[-1].abstained == "skipped:closed", 60, "the watch ends")
    hasty.quiet()
