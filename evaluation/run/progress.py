"""Running tasks in front of a person: a progress bar on stderr, Ctrl-C that loses nothing, a summary."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evaluation.cli.options import print_json, say
from evaluation.run.folder import Record, RunFolder
from evaluation.run.runner import Options, Outcome, Result, Task, run

T = TypeVar("T")

#: So many different errors are named at the end of a run.
SHOWN_ERRORS = 3

#: The shell's code for a command that Ctrl-C ended.
INTERRUPTED = 130


def run_shown(
    tasks: Iterable[Task[T]],
    total: int,
    judge: Callable[[T], Outcome],
    folder: RunFolder,
    workers: int,
    *,
    timeless: bool = False,
) -> Result:
    """``runner.run`` with a progress bar; a first Ctrl-C finishes what is under way, a second leaves at once.

    ``timeless``: replies are recorded ones, so tasks are done one by one and no time is measured; the same run
    gives the same records, byte for byte.
    """
    stop = threading.Event()
    options = Options(workers=workers, stop=stop)
    if timeless:
        options = replace(options, workers=1, clock=lambda: 0.0)
    with _interruptible(stop), _progress(total, len(folder.done())) as advance:
        return run(tasks, judge, folder, options, advance)


def report_result(folder: RunFolder, result: Result, as_json: bool) -> int:
    """Say how the run ended; returns the exit code: 0, 1 where the run is not complete, 130 after Ctrl-C."""
    facts, totals = folder.facts, folder.facts.totals
    errors = Counter(record.error for record in folder.records() if record.error)
    if as_json:
        print_json(
            {
                "run": str(folder.path),
                **facts.model_dump(mode="json", include={"benchmark", "model", "seed", "config", "prompts"}),
                "skipped": result.skipped,
                "finished": result.finished,
                "postponed": result.postponed,
                "stopped": result.stopped,
                "errors": dict(errors.most_common(SHOWN_ERRORS)),
                **totals.model_dump(mode="json"),
            }
        )
    else:
        say(_summary(folder, result, errors))
    if result.stopped == "interrupted":
        return INTERRUPTED
    return 1 if result.stopped or result.postponed else 0


def _summary(folder: RunFolder, result: Result, errors: Counter[str]) -> str:
    totals = folder.facts.totals
    usage = totals.usage
    cost = "cost unknown" if usage.cost_usd is None and usage.calls else f"{usage.cost_usd or 0:.4f} USD"
    lines = [
        f"{folder.path}: {totals.records} tasks recorded, {totals.failed} of them without a usable answer; "
        f"{usage.calls} model calls, {usage.input_tokens:,} + {usage.output_tokens:,} tokens, {cost}"
    ]
    lines += [f"{count} of them: {error}" for error, count in errors.most_common(SHOWN_ERRORS)]
    if errors:
        lines.append("--retry-failed tries these again")
    if result.postponed:
        lines.append(f"{result.postponed} tasks wait for answers that the cache does not hold yet")
    if result.stopped:
        lines.append(f"stopped: {result.stopped}; the same command goes on from here")
    return "\n".join(lines)


@contextmanager
def _interruptible(stop: threading.Event) -> Iterator[None]:
    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            # Finished tasks are on disk and replies are in the cache: nothing is left to save.
            os._exit(INTERRUPTED)
        stop.set()
        say("\nfinishing what is under way; Ctrl-C again leaves at once")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Any = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(total: int, done: int) -> Iterator[Callable[[Record], None]]:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed  {task.fields[cost]:.2f} USD"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), disable=not sys.stderr.isatty()) as bar:
        row = bar.add_task("", total=total, completed=min(done, total), failed=0, cost=0.0)
        failed, cost = 0, 0.0

        def advance(record: Record) -> None:
            nonlocal failed, cost
            failed += record.failed
            cost += record.usage.cost_usd or 0.0
            bar.update(row, advance=1, failed=failed, cost=cost)

        yield advance
