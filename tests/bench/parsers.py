"""Parsers of foreign text: does twice the input take twice the time?  ``--fuzz N``: N random inputs for each.

Prints the worst growth of each parser over its adversarial inputs; ends with 1 where one grows faster than its
input, raises what it does not document, or keeps memory.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import signal
import sys
import time
from statistics import median

from tests.parsers.parser import Parser
from tests.parsers.registry import PARSERS

#: Doubling an input may take this much longer: linear is 2, quadratic 4; the rest is the machine's noise.
ALLOWED = 3.2
#: Shorter times say nothing, and nothing may take longer, seconds; what takes longest is ended.
NOTICED, PATIENCE, LONGEST = 0.04, 3.0, 30
#: No short random text may take longer, seconds; no reader may keep more, KiB.
SUDDEN, KEPT = 1.0, 50_000
#: Texts of a reader that are shown, of those that raise what it does not document.
SHOWN = 10


def main() -> None:
    """Measure all parsers, or those whose names are given."""
    arguments = argparse.ArgumentParser(prog="python -m tests.bench parsers", description=__doc__)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--fuzz", type=int, default=0, metavar="N")
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    selection = [parser for parser in PARSERS if not options.names or parser.name in options.names]
    signal.signal(signal.SIGALRM, _stop)
    results = [
        fuzz(parser, options.fuzz, options.seed) if options.fuzz else growth(parser) for parser in selection
    ]
    sys.exit(0 if all(results) else 1)


def growth(parser: Parser) -> bool:
    """Hold each adversarial input at its full size against its half; print the steepest."""
    worst, slowest = (0.0, "", 0.0), 0.0
    for position, (label, _) in enumerate(parser.texts(1)):
        whole, half = (list(parser.texts(size))[position][1] for size in (parser.limit, parser.limit // 2))
        seconds = _seconds(parser, whole)
        slowest = max(slowest, seconds)
        if NOTICED <= seconds <= PATIENCE:
            ratio = seconds / _seconds(parser, half)
            if ratio > ALLOWED:
                # The machine may have been busy, or the memory's collector been at work.
                ratio = median(_seconds(parser, whole) / _seconds(parser, half) for _ in range(3))
            worst = max(worst, (ratio, label, seconds))
    ratio, label, seconds = worst
    steepest = f"{ratio:4.1f} x to {parser.limit:>7,} characters ({seconds:.2f} s) of {label!r}"
    print(f"{parser.name:32} slowest {slowest:6.2f} s; {steepest if ratio else 'too quick to tell'}", flush=True)
    return ratio <= ALLOWED and slowest <= PATIENCE


def _seconds(parser: Parser, text: str) -> float:
    """Processor time of one reading, without the collector of garbage, which works by leaps."""
    gc.collect()
    gc.disable()
    signal.alarm(LONGEST)
    began = time.process_time()
    try:
        parser.read(text)
    except parser.raises:
        pass
    except _TooLong:
        return LONGEST
    finally:
        signal.alarm(0)
        gc.enable()
    return time.process_time() - began


class _TooLong(BaseException):
    """Past every ``except`` of a reader."""


def _stop(*_: object) -> None:
    raise _TooLong


def fuzz(parser: Parser, count: int, seed: int) -> bool:
    """Random inputs: no error but the documented ones, none slow, and memory as it was after the first tenth."""
    dice = random.Random(f"{seed}:{parser.name}")
    slowest, early, began = (0.0, ""), 0, time.process_time()
    read = faults = 0
    for number in range(count):
        # Every other text of a grammar is a short sequence of its tokens, repeated.
        text = parser.repeated(dice) if parser.apart and number % 2 else parser.random(dice)
        start = time.process_time()
        try:
            parser.read(text)
            read += 1
        except parser.raises:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it raises is what is looked for
            faults += 1
            if faults <= SHOWN:
                print(f"{parser.name:32} {type(error).__name__} of {text!r}", flush=True)
        slowest = max(slowest, (time.process_time() - start, text))
        if number == count // 10:
            early = _memory()
    grown = _memory() - early
    seconds = time.process_time() - began
    print(
        f"{parser.name:32} {count:,} inputs, {read:,} read, {faults} faults, {seconds:.0f} s, +{grown:,} KiB, "
        f"slowest {slowest[0] * 1000:.0f} ms: {slowest[1][:80]!r}",
        flush=True,
    )
    return not faults and grown < KEPT and slowest[0] < SUDDEN


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
