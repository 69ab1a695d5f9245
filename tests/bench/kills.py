"""``kill -9`` again and again in a stream of deliveries: how much is lost, and how much is said twice.

Two workers and a web server are real processes against the simulated GitHub, with a recorded model. A killed
worker is forked again at once. Every delivery is repeated until it is accepted, as GitHub's redelivery would.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

from bot.pipeline.job import OPEN
from tests.bench.databases import databases
from tests.bot.pipeline.rig import Rig, rigged, wait

REPOSITORIES = tuple(f"acme/rocket{number}" for number in range(8))
#: Pause between two kills, seconds: long enough for a forked worker to begin something.
PAUSE = (0.1, 0.5)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench kills")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    options = parser.parse_args()
    for name, url, folder in databases(options.database):
        with rigged(folder, url, REPOSITORIES) as rig:
            _kill(name, rig, options.kills)


def _kill(kind: str, rig: Rig, count: int) -> None:
    start = time.monotonic()
    parents = {
        "web": rig.web().pid,
        "worker": rig.worker("--phoenix", "2").pid,
    }
    wait(rig.ready, 120, "web and worker up")
    killed: Counter[str] = Counter()
    over = threading.Event()
    accepted: list[tuple[str, int]] = []
    sender = threading.Thread(target=_deliver, args=(rig, accepted, over))
    sender.start()
    chance = random.Random(7)
    while killed.total() < count:
        time.sleep(chance.uniform(*PAUSE))
        name = chance.choice(["web", "worker", "worker", "worker"])
        children = Path(f"/proc/{parents[name]}/task/{parents[name]}/children").read_text().split()
        if children:
            os.kill(int(chance.choice(children)), signal.SIGKILL)
            killed[name] += 1
    over.set()
    sender.join()
    _settle(rig)
    comments = Counter(len(rig.github.comments(name, number, by="bouncer[bot]")) for name, number in accepted)
    ends = Counter(job.state for job in rig.jobs.list(limit=10 * len(accepted)))
    print(
        f"{kind}: {count} kills ({killed['worker']} of workers, {killed['web']} of web processes) in "
        f"{time.monotonic() - start:.0f} s, load {os.getloadavg()[0]:.0f}: {len(accepted)} deliveries accepted, "
        f"{comments[0]} lost, {sum(times for count, times in comments.items() if count > 1)} said twice; "
        f"jobs: {', '.join(f'{number} {state}' for state, number in sorted(ends.items()))}",
        flush=True,
    )
    for job in rig.jobs.list(("dead",)):
        print(f"{job.id}: {job.error}", flush=True)


def _settle(rig: Rig) -> None:
    """Wait until all jobs have ended, however many there are, as long as fewer and fewer are left."""

    def left() -> int:
        return rig.jobs.untaken() + len(rig.jobs.list(OPEN, limit=100_000))

    while before := left():
        wait(partial(lambda most: left() < most, before), 300, f"fewer than {before} jobs left")


def _deliver(rig: Rig, accepted: list[tuple[str, int]], over: threading.Event) -> None:
    """One issue after the other, each until it is accepted."""
    number = 0
    while not over.is_set():
        name = REPOSITORIES[number % len(REPOSITORIES)]
        number += 1
        if number > 300 * len(REPOSITORIES):
            # The recorded model has a reply for as many.
            over.wait()
            return
        issue = rig.github.open_issue(name, f"Broken {number}", "It does not work.")
        payload = rig.opened(issue, name)
        while rig.deliver("issues", payload, f"{name.replace('/', '.')}-{issue}") != 202:
            time.sleep(0.05)
        accepted.append((name, issue))
        time.sleep(0.2)


if __name__ == "__main__":
    main()
