"""``bouncer-eval replay`` for benchmarks whose tasks go through a handler: model, cache, budget, folder, tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

import click

from bot import __version__, app
from bot.core.actions import Task as Handler
from bot.core.config import RepoConfig
from bot.errors import OperatorError, SettingsError
from bot.models.budget import Budget, Budgeted, Limit, MemoryBudget
from bot.models.cached import Cached
from bot.models.prices import Prices
from bot.models.prices import load as load_prices
from bot.models.protocol import Model, Prompt, Reply, T
from bot.models.registry import ModelKeys, Models
from bot.ops import settings
from bot.ops.settings import Settings
from bot.prompts import Prompts
from evaluation.cli.options import print_json, say
from evaluation.dataset import choose, fingerprint
from evaluation.run.batch import Pending
from evaluation.run.cache import FolderStore
from evaluation.run.folder import RunFacts, RunFolder, Tasks
from evaluation.run.progress import report_result, run_shown
from evaluation.run.runner import Postponed, Task
from evaluation.run.staging import Setup, Staged, judge

Item = TypeVar("Item")

#: Providers whose replies cost nothing to get again.
NOT_KEPT = ("recorded:", "scripted:")


@dataclass(frozen=True)
class Replayable(Generic[Item]):
    """What a benchmark brings: where its tasks come from and how each becomes an event.

    ``stage`` is called in worker threads. ``ready`` says whether a task holds what ``stage`` needs; the others
    are counted and left out. ``prompts`` are the names of the prompts that the handler uses, ``parts`` the
    sections of the config that shape its decisions: two runs that differ in these are different runs.
    """

    benchmark: str
    source: str
    read: Callable[[str], Iterator[Item]]
    identify: Callable[[Item], str]
    ready: Callable[[Item], bool]
    stage: Callable[[Item], Staged]
    handler: Handler
    config: RepoConfig
    prompts: tuple[str, ...]
    parts: tuple[str, ...]
    needs_verdict: bool = True


@dataclass(frozen=True)
class Wanted:
    """The options of the command line."""

    out: str
    model: str | None = None
    prompts: str | None = None
    limit: int | None = None
    seed: int | None = None
    workers: int = 4
    max_cost: float | None = None
    cache: str | None = None
    retry_failed: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class Export:
    """Write requests instead of asking: ``batch export`` puts this into the command's context."""

    form: str


def replay(bench: Replayable[Item], wanted: Wanted) -> int:
    """Run or continue a replay, or export its requests; returns the exit code. Raises OperatorError."""
    environment = settings.load(bouncer_model=wanted.model, bouncer_prompts_dir=wanted.prompts)
    prompts = app.prompts(environment)
    chosen, total = choose_tasks(bench, wanted)
    export = click.get_current_context().find_object(Export)
    if export is not None:
        return _export(bench, wanted, export, environment.bouncer_model, prompts, chosen)
    path = Path(wanted.out)
    model = build_model(environment, wanted.cache or str(path / "cache"), wanted.cache is not None)
    ids = (bench.identify(item) for item in bench.read(bench.source))
    folder = RunFolder.resume(
        path, _facts(bench, wanted, model.id, prompts), (each for each in ids if chosen is None or each in chosen)
    )
    try:
        if wanted.retry_failed:
            say(f"{folder.forget_failed()} failed tasks are tried again")
        model = kept_and_capped(model, environment, wanted, folder)
    except OperatorError:
        folder.close(None)
        raise
    setup = Setup(model, bench.config, prompts, bench.handler, bench.needs_verdict)
    tasks = (Task(bench.identify(item), item) for item in _chosen(bench, chosen))
    timeless = model.id.startswith(NOT_KEPT)
    result = run_shown(
        tasks, total, lambda item: judge(bench.stage(item), setup), folder, wanted.workers, timeless=timeless
    )
    return report_result(folder, result, wanted.as_json)


def _chosen(bench: Replayable[Item], ids: frozenset[str] | None) -> Iterator[Item]:
    for item in bench.read(bench.source):
        if bench.ready(item) and (ids is None or bench.identify(item) in ids):
            yield item


def _export(
    bench: Replayable[Any],
    wanted: Wanted,
    export: Export,
    model_id: str,
    prompts: Prompts,
    chosen: frozenset[str] | None,
) -> int:
    """Let every task run until it asks what the cache does not hold, and write that question down."""
    if wanted.cache is None:
        raise OperatorError("--cache DIR is needed: the answers will be put there")
    waiting = answered = failed = 0
    with _writable(wanted.out) as out:
        pending = Pending(model_id, export.form, out)
        model = Cached(pending, FolderStore(Path(wanted.cache)))
        setup = Setup(model, bench.config, prompts, bench.handler, bench.needs_verdict)
        for item in _chosen(bench, chosen):
            try:
                judge(bench.stage(item), setup)
                answered += 1
            except Postponed:
                waiting += 1
            except OperatorError as error:  # what a replay would record as this task's error
                failed += 1
                say(str(error))
    if wanted.as_json:
        counts = {"requests": pending.written, "waiting": waiting, "answered": answered, "failed": failed}
        print_json({"out": wanted.out, "model": model_id, **counts})
    else:
        say(
            f"{wanted.out}: {pending.written} requests; {waiting} tasks wait for them, {answered} need none"
            + (f", {failed} cannot be replayed" if failed else "")
        )
    return 0


def _writable(file: str) -> TextIO:
    try:
        return Path(file).open("w", encoding="ascii")
    except OSError as error:
        raise OperatorError(f"--out {file}: {error.strerror}") from None


def choose_tasks(bench: Replayable[Any], wanted: Wanted) -> tuple[frozenset[str] | None, int]:
    """The ids to run (None for all) and how many; the whole file is checked before anything is paid for.

    Raises OperatorError for a malformed row, and where no task holds what is needed.
    """
    found = unready = 0

    def ids() -> Iterator[str]:
        nonlocal found, unready
        for item in bench.read(bench.source):
            if bench.ready(item):
                found += 1
                yield bench.identify(item)
            else:
                unready += 1

    # Read to the end whatever the limit: a fault in the last row is better found now than after the first hour.
    remaining = ids()
    chosen = choose(remaining, wanted.limit, wanted.seed)
    for _ in remaining:
        pass
    if not found:
        raise OperatorError(f"{bench.source}: none of its {unready} tasks holds what a replay needs")
    if unready:
        say(f"{unready} tasks of {bench.source} lack text and are left out; scoring counts them as missing")
    return chosen, found if chosen is None else len(chosen)


def build_model(environment: Settings, cache: str, cache_is_given: bool) -> Model:
    """The model of the settings; without its key, but with a named cache, one that only the cache answers."""
    keys = ModelKeys(
        openai_api_key=environment.openai_api_key,
        openai_base_url=environment.openai_base_url,
        anthropic_api_key=environment.anthropic_api_key,
        anthropic_base_url=environment.anthropic_base_url,
    )
    try:
        return Models(keys, _prices(environment)).build(environment.bouncer_model)
    except SettingsError as error:
        if not cache_is_given or "API_KEY" not in str(error):
            raise
        say(f"{error}; only what {cache} holds is answered")
        return Unasked(environment.bouncer_model)


class Unasked:
    """A Model without a key: it postpones every task that asks it."""

    def __init__(self, model_id: str) -> None:
        self.id = model_id

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        raise Postponed(f"the cache holds no reply of {self.id} to this question")


def kept_and_capped(model: Model, environment: Settings, wanted: Wanted, folder: RunFolder) -> Model:
    """The model with its replies kept and its cost capped, as the options ask for."""
    if wanted.max_cost is not None and not isinstance(model, Unasked):
        model = _capped(model, _prices(environment), wanted.max_cost, folder)
    if model.id.startswith(NOT_KEPT) and wanted.cache is None:
        return model
    return Cached(model, FolderStore(Path(wanted.cache) if wanted.cache else folder.path / "cache"))


def _capped(model: Model, prices: Prices, max_cost: float, folder: RunFolder) -> Model:
    """Refuses a call whose worst case would pass what is left of ``max_cost`` after the recorded tasks."""
    spent = sum(record.usage.cost_usd or 0.0 for record in folder.records())
    limit = Limit(scope="this run", usd=max(0.0, max_cost - spent))
    started = folder.facts.started_at
    # A run that passes midnight is still one run: its budget's day never ends.
    return Budgeted(model, prices.of(model.id), Budget(MemoryBudget(), (limit,), lambda: started))


def _facts(bench: Replayable[Any], wanted: Wanted, model_id: str, prompts: Prompts) -> RunFacts:
    return RunFacts(
        benchmark=bench.benchmark,
        model=model_id,
        prompts={name: prompts.hash(name) for name in bench.prompts},
        version=__version__,
        config=bench.config.model_dump(mode="json", include=set(bench.parts)),
        seed=wanted.seed,
        tasks=Tasks(source=bench.source, sha256=fingerprint(bench.source), limit=wanted.limit),
        started_at=datetime.now(UTC),
    )


def _prices(environment: Settings) -> Prices:
    return load_prices(environment.bouncer_prices_file)
