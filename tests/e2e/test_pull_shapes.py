"""Changes of every shape: what is posted stands on a line that GitHub takes, and what cannot be read is named."""

from __future__ import annotations

import pytest

from bot.simgithub.state import Pull
from tests.e2e.site import APP, BASE, BROKEN, CLEAR, Repository, Site

CODE = "        return data.value"


def findings(shop: Site, home: str, number: int) -> list[tuple[str, int | None, str]]:
    return [(comment.path, comment.line, comment.side) for comment in shop.inline(home, number)]


def changed(
    shop: Site, repository: Repository, before: dict[str, str | bytes], after: dict[str, object]
) -> object:
    """(repository, number) of a pull request that makes ``after`` out of ``before``."""
    home = repository()
    shop.github.commit(home, before)
    number = shop.slowly.open_pull(home, "Read values", files=after)  # type: ignore[arg-type]
    return home, number


SHAPES: dict[str, tuple[dict[str, str | bytes], dict[str, object], list[tuple[str, int, str]]]] = {
    "windows line ends": (
        {APP: BASE.replace("\n", "\r\n")},
        {APP: BROKEN.replace("\n", "\r\n")},
        [(APP, 4, "RIGHT")],
    ),
    "no newline at the end": ({APP: "x = 1"}, {APP: f"def f(data):\n{CODE}"}, [(APP, 2, "RIGHT")]),
    "an umlaut in the path": ({}, {"src/grün/ärger.py": BROKEN}, [("src/grün/ärger.py", 4, "RIGHT")]),
    "spaces in the path": ({}, {"src/my app (1).py": BROKEN}, [("src/my app (1).py", 4, "RIGHT")]),
    "quotes in the path": ({}, {'src/"app".py': BROKEN}, [('src/"app".py', 4, "RIGHT")]),
    "a tab in the code": ({}, {APP: f"\tif x:\n\t{CODE.strip()}\n"}, [(APP, 2, "RIGHT")]),
    "a removed line": (
        {APP: "lock.take()\nwork()\nlock.release()\n"},
        {APP: "lock.take()\nwork()\n"},
        [(APP, 3, "LEFT")],
    ),
    "a removed file": (
        {"src/old.py": "work()\nlock.release()\n"},
        {"src/old.py": None},
        [("src/old.py", 2, "LEFT")],
    ),
    "far down in a long file": (
        {APP: "pass\n" * 5000},
        {APP: "pass\n" * 4000 + f"{CODE}\n" + "pass\n" * 1000},
        [(APP, 4001, "RIGHT")],
    ),
    "several hunks and files": (
        {APP: "pass\n" * 60, "src/b.py": "pass\n"},
        {APP: f"{CODE}\n" + "pass\n" * 60 + "cache[path] = data\n", "src/b.py": f"{CODE}\npass\n"},
        # The same code at two places has one cause: one comment names both.
        [(APP, 62, "RIGHT"), ("src/b.py", 1, "RIGHT")],
    ),
    "unicode in the code": ({}, {APP: f'name = "\U0001f980 ä \u202e"\n{CODE}\n'}, [(APP, 2, "RIGHT")]),
    "form feeds and odd separators": ({}, {APP: f"a = 1\x0cb\x85c\u2028d\n{CODE}\n"}, [(APP, 2, "RIGHT")]),
    "bytes that are no text": ({}, {APP: b"# \xe4\xf6\n" + CODE.encode() + b"\n"}, [(APP, 2, "RIGHT")]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_finding_stands_on_its_line(shop: Site, repository: Repository, shape: str) -> None:
    before, after, expected = SHAPES[shape]
    home, number = changed(shop, repository, before, after)  # type: ignore[misc]
    assert sorted(findings(shop, home, number)) == sorted(expected)
    # What was posted is announced to the app as well, and makes jobs of its own.
    shop.quiet()
    assert {job.state for job in shop.jobs.list((), home)} == {"done"}


def test_a_change_that_github_cuts_is_read_in_part_and_says_so(shop: Site, repository: Repository) -> None:
    files: dict[str, object] = {f"data/f{number}.py": f"x = {number}\n" for number in range(310)}
    home, number = changed(shop, repository, {}, {**files, APP: BROKEN})  # type: ignore[misc]
    assert findings(shop, home, number) == [(APP, 4, "RIGHT")]
    assert len(shop.reviews(home, number)) == 1


def test_a_check_is_not_replaced_by_a_better_one_of_another_pull_request(
    shop: Site, repository: Repository
) -> None:
    home = repository(**{".github/bouncer.yml": "verify: {gate: true}\nreview: {mode: 'off'}\n"})
    shop.github.open_issue(home, *CLEAR)
    number = shop.slowly.open_pull(home, "Read", "Fixes #1", files={APP: BROKEN}, closes=[1], branch="topic")
    (check,) = shop.checks(home, shop.head(home, number))
    assert (check.conclusion, check.output["title"]) == ("failure", "Probably doesn't solve #1")
    with shop.github.world.lock:
        issue = shop.github.find(home, number)
        place = issue.repository
        place.branches["stable"] = place.branches["main"]
        assert issue.pull is not None
        pull = Pull("topic", home, issue.pull.head_sha, "stable", place.branches["stable"])
        other = shop.github._operations.open_issue(place, "Read", "For stable", issue.author, pull=pull).number
    shop.quiet()
    assert (check.conclusion, check.output["title"]) == ("failure", "Probably doesn't solve #1")
    assert shop.decided(home, other, "verify")[-1].abstained == "no-issue"
    shop.github.close(home, number)
    shop.slowly.comment(home, other, "/bouncer recheck", "mia")
    assert (check.conclusion, check.output["title"]) == ("skipped", "Not judged: no linked issue")
    shop.slowly.reopen(home, number)
    assert (check.conclusion, check.output["title"]) == ("failure", "Probably doesn't solve #1")
