"""A pull request full of code that costs its parser minutes, and everybody else on the same worker."""

from __future__ import annotations

import time

import pytest

from tests.e2e.site import Site

PATH = "src/A.java"
#: Its parser takes minutes over it. Far longer files are given up sooner. The other languages are in
#: ``tests.attacks.test_code``.
SLOW = "a<" * 40_000


def hostile(first: str) -> dict[str, str]:
    return {PATH: f"{first}\n\n\n\n\n\n{SLOW}\n"}


@pytest.mark.timeout(280)
def test_a_hostile_pull_request_delays_no_other_installation(shop: Site) -> None:
    home = shop.repository("acme/hostile", hostile("a  =  1"))
    quiet = shop.repository("globex/quiet")
    ages: list[float] = []
    pull = shop.github.open_pull(home, "Tidy up", files=hostile("a = 1"))
    issue = shop.github.open_issue(quiet, "Broken", "It does not work.")
    began, seconds = time.monotonic(), 0.0
    while not (seconds and shop.decided(home, pull, "review")) and time.monotonic() < began + 240:
        ages.append(shop.jobs.worker_age() or 0.0)
        seconds = seconds or (time.monotonic() - began if shop.decided(quiet, issue, "triage") else 0.0)
        time.sleep(0.2)
    (review,) = shop.decided(home, pull, "review")
    assert "means the same" not in review.reason
    assert 0 < seconds < 60
    assert max(ages) < 20, "the heartbeat, which each round stores, went on"
