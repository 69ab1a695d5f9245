"""kill -9, again and again, in the middle of everything: nothing accepted is lost, nothing is said twice."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from bot import router
from tests.bot.pipeline.builders import opened
from tests.bot.pipeline.rig import Rig, rigged, wait, work

#: Enough for kills to hit every stage; `python -m tests.bench kills` makes 1,000 on each database.
DELIVERED = 32
KILLS = 16
#: Of an opened issue.
JOBS = len(router.tasks(opened()))
REPOSITORIES = tuple(f"acme/rocket{number}" for number in range(8))


def children(pid: int) -> list[int]:
    return [int(part) for part in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Killer(threading.Thread):
    """Kills a process of web and workers in turn, until it has killed enough."""

    def __init__(self, parents: dict[str, int]) -> None:
        super().__init__(daemon=True)
        self.parents = parents
        self.killed: Counter[str] = Counter()
        self.chance = random.Random(7)

    def run(self) -> None:
        while self.killed.total() < KILLS:
            time.sleep(self.chance.uniform(0.2, 0.8))
            name = self.chance.choice(["web", "worker", "worker"])
            alive = children(self.parents[name])
            if alive:
                os.kill(self.chance.choice(alive), signal.SIGKILL)
                self.killed[name] += 1


def deliver(rig: Rig, issues: list[tuple[str, int]], accepted: dict[str, tuple[str, int]], killer: Killer) -> None:
    """Deliver each issue until it is accepted, as GitHub's redelivery would, for as long as there is killing."""
    for index, (repository, number) in enumerate(issues):
        delivery = f"{repository.replace('/', '.')}-{number}"
        while rig.deliver("issues", rig.opened(number, repository), delivery) != 202:
            time.sleep(0.1)
        accepted[delivery] = repository, number
        # The last ones wait for the last kills, so that every kill falls into the stream.
        while killer.is_alive() and killer.killed.total() < KILLS * index / len(issues):
            time.sleep(0.05)


@pytest.mark.timeout(360)
def test_nothing_is_lost_and_nothing_is_said_twice(database_url: str, tmp_path: Path) -> None:
    with rigged(tmp_path, database_url, REPOSITORIES) as rig:
        issues = [
            (name, rig.github.open_issue(name, f"Broken {number}", "It does not work."))
            for number in range(DELIVERED // len(REPOSITORIES))
            for name in REPOSITORIES
        ]
        parents = {
            "web": rig.web().pid,
            "worker": rig.worker("--phoenix", "2").pid,
        }
        wait(rig.ready, 60, "web and worker up")
        killer = Killer(parents)
        killer.start()
        accepted: dict[str, tuple[str, int]] = {}
        senders = [
            threading.Thread(target=deliver, args=(rig, issues[part::4], accepted, killer)) for part in range(4)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        killer.join()
        assert killer.killed["web"] >= 2
        assert killer.killed["worker"] >= 4
        assert len(accepted) == DELIVERED

        wait(lambda: rig.unfinished() == 0, 180, "all jobs ended")
        comment_counts = {
            (name, number): len(rig.github.comments(name, number, by="bouncer[bot]")) for name, number in issues
        }
        assert Counter(comment_counts.values()) == {1: DELIVERED}
        assert all(rig.github.labels(name, number) == ["needs-info"] for name, number in issues)
        assert rig.jobs.counts() == {"done": JOBS * DELIVERED}

        before = work(rig.github.requests)
        for delivery, (name, number) in list(accepted.items())[:20]:
            wait(lambda d=delivery, n=name, i=number: rig.deliver("issues", rig.opened(i, n), d) == 202)
        time.sleep(1)
        assert rig.jobs.counts() == {"done": JOBS * DELIVERED}
        assert work(rig.github.requests) == before, "a redelivery made somebody work"
