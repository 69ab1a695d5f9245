"""A bug's life on the default branch of 30 commits: a regression, a commit that does not build, and a revert."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bot.pipeline.rig import wait
from tests.e2e.site import Site, site
from tests.e2e.test_reproduce_life import BUGGY, FIXED, REPORT

pytestmark = pytest.mark.debian("bubblewrap")

CONFIG = """\
triage: {mode: "off"}
verify: {mode: "off"}
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
    assert github.find(HOME, number).state == "open"
    assert "@" not in "".join(hasty.comments_on(HOME, number))
    assert not any(decision.usage.calls for decision in hasty.decided(HOME, number, "watch")), "no model is asked"
    assert commits(hasty) >= 30

    github.close(HOME, number, by="mia")
    wait(lambda: hasty.decided(HOME, number, "watch")[-1].abstained == "skipped:closed", 60, "the watch ends")
    hasty.quiet()
