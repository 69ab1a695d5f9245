"""How long people wait: from an accepted issue or pull request to what is posted, and for ``bouncer --help``.

    python -m tests.bench latency [--count N] [--database-url URL]

Real processes against the simulated GitHub, without pauses between writes, and recorded replies, which take no
time. GitHub's time is what the worker waited for it, as its own metrics count it. It is taken off the time of a
comment or a review; before a review, the jobs ``config`` and ``verify`` of the same delivery are done, one after
the other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import select

from bot.pipeline.store.counters import GITHUB_SECONDS
from bot.pipeline.store.tables import DELIVERIES
from tests.bot.pipeline.rig import REPLY, REPOSITORY, Rig, rigged, wait
from tests.builders import finding

GOAL_MS, GOAL_HELP_MS = 300, 500
BASE = "def load(path):\n    with open(path) as file:\n        return parse(file)\n"
BROKEN = BASE.replace("return parse(file)", "data = parse(file)\n        return data.value")
#: One line answers the question about an issue, or both about a pull request.
ISSUE = {**REPLY, "model": "bounces"}
PULL = {**ISSUE, "label": "INCORRECT", "reasoning": "It reads a file.", "findings": [finding(line=4)]}


def github_seconds(rig: Rig) -> float:
    """Return the seconds that the worker has waited for GitHub, once it has recorded them."""
    time.sleep(5)
    return rig.ledger.counters.all().get((GITHUB_SECONDS, ()), 0.0)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, seconds; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench latency")
    parser.add_argument("--count", type=int, default=20, help="issues, and pull requests")
    parser.add_argument("--database-url", default="", help="another database than a fresh SQLite file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, rigged(Path(folder), options.database_url) as rig:
        answers = [ISSUE] * (options.count + 2) + [PULL] * (options.count + 9)
        lines = ({"subject": f"{REPOSITORY}#{number}", **answer} for number, answer in enumerate(answers))
        rig.replies.write_text("".join(json.dumps(line) + "\n" for line in lines))
        rig.github.commit(REPOSITORY, {"src/app.py": BASE})
        rig.web()
        worker = rig.worker()
        wait(rig.ready, 60, "web and worker up")
        _time(rig, "comment", lambda: _issue(rig), 1)
        idle = cpu_seconds(worker.pid)
        time.sleep(10)
        print(f"an idle worker takes {10 * (cpu_seconds(worker.pid) - idle):.1f} % of a core")
        _time(rig, "comment", lambda: _issue(rig), options.count)
        own = _time(rig, "review", lambda: _pull(rig), options.count)
    help_ms = _help()
    print(json.dumps({"own_ms": own, "goal_ms": GOAL_MS, "help_ms": help_ms, "goal_help_ms": GOAL_HELP_MS}))


def _time(rig: Rig, post: str, happen: Callable[[], dict[str, float]], count: int) -> int:
    """Let something happen ``count`` times. Return the program's own part of the time to a post, mean, ms."""
    before = github_seconds(rig)
    waits = [happen() for _ in range(count)]
    waited = (github_seconds(rig) - before) / count
    for name in waits[0]:
        _show(f"accepted to {name}", [seconds[name] for seconds in waits])
    print(f"of which waiting for GitHub: mean {1000 * waited:.0f} ms; the model takes none")
    own = [seconds[post] - waited for seconds in waits]
    _show(f"own time to the {post}", own)
    return round(1000 * statistics.fmean(own))


def _issue(rig: Rig) -> dict[str, float]:
    number = rig.github.open_issue(REPOSITORY, "Empty files", "With version 4.2 it fails on an empty file.")
    return _deliver(
        rig, "issues", rig.opened(number), {"comment": lambda: rig.github.comments(REPOSITORY, number)}
    )


def _pull(rig: Rig) -> dict[str, float]:
    number = rig.github.open_pull(REPOSITORY, "Read", "Fixes #1", files={"src/app.py": BROKEN}, closes=[1])
    checks = len(rig.github.checks(REPOSITORY))
    with rig.github.world.lock:
        issue = rig.github.find(REPOSITORY, number)
        render = rig.github._operations.render
        payload = {
            "action": "opened",
            "number": number,
            "pull_request": render.pull(issue),
            "repository": render.repository(issue.repository),
            "sender": render.user(issue.author),
        }
    posts: dict[str, Callable[[], object]] = {
        "check": lambda: len(rig.github.checks(REPOSITORY)) > checks,
        "review": lambda: rig.github.review_comments(REPOSITORY, number),
    }
    return _deliver(rig, "pull_request", payload, posts)


def _deliver(
    rig: Rig, event: str, payload: dict[str, object], posts: dict[str, Callable[[], object]]
) -> dict[str, float]:
    """Return the seconds from the record of a delivery to each post."""
    delivery = f"bench-{time.monotonic_ns()}"
    assert rig.deliver(event, payload, delivery) == 202
    moments: dict[str, float] = {}
    deadline = time.monotonic() + 30
    while len(moments) < len(posts):
        assert time.monotonic() < deadline, f"only {list(moments)} for {delivery}"
        moments |= {name: time.time() for name, is_posted in posts.items() if name not in moments and is_posted()}
        time.sleep(0.002)
    wait(lambda: rig.unfinished() == 0, 30)
    with rig.database.read() as connection:
        received = connection.scalar(select(DELIVERIES.c.received_at).where(DELIVERIES.c.id == delivery))
    assert received
    return {name: moment - received for name, moment in moments.items()}


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
