"""From an accepted delivery to the comment on the issue: what the program itself takes, besides GitHub and model.

Real processes against the simulated GitHub, a recorded model (which takes no time), and no pause between writes.
GitHub's time is what the worker waited for it, as its own metrics count it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from sqlalchemy import select

from bot.pipeline.job import OPEN
from bot.pipeline.store.counters import GITHUB_SECONDS
from bot.pipeline.store.tables import DELIVERIES
from bot.simgithub import SimulatedGitHub
from tests.bot.pipeline.rig import REPOSITORY, Rig, wait


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
    parser = argparse.ArgumentParser(prog="python -m tests.bench pipeline")
    parser.add_argument("--issues", type=int, default=20)
    parser.add_argument("--database-url", help="another database than a fresh SQLite file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, SimulatedGitHub() as github:
        url = options.database_url or f"sqlite:///{folder}/bench.db"
        rig = Rig(github, url, Path(folder))
        try:
            rig.web()
            worker = rig.worker()
            wait(rig.ready, 60, "web and worker up")
            _time_one_delivery(rig)
            before = github_seconds(rig)
            idle = cpu_seconds(worker.pid)
            time.sleep(10)
            idle = (cpu_seconds(worker.pid) - idle) / 10
            totals = [_time_one_delivery(rig) for _ in range(options.issues)]
            waited = (github_seconds(rig) - before) / options.issues
        finally:
            rig.close()
    own = [seconds - waited for seconds in totals]
    print(f"accepted to posted: p50 {_ms(totals, 0.5)} ms, max {_ms(totals, 1.0)} ms over {len(totals)} issues")
    print(f"of which waiting for GitHub: mean {1000 * waited:.0f} ms; the model takes none")
    print(f"own time: p50 {_ms(own, 0.5)} ms, mean {1000 * statistics.fmean(own):.0f} ms, max {_ms(own, 1.0)} ms")
    print(f"an idle worker takes {100 * idle:.1f} % of a core")


def _time_one_delivery(rig: Rig) -> float:
    """Seconds from the delivery's record to the comment on the issue."""
    number = rig.github.open_issue(REPOSITORY, "Broken", "It does not work.")
    delivery = f"bench-{number}"
    assert rig.deliver("issues", rig.opened(number), delivery) == 202
    deadline = time.monotonic() + 30
    while not rig.github.comments(REPOSITORY, number):
        assert time.monotonic() < deadline, f"no comment on issue {number}"
        time.sleep(0.002)
    posted = time.time()
    with rig.database.read() as connection:
        received = connection.scalar(select(DELIVERIES.c.received_at).where(DELIVERIES.c.id == delivery))
    wait(lambda: rig.jobs.untaken() + len(rig.jobs.list(OPEN)) == 0, 30)
    assert received
    return posted - float(received)


def _ms(seconds: list[float], share: float) -> int:
    return round(1000 * sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))])


if __name__ == "__main__":
    main()
