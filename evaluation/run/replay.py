"""``bouncer-eval replay``: one driver for every benchmark. Model, cache, budget, folder, tasks, and what is shown.

A progress bar stands on stderr; Ctrl-C loses nothing; a summary is printed at the end. ``batch export`` lets the
same tasks run with a model that writes its questions down instead of asking them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import click

from bot import __version__, app, settings
from bot.cli.files import print_json, progress, write_text
from bot.core.errors import OperatorError, SettingsError
from bot.core.text import amount
from bot.models.protocol import Model, Prompt, Reply, T
from bot.settings import Settings
from evaluation.benchmark import Benchmark, Session
from evaluation.dataset import choose, fingerprint, located
from evaluation.report.terminal import say
from evaluation.run.batch import Export, Pending
from evaluation.run.folder import Record, RunFacts, RunFolder, Tasks
from evaluation.run.model import NOT_KEPT, Account, Cached, FolderStore
from evaluation.run.runner import Options, Outcome, Postponed, Result, Task, run

Item = TypeVar("Item")

#: So many different errors are named at the end of a run.
SHOWN_ERRORS = 3

#: The shell's code for a command that Ctrl-C ended.
INTERRUPTED = 130


@dataclass(frozen=True)
class ReplayRequest:
    """The options of the command line that every replay has."""

    out: str
    model: str | None = None
    prompts: str | None = None
    limit: int | None = None
    seed: int | None = None
    workers: int = 4
    max_cost: float | None = None
    cache: str | None = None
    retry_failed: bool = False
    recognised: bool = True
    as_json: bool = False

    @cached_property
    def environment(self) -> Settings:
        """The operator's settings, with what the command line says instead."""
        return settings.load(bouncer_model=self.model, bouncer_prompts_dir=self.prompts)


def replay(bench: Benchmark[Item, Any], session: Session[Item], source: str, request: ReplayRequest) -> int:
    """Run or continue a replay of the tasks in ``source``, or export its requests; returns the exit code.

    Raises OperatorError.
    """
    selection = choose_tasks(bench, session, source, request)
    export = click.get_current_context().find_object(Export)
    if export is not None:
        return _export(_chosen(bench, session, source, selection), session, request, export)
    path = Path(request.out)
    model = _model(session, request)
    ids = (bench.identify(item) for item in bench.read(source))
    due = (identity for identity in ids if identity in selection)
    folder = RunFolder.resume(path, _facts(bench, session, source, request, model.id), due)
    try:
        # Before the failed records go: a reply of theirs that is kept is paid, and counted again only later.
        spent = folder.spent_usd()
        if request.retry_failed:
            say(f"{folder.retry_failed()} failed tasks are tried again")
        account = Account(
            request.environment,
            Path(request.cache) if request.cache else path / "cache",
            request.max_cost,
            scope="this run",
            spent=spent,
            always=request.cache is not None,
        )
        model = account.cached(model if isinstance(model, Unasked) else account.capped(model))
        session.start(account)
    except OperatorError:
        folder.close(None)
        raise
    tasks = (Task(bench.identify(item), item) for item in _chosen(bench, session, source, selection))
    timeless = model.id.startswith(NOT_KEPT)
    result = run_shown(
        tasks, len(selection), lambda item: session.run(item, model), folder, request.workers, timeless=timeless
    )
    return report_result(folder, result, request.as_json)


def _chosen(
    bench: Benchmark[Item, Any], session: Session[Item], source: str, ids: frozenset[str]
) -> Iterator[Item]:
    for item in bench.read(source):
        if session.ready(item) and bench.identify(item) in ids:
            yield item


def _export(tasks: Iterator[Item], session: Session[Item], request: ReplayRequest, export: Export) -> int:
    """Let every task run until it asks what the cache does not hold, and write that question down."""
    waiting = complete = failed = 0
    pending = Pending(request.environment.bouncer_model, export.form)
    assert request.cache is not None, "batch export demands it"
    model = Cached(pending, FolderStore(Path(request.cache)))
    for item in tasks:
        try:
            session.run(item, model)
            complete += 1
        except Postponed:
            waiting += 1
        except OperatorError as error:  # what a replay would record as this task's error
            failed += 1
            say(str(error))
    write_text(request.out, "".join(f"{line}\n" for line in pending.lines.values()))
    if request.as_json:
        counts = {"requests": len(pending.lines), "waiting": waiting, "answered": complete, "failed": failed}
        print_json({"out": request.out, "model": pending.id, **counts})
    else:
        line = f"{request.out}: {amount(len(pending.lines), 'request')}; "
        line += f"{amount(waiting, 'task waits', 'tasks wait')} for them, {amount(complete, 'needs', 'need')} none"
        say(line + (f", {failed} cannot be replayed" if failed else ""))
    return 0


def choose_tasks(
    bench: Benchmark[Item, Any], session: Session[Item], source: str, request: ReplayRequest
) -> frozenset[str]:
    """The ids of the tasks to run; the whole file is checked before anything is paid for.

    Raises OperatorError for a malformed row, and where no task holds what is needed.
    """
    unready = 0

    def ids() -> Iterator[str]:
        nonlocal unready
        for item in bench.read(source):
            if session.ready(item):
                yield bench.identify(item)
            else:
                unready += 1

    # Read to the end whatever the limit: a fault in the last row is better found now than after the first hour.
    remaining = ids()
    selection = choose(remaining, request.limit, request.seed)
    for _ in remaining:
        pass
    if not selection:
        lack = f"none of its {unready} tasks holds what a replay needs" if unready else "it holds no task"
        raise OperatorError(f"{source}: {lack}")
    if unready:
        lack = "lacks text and is" if unready == 1 else "lack text and are"
        say(f"{amount(unready, 'task')} of {source} {lack} left out; scoring counts them as missing")
    return selection


class Unasked:
    """A Model that cannot be asked: it postpones every task that tries to."""

    def __init__(self, model_id: str) -> None:
        self.id = model_id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        raise Postponed(f"the cache holds no reply of {self.id} to this question")


def _model(session: Session[Any], request: ReplayRequest) -> Model:
    """The model of the settings; without its key, but with a named cache, one that only the cache answers."""
    if session.answered_by is not None:
        return Unasked(session.answered_by)
    environment = request.environment
    try:
        return app.build_models(environment).build(environment.bouncer_model)
    except SettingsError as error:
        if request.cache is None or "API_KEY" not in str(error):
            raise
        say(f"{error}; only what {request.cache} holds is answered")
        return Unasked(environment.bouncer_model)


def _facts(
    bench: Benchmark[Any, Any], session: Session[Any], source: str, request: ReplayRequest, model_id: str
) -> RunFacts:
    return RunFacts(
        benchmark=bench.name,
        model=model_id,
        prompts=dict(session.prompts),
        version=__version__,
        config=dict(session.config),
        seed=request.seed,
        tasks=Tasks(source=located(source), sha256=fingerprint(source), limit=request.limit),
        started_at=datetime.now(UTC),
    )


def run_shown(
    tasks: Iterable[Task[Item]],
    total: int,
    judge: Callable[[Item], Outcome],
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
        f"{folder.path}: {amount(totals.records, 'task')} recorded, "
        f"{totals.failed} of them without a usable answer; "
        f"{amount(usage.calls, 'model call')}, {usage.tokens}, {cost}"
    ]
    lines += [f"{count} of them: {error}" for error, count in errors.most_common(SHOWN_ERRORS)]
    if errors:
        lines.append("--retry-failed tries these again")
    if result.postponed:
        tasks = amount(result.postponed, "task waits", "tasks wait")
        lines.append(f"{tasks} for answers that the cache does not hold yet")
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

    before: Any = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(total: int, finished: int) -> Iterator[Callable[[Record], None]]:
    done, failed = finished, 0
    cost: float | None = None
    with progress() as show:

        def advance(record: Record) -> None:
            nonlocal done, failed, cost
            done += 1
            failed += record.failed
            if record.usage.cost_usd is not None:
                cost = (cost or 0.0) + record.usage.cost_usd
            show("", min(done, total), total, f"{failed} failed" + ("" if cost is None else f"  {cost:.2f} USD"))

        yield advance
