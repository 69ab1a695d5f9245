"""A pull request without an issue: its words are compared with its change, and its tests are run on both sides."""

from __future__ import annotations

import json

import pytest

from tests.builders import NO_PLUGINS
from tests.e2e.site import Repository, Site
from tests.e2e.test_queue import queue
from tests.e2e.test_reproduce_life import BUGGY, FIXED, TESTS

pytestmark = pytest.mark.debian("bubblewrap")

CONFIG = """\
verify: {description: true, tests: true, context_tokens: 0}
review: {mode: "off"}
reproduce: {command: "python -m pytest -q {tests}"}
"""
OLD = f"{BUGGY}\n\ndef chunk(items):\n    return split(items, 2)\n"
NEW = f"{FIXED}\n\nREST = True\n"
REST = f"{TESTS}\n\ndef test_rest():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
FOUR = f"{REST}\n\ndef test_four():\n    assert split([1, 2, 3, 4], 2) == [[1, 2], [3, 4]]\n"
BODY = "REST says that the rest is kept.\nLIMIT says how much."
SUMMARY = """\
### The description: May not do all that it says

Said and not implemented:
- LIMIT is there

Changed without being said:
- `chunk` is gone, see @\u200boctocat and #\u200b1

Said and implemented:
- REST is there

<details><summary>Why: BROAD_MISSING_KEY_ASPECTS (90% likely to fall short)</summary>

REST is there: implemented.

LIMIT is there: not implemented.

</details>

*An AI model's opinion; it may be wrong.*

### Tests

The new test fails before the change and passes after it.

- `tests/test_shapes.py::test_rest`: failed without the change, passed with it

The pull request's own code ran in these tests, so they count for nothing in a verdict.
"""


def check(shop: Site, home: str, number: int) -> tuple[str | None, str, str]:
    """Return conclusion, title and summary of the check on the head."""
    (run,) = shop.checks(home, shop.head(home, number))
    return run.conclusion, run.output["title"], run.output["summary"]


def test_words_and_tests_of_a_pull_request_are_checked(shop: Site, repository: Repository) -> None:
    files = {
        "pytest.ini": NO_PLUGINS["pytest.ini"].decode(),
        "shapes.py": OLD,
        "tests/test_shapes.py": TESTS,
        ".github/bouncer.yml": CONFIG,
    }
    home = repository(**files)
    github = shop.github
    changed = {"shapes.py": NEW, "tests/test_shapes.py": REST}
    number = shop.slowly.open_pull(home, "Keep the rest", BODY, "carl", files=changed)
    conclusion, title, summary = check(shop, home, number)
    assert (conclusion, title) == (
        "neutral",
        "May not do all that it says; the new test fails before the change and passes after it",
    )
    assert summary.startswith(SUMMARY)
    (row,) = json.loads(queue(shop, home, "--json"))["pulls"]
    assert (row["number"], row["tests"]) == (number, "shown")

    shop.slowly.push(home, number, {"shapes.py": f"{NEW}LIMIT = 2\n", "tests/test_shapes.py": FOUR})
    assert check(shop, home, number)[:2] == (
        "success",
        "Appears to do what it says; 1 of 2 new tests passes without the change: it does not show the fix",
    )

    table = "".join(f"FIELD_{field} = {field}\n" for field in range(100))
    github.edit(home, number, body="Fixes.")
    shop.slowly.push(home, number, {"table.py": table})
    assert check(shop, home, number)[:2] == (
        "skipped",
        "Not judged: the description names no behaviour; 1 of 2 new tests passes without the change: it does not "
        "show the fix",
    )

    fork = shop.slowly.open_pull(home, "Keep the rest", BODY, "dora", fork=True, files=changed)
    head = shop.head(home, fork)
    assert check(shop, home, fork)[1] == "May not do all that it says"
    assert (
        f"Not run: this is a fork's code; a maintainer who has read it can comment `/bouncer verify --run {head}`"
        in (check(shop, home, fork)[2])
    )
    shop.slowly.comment(home, fork, f"/bouncer verify --run {head}", "dora")
    assert "Not run:" in check(shop, home, fork)[2], "nothing is run for its author"
    shop.slowly.comment(home, fork, f"/bouncer verify --run {head}", "mia")
    assert check(shop, home, fork)[1].endswith("; the new test fails before the change and passes after it")
