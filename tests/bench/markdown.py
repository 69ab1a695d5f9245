"""Text that is posted: how many attacks come alive, and how time grows with the text.

Each generated text goes through a handler's template and the real publisher to one place (comment, check, review
with its inline comment, summary, a whole body); what would be sent is rendered by GitHub's own library.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import dataclass
from multiprocessing import get_context

from bot.core.markdown import clean
from bot.pipeline.body import harmless
from tests.bot.pipeline.publishing.attacks import KNOWN, generated
from tests.bot.pipeline.publishing.surfaces import HOST, Press

#: What parsers are slow at, where they are.
PIECES = (
    "\\", "[", "![", "[[a](", "![a](", "*a_", "_*", "`a``", "  - a\n", "http://", "-----BEGIN PRIVATE KEY-----",
    "token-",
)  # fmt: skip
#: Texts of one seed, and of one line that says how far it is.
BATCH, REPORTED = 5_000, 100_000


@dataclass(frozen=True)
class Batch:
    """The result for the texts of one seed."""

    faults: tuple[str, ...]
    slowest: tuple[float, str]  # processor time of posting and rendering, seconds; the text
    memory: int  # the process's largest so far, KiB


def attack(job: tuple[int, int]) -> Batch:
    """Post the texts of a seed, so many of them, each in one place."""
    seed, count = job
    press = Press()
    places = press.places()
    faults: list[str] = []
    slowest = (0.0, "")
    for number, text in enumerate(generated(count, seed)):
        place = places[number % len(places)]
        start = time.process_time()
        problem = place(text)
        slowest = max(slowest, (time.process_time() - start, text))
        if problem:
            faults.append(f"{place.__name__}: {problem}: {text!r}")
    return Batch(tuple(faults), slowest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def growth(piece: str) -> str:
    """Processor time for a text of one piece, doubled twice: written anew, and looked at once more."""
    times = []
    for size in (16_000, 32_000, 64_000):
        text = piece * (size // len(piece))
        start = time.process_time()
        clean(text, host=HOST, limit=size)
        harmless(text, HOST)
        times.append(time.process_time() - start)
    return "  ".join(f"{1000 * seconds:6.0f} ms" for seconds in times)


def main() -> None:
    """Measure and print; ends with 1 where something is alive."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench markdown")
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1_000, help="of the first batch; each batch has its own")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    print("16, 32 and 64 KB of one piece, processor time:")
    for piece in PIECES:
        print(f"  {piece!r:32} {growth(piece)}", flush=True)
    press = Press()
    known_faults = [fault for text in KNOWN if (fault := press.everywhere(text))]
    print(
        "\n".join([*known_faults, f"{len(KNOWN)} known attacks in every place: {len(known_faults)} alive"]),
        flush=True,
    )
    alive = posted(options.texts, options.seed, options.processes)
    sys.exit(1 if known_faults or alive else 0)


def posted(count: int, first: int, processes: int) -> int:
    """How many of ``count`` generated texts come alive; tells them as they are found."""
    batches = [min(BATCH, count - start) for start in range(0, count, BATCH)]
    done, alive, slowest, memory = 0, 0, (0.0, ""), 0
    start = time.perf_counter()
    # A process for each batch: the wheel of GitHub's library never frees what it rendered.
    with get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        for batch in pool.imap(attack, enumerate(batches, first)):
            done += BATCH
            alive += len(batch.faults)
            slowest = max(slowest, batch.slowest)
            memory = max(memory, batch.memory)
            print(*batch.faults, sep="\n", end="\n" * bool(batch.faults), flush=True)
            if done % REPORTED == 0:
                print(f"  {done:,} texts, {time.perf_counter() - start:.0f} s, {memory:,} KiB", flush=True)
    print(f"{count:,} generated texts, {time.perf_counter() - start:.0f} s, {memory:,} KiB: {alive} alive")
    print(f"slowest {slowest[0] * 1000:.0f} ms: {slowest[1]!r}")
    return alive


if __name__ == "__main__":
    main()
