"""How long people wait: from an accepted pull request to its check and its review, and for ``bouncer --help``.

    python -m tests.bench latency [--pulls N] [--database-url URL]

Real processes against the simulated GitHub, without pauses between writes, and recorded replies, which take no
time. GitHub's time is what the worker waited for it, as its own metrics count it. It is taken off the time of the
review, before which the jobs ``config`` and ``verify`` of the same delivery are done, one after the other. For
issues see ``python -m tests.bench pipeline``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bot.simgithub import SimulatedGitHub
from tests.bench.pipeline import github_seconds
from tests.bot.pipeline.rig import REPOSITORY, Rig, wait
from tests.builders import finding

GOAL_MS, GOAL_HELP_MS = 300, 500
BASE = "def load(path):\n    with open(path) as file:\n        return parse(file)\n"
BROKEN = BASE.replace("return parse(file)", "data = parse(file)\n        return data.value")
#: One line answers both questions about a pull request.
REPLY = {
    "explanation": "The empty file still fails.",
    "open_points": ["Empty files still fail."],
    "p_bounce": 88,
    "label": "INCORRECT",
    "reasoning": "It reads a file.",
    "findings": [finding(line=4)],
}


class Waited(NamedTuple):
    """Seconds from the record of a delivery to the end of the job that posts."""

    check: float
    review: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench latency")
    parser.add_argument("--pulls", type=int, default=20)
    parser.add_argument("--database-url", help="another database than a fresh SQLite file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, SimulatedGitHub() as github:
        url = options.database_url or f"sqlite:///{folder}/bench.db"
        rig = Rig(github, url, Path(folder))
        try:
            own = _pulls(rig, options.pulls)
        finally:
            rig.close()
    help_ms = _help()
    print(json.dumps({"own_ms": own, "goal_ms": GOAL_MS, "help_ms": help_ms, "goal_help_ms": GOAL_HELP_MS}))


def _pulls(rig: Rig, count: int) -> int:
    """The program's own part of the time to a review, mean, milliseconds."""
    replies = rig.folder / "pulls.jsonl"
    lines = ({"model": "tape", "subject": f"{REPOSITORY}#{number}", **REPLY} for number in range(count + 9))
    replies.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rig.environment["BOUNCER_MODEL"] = f"recorded:{replies}#tape"
    rig.github.commit(REPOSITORY, {"src/app.py": BASE})
    rig.web()
    rig.worker()
    wait(rig.ready, 60, "web and worker up")
    rig.github.open_issue(REPOSITORY, "Empty files", "With version 4.2 it fails on an empty file.")
    _time_one_delivery(rig)
    before = github_seconds(rig)
    waits = [_time_one_delivery(rig) for _ in range(count)]
    waited = (github_seconds(rig) - before) / count
    own = [wait_times.review - waited for wait_times in waits]
    _show("accepted to check", [wait_times.check for wait_times in waits])
    _show("accepted to review", [wait_times.review for wait_times in waits])
    print(f"of which waiting for GitHub: mean {1000 * waited:.0f} ms; the model takes none")
    _show("own time to the review", own)
    return round(1000 * statistics.fmean(own))


def _time_one_delivery(rig: Rig) -> Waited:
    number = rig.github.open_pull(REPOSITORY, "Read", "Fixes #1", files={"src/app.py": BROKEN}, closes=[1])
    with rig.github.world.lock:
        where, issue = rig.github.find(REPOSITORY, number)
        render = rig.github._operations.render
        payload = {
            "action": "opened",
            "number": number,
            "pull_request": render.pull(where, issue),
            "repository": render.repository(where),
            "sender": render.user(issue.author),
        }
    delivery = f"bench-{number}"
    assert rig.deliver("pull_request", payload, delivery) == 202
    wait(lambda: _done(rig, delivery, "review"), 30)
    assert len(rig.github.review_comments(REPOSITORY, number)) == 1
    check, review = (rig.jobs.get(f"{delivery}:{task}") for task in ("verify", "review"))
    assert check.finished_at
    assert review.finished_at
    return Waited(check.finished_at - check.created_at, review.finished_at - review.created_at)


def _done(rig: Rig, delivery: str, task: str) -> bool:
    return any(job.id == f"{delivery}:{task}" for job in rig.jobs.list(("done",)))


def _show(name: str, seconds: list[float]) -> None:
    ordered = [1000 * value for value in sorted(seconds)]
    middle, last = ordered[len(ordered) // 2], ordered[-1]
    print(f"{name:24} p50 {middle:5.0f} ms   mean {statistics.fmean(ordered):5.0f} ms   max {last:5.0f} ms")


def _help(rounds: int = 9) -> int:
    """The median time of ``bouncer --help``, milliseconds."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "bot", "--help"], capture_output=True, check=True)
        seconds.append(time.perf_counter() - start)
    _show("bouncer --help", seconds)
    return round(1000 * statistics.median(seconds))


if __name__ == "__main__":
    main()
