"""Text that is posted: how many attacks come alive, and how time grows with the text.

Each generated text goes through a handler's template and the real publisher to one place (comment, check, review
with its inline comment, summary, a whole body); what would be sent is rendered by GitHub's own library.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor

from bot.core.markdown import clean
from tests.bot.publishing.attacks import KNOWN, generated
from tests.bot.publishing.surfaces import Press

#: What parsers are slow at, where they are.
PIECES = ("\\", "[", "*a_", "`a``", "![a](", "  - a\n", "http://", "-----BEGIN PRIVATE KEY-----", "token-", "@a:")
#: Texts of one seed.
BATCH = 5_000


def attack(count: int, seed: int) -> list[str]:
    """The faults of ``count`` texts."""
    press = Press()
    places = press.places()
    found: list[str] = []
    for number, text in enumerate(generated(count, seed)):
        place = places[number % len(places)]
        if problem := place(text):
            found.append(f"{place.__name__}: {problem}: {text!r}")
    return found


def growth(piece: str) -> str:
    """Seconds for a text of one piece, doubled twice."""
    taken = []
    for size in (16_000, 32_000, 64_000):
        text = piece * (size // len(piece))
        start = time.perf_counter()
        clean(text, host="ghe.example", limit=size)
        taken.append(time.perf_counter() - start)
    return "  ".join(f"{1000 * each:6.0f} ms" for each in taken)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench markdown")
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1_000, help="of the first batch; each batch has its own")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    print("16, 32 and 64 KB of one piece:")
    for piece in (
        "\\",
        "[",
        "*a_",
        "`a``",
        "![a](",
        "  - a\n",
        "http://",
        "-----BEGIN PRIVATE KEY-----",
        "token-",
    ):
        print(f"  {piece!r:32} {growth(piece)}")
    press = Press()
    known = [found for text in KNOWN if (found := press.everywhere(text))]
    batches = [min(BATCH, options.texts - start) for start in range(0, options.texts, BATCH)]
    seeds = range(options.seed, options.seed + len(batches))
    start = time.perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        found = [each for batch in pool.map(attack, batches, seeds) for each in batch]
    print("\n".join([*known, *found[:20]]))
    print(f"{len(KNOWN)} known attacks in every place: {len(known)} alive")
    print(f"{options.texts} generated texts, {time.perf_counter() - start:.0f} s: {len(found)} alive")


if __name__ == "__main__":
    main()
