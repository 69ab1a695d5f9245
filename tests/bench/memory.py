"""The memory of `bouncer serve` when idle and after events from many installations, and its CPU time when idle.

    python -m tests.bench memory [--installations N] [--database-url URL]

A real `serve` with all its processes against the simulated GitHub, with recorded replies and no pause between
writes. Every installation has one repository and sends one vague issue, which is answered. Memory is the sum of
the PSS of all processes: a page that several processes share is counted once. The sum of their RSS is printed too.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.bench.latency import cpu_seconds
from tests.bot.pipeline.rig import REPLY, Rig, rigged, wait

GOAL_IDLE_MB, GOAL_GROWTH_MB, GOAL_CPU = 150, 80, 2.0
#: The engine looks for schedules every second in its first minute.
SETTLED_SECONDS = 62
#: Issues that wait for their answer at the same time.
AT_ONCE = 16


def process_tree(pid: int) -> Iterator[int]:
    """Yield the process and all its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(FileNotFoundError):  # a thread that has ended
            for child in (task / "children").read_text().split():
                yield from process_tree(int(child))


def memory(pids: list[int]) -> dict[str, float]:
    """Return the sums of PSS and RSS over the processes, in MB."""
    totals = {"pss": 0.0, "rss": 0.0}
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.lower() in totals:
                totals[name.lower()] += int(value.split()[0]) / 1024
    return totals


def show(stage: str, pids: list[int]) -> dict[str, float]:
    """Print and return the memory of the processes."""
    totals = memory(pids)
    single = ", ".join(f"{memory([pid])['pss']:.0f}" for pid in pids)
    print(
        f"{stage:26} PSS {totals['pss']:6.1f} MB   RSS {totals['rss']:6.1f} MB   "
        f"{len(pids)} processes, PSS of each: {single}",
        flush=True,
    )
    return totals


def idle_cpu(pids: list[int], seconds: float) -> list[float]:
    """Return the share of a core that each process takes, in percent."""
    before = [cpu_seconds(pid) for pid in pids]
    time.sleep(seconds)
    return [100 * (cpu_seconds(pid) - start) / seconds for pid, start in zip(pids, before, strict=True)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench memory")
    parser.add_argument("--installations", type=int, default=1000)
    parser.add_argument("--idle-seconds", type=float, default=20.0)
    parser.add_argument("--database-url", default="", help="another database than a fresh SQLite file")
    options = parser.parse_args()
    names = tuple(f"owner-{index}/project" for index in range(options.installations))
    with tempfile.TemporaryDirectory() as folder, rigged(Path(folder), options.database_url, names[:1]) as rig:
        replies = ({"model": "bounces", "subject": f"{name}#1", **REPLY} for name in names)
        rig.replies.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        start = time.monotonic()
        serve = rig.start("bot", "serve", "--apart", "0")
        wait(rig.ready, 120, "serve is ready")
        print(f"ready after {time.monotonic() - start:.1f} s")
        time.sleep(SETTLED_SECONDS)
        pids = list(process_tree(serve.pid))
        shares = idle_cpu(pids, options.idle_seconds)
        idle = show("idle", pids)
        deliver(rig, names[:1])
        show("after 1 installation", list(process_tree(serve.pid)))
        deliver(rig, names[1:])
        time.sleep(2)
        after = show(f"after {len(names)} installations", list(process_tree(serve.pid)))
    print(f"idle      {idle['pss']:6.1f} MB   goal {GOAL_IDLE_MB}")
    print(f"growth    {after['pss'] - idle['pss']:6.1f} MB   goal {GOAL_GROWTH_MB}")
    print(
        f"idle CPU  {max(shares):6.1f} %    goal {GOAL_CPU} for the busiest process; "
        f"all: {', '.join(f'{share:.1f}' for share in shares)}"
    )


def deliver(rig: Rig, names: tuple[str, ...]) -> None:
    """Send one vague issue from each installation, and wait until all are answered."""
    start = time.monotonic()
    for index, name in enumerate(names):
        if name in rig.repositories:
            installation = rig.installation
        else:
            rig.github.create_repository(name)
            installation = rig.github.install(rig.installation.app, name)
        number = rig.github.open_issue(name, "Broken", "It does not work.")
        send = partial(
            rig.deliver,
            "issues",
            {**rig.opened(number, name), "installation": {"id": installation.id}},
            f"memory-{installation.id}",
        )
        # A busy machine may need longer than GitHub would wait; the same delivery id is worked on once.
        wait(lambda send=send: send() == 202, 120, "the delivery is accepted")
        if index % AT_ONCE == AT_ONCE - 1:
            wait(lambda: rig.unfinished() == 0, 120, "the jobs are done")
    wait(lambda: rig.unfinished() == 0, 120, "the jobs are done")
    for name in names:
        if len(rig.github.comments(name, 1)) != 1:
            jobs = [(job.id, job.outcome) for job in rig.jobs.list(repository=name)]
            raise SystemExit(f"{name} was not answered: {jobs}")
    print(f"answered {len(names)} issues in {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
