"""``triage.close_after_days``: days here are moments, and workers are killed while they wait for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bot.pipeline.rig import wait
from tests.e2e.site import VAGUE, Site, site

HOME = "acme/first"
CONFIG = {".github/bouncer.yml": "triage:\n  close_after_days: 14\n"}
GONE = "DELETE /labels/needs-info "


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose days are short."""
    with site(tmp_path_factory.mktemp("hasty"), DAY_SECONDS="0.2") as shop:
        yield shop


def state(shop: Site, home: str, number: int) -> tuple[str, str | None]:
    issue = shop.github.find(home, number)
    return issue.state, issue.state_reason


def written(shop: Site, home: str, number: int) -> list[str]:
    """Return our writes to an issue in order, without reactions and edits of comments."""
    here = f"/repos/{home}/issues/{number}"
    acts = [
        request for request in shop.github.requests if request.method != "GET" and request.path.startswith(here)
    ]
    return [f"{act.method} {act.path.removeprefix(here)} {(act.body or {}).get('state', '')}" for act in acts]


def test_it_is_warned_closed_and_opened_again_by_an_answer_whoever_dies(hasty: Site) -> None:
    home = hasty.repository("acme/patient", CONFIG)
    number = hasty.github.open_issue(home, *VAGUE)
    talked = hasty.github.open_issue(home, *VAGUE)
    hasty.github.comment(home, talked, "Same here.", "carol")
    wait(lambda: hasty.comments_on(home, number) and hasty.comments_on(home, talked), 60, "both are bounced")

    def dies() -> None:
        hasty.kill(hasty.processes[-1])
        hasty.worker()

    dies()
    wait(lambda: len(hasty.comments_on(home, number)) == 2, 60, "a warning")
    dies()
    warning = hasty.comments_on(home, number)[1]
    assert warning.startswith("I asked for more details 7 days ago and have not heard back.")
    assert "I'm a bot using an AI model" in warning
    wait(lambda: state(hasty, home, number) == ("closed", "not_planned"), 60, "closed")
    dies()
    wait(lambda: "Closed for now" in hasty.comments_on(home, number)[1], 60, "the warning says so")
    wait(lambda: hasty.decided(home, talked, "closing"), 60, "the other one's time is up")
    assert (state(hasty, home, talked), len(hasty.comments_on(home, talked))) == (("open", None), 1)
    (left,) = hasty.decided(home, talked, "closing")
    assert (left.abstained, left.reason) == ("skipped:touched", "people are talking about it")
    wait(lambda: hasty.decided(home, number, "feedback"), 60, "what became of it")
    heard = hasty.decided(home, number, "feedback")
    [fate] = [fate for item in heard for fate in item.record.fates]
    assert (fate.good, fate.bounced, fate.why) == (False, True, "closed with needs-info, and no answer")
    assert [item.record.signals for item in heard if item.record.signals] == [], "nobody's opinion"

    hasty.github.comment(home, number, "It is version 4.2, on an empty file.", "alice")
    wait(lambda: hasty.github.labels(home, number) == [], 60, "read again and cleared")
    bounce, closing = hasty.comments_on(home, number)
    assert state(hasty, home, number) == ("open", "reopened")
    assert bounce.startswith("Thanks, that answers my questions.")
    assert closing.startswith("Thanks for coming back to this. The issue stays open.")
    done = written(hasty, home, number)
    assert done == ["POST /comments ", "POST /labels ", "POST /comments ", "PATCH  closed", "PATCH  open", GONE]


def test_an_edit_opens_it_again_and_what_a_maintainer_closed_stays_closed(hasty: Site) -> None:
    home = hasty.repository("acme/strict", CONFIG)
    first, second = (hasty.github.open_issue(home, *VAGUE) for _ in range(2))
    for number in (first, second):
        wait(lambda number=number: state(hasty, home, number)[0] == "closed", 60, "closed")  # type: ignore[misc]
    hasty.github.edit(home, first, body="With version 4.2 it fails on an empty file.")
    wait(lambda: state(hasty, home, first)[0] == "open", 60, "opened")
    wait(lambda: hasty.github.labels(home, first) == [], 60, "cleared")
    hasty.github.reopen(home, second, by="mia")
    hasty.slowly.close(home, second, by="mia", reason="not_planned")
    hasty.slowly.comment(home, second, "It is version 4.2, on an empty file.", "alice")
    assert state(hasty, home, second) == ("closed", "not_planned")
