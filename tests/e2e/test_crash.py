"""kill -9 in the middle of a stream of pull requests: every one gets its one check and its one review."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.bot.pipeline.rig import wait, work
from tests.bot.pipeline.test_crash import KILLS, Killer
from tests.e2e.site import APP, BROKEN, CLEAR, Site, stopped

HOMES = 4
PULLS = 3
#: Each pull request is opened, then pushed to once.
DELIVERIES = 2 * HOMES * PULLS


class Stream(threading.Thread):
    """Delivers, again and again until it is accepted, as GitHub's redelivery would."""

    def __init__(self, shop: Site, homes: list[str], killer: Killer) -> None:
        super().__init__(daemon=True)
        self.shop, self.homes, self.killer = shop, homes, killer
        self.pulls: list[tuple[str, int]] = []
        self.sent: list[tuple[str, dict[str, object], str]] = []

    def run(self) -> None:
        for count in range(PULLS):
            for home in self.homes:
                number = self.shop.github.open_pull(home, "Read", "Fixes #1", files={APP: BROKEN}, closes=[1])
                self.pulls.append((home, number))
                self.send(home, number, "opened")
                self.shop.github.push(home, number, {APP: f"# {count}\n{BROKEN}"})
                self.send(home, number, "synchronize")
                # The last ones wait for the last kills, so that every kill falls into the stream.
                share = len(self.pulls) / (PULLS * len(self.homes))
                wait(lambda share=share: self.killer.killed.total() >= KILLS * (share - 0.1), 120, "kills")

    def send(self, home: str, number: int, action: str) -> None:
        event, payload = self.shop.payload(home, number, action)
        delivery = f"{home.replace('/', '.')}-{number}-{action}"
        wait(lambda: self.shop.deliver(event, payload, delivery) == 202, 60, "accepted")
        self.sent.append((event, payload, delivery))


# On both databases the same is shown with issues; here one of them is enough.
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.timeout(280)
def test_every_pull_request_gets_one_check_and_one_review_for_each_head(database_url: str, tmp_path: Path) -> None:
    with stopped(tmp_path, url=database_url) as shop:
        homes = [shop.repository(f"acme/r{number}") for number in range(HOMES)]
        for home in homes:
            shop.github.open_issue(home, *CLEAR)
        web, workers = shop.web(), shop.worker("--phoenix", "2")
        wait(shop.ready, 60, "web and workers up")
        killer = Killer({"web": web.pid, "worker": workers.pid})
        killer.start()
        streams = [Stream(shop, homes[part::4], killer) for part in range(4)]
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.join()
        killer.join()
        assert sum(killer.killed.values()) == KILLS
        assert min(killer.killed[name] for name in ("web", "worker")) >= 2
        shop.quiet(120)

        assert set(shop.jobs.counts()) <= {"done", "superseded"}
        for stream in streams:
            for home, number in stream.pulls:
                look(shop, home, number)
        before = work(shop.github.requests)
        for event, payload, delivery in streams[0].sent:
            assert shop.deliver(event, payload, delivery) == 202
        shop.quiet()
        assert work(shop.github.requests) == before, "a redelivery made somebody work"


def look(shop: Site, home: str, number: int) -> None:
    """One check and one review on the last head; on earlier ones at most one of each."""
    head = shop.head(home, number)
    reviews = Counter(review.commit_id for review in shop.reviews(home, number))
    assert set(reviews.values()) == {1}, (home, number, reviews)
    # The review of an earlier head may have said it already: then nothing new is said about the last one.
    assert len(shop.inline(home, number)) == 1
    heads = shop.github.world.ancestors(head)[:2]
    checks = Counter(check.head_sha for check in shop.checks(home) if check.head_sha in heads)
    assert checks[head] == 1, (home, number)
    assert set(checks.values()) == {1}, (home, number, checks)
