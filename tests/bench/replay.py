"""How long a replay of 1,000 and of 10,000 recorded tasks takes, and how much memory: ``-m tests.bench replay``.

Each run is the command a researcher types, in a process of its own, through the live triage handler. Both runs
have the same recording of 10,000 replies open, so that what is compared is the number of tasks alone. The issue
texts are those of the research data (``BOUNCER_DATA``), repeated under new names.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("BOUNCER_DATA", ROOT.parent / "shared" / "data"))
LABELS = ("WELL_SPECIFIED", "REASONABLY_SPECIFIED", "VAGUE", "IMPOSSIBLE_TO_SOLVE")
SIZES = (1_000, 10_000)


def texts() -> Iterator[str]:
    with gzip.open(DATA / "swebench/instances.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)["problem_statement"]


def prepare(folder: Path) -> tuple[Path, Path]:
    """A task file and a recording, both of the largest size."""
    tasks, replies = folder / "tasks.jsonl", folder / "replies.jsonl"
    with tasks.open("w", encoding="utf-8") as out, replies.open("w", encoding="utf-8") as replies_file:
        for number, text in enumerate(islice(cycle(list(texts())), max(SIZES))):
            name = f"o__n-{number}"
            out.write(json.dumps({"instance_id": name, "problem_statement": text}) + "\n")
            reply = {"explanation": "A recorded reply. " * 40, "label": LABELS[number % 4]}
            replies_file.write(json.dumps({"instance_id": name, "model": "m", **reply}) + "\n")
    return tasks, replies


def measure(tasks: Path, replies: Path, size: int, out: Path) -> tuple[float, float]:
    """Seconds and peak resident megabytes of one run."""
    command = [
        sys.executable, "-m", "evaluation", "replay", "bouncerbench-input", "--tasks", str(tasks),
        "--model", f"recorded:{replies}#m", "--limit", str(size), "--out", str(out),
    ]  # fmt: skip
    started = time.perf_counter()
    child = os.posix_spawn(sys.executable, command, {**os.environ, "PYTHONPATH": str(ROOT)})
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"the replay failed with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tasks, replies = prepare(folder)
        for size in SIZES:
            seconds, peak = measure(tasks, replies, size, folder / str(size))
            print(
                f"{size:>6,} tasks: {seconds:6.1f} s, {1000 * seconds / size:5.1f} ms a task, peak {peak:5.0f} MB"
            )


if __name__ == "__main__":
    main()
