"""A report on runs of BouncerBench, of one bouncer or of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from bot.errors import OperatorError
from evaluation.bouncerbench import paper
from evaluation.bouncerbench.answers import run_answers
from evaluation.bouncerbench.chain import chain
from evaluation.bouncerbench.compare import compare
from evaluation.bouncerbench.metrics import Missing, score
from evaluation.bouncerbench.sections import (
    Scored,
    Tasks,
    chain_section,
    comparison_section,
    lengths_section,
    lines_section,
    scores_section,
)
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, Benchmark, OutputTask, input_tasks, output_tasks
from evaluation.report.facts import cost_section, facts_section
from evaluation.report.page import Section
from evaluation.run.folder import RunFolder

#: Runs of one bouncer that are compared pair by pair; with more, each is compared with the first.
ALL_PAIRS = 3


def sections(
    runs: Sequence[tuple[str, RunFolder]], tasks: Mapping[str, str], missing: Missing, seed: int
) -> list[Section]:
    """Everything there is to say about these runs; ``tasks`` names another task file per benchmark.

    Raises OperatorError where a task file cannot be read or holds no ground truth.
    """
    notes = [
        f"{name} is scored on {tasks[run.facts.benchmark]}." for name, run in runs if run.facts.benchmark in tasks
    ]
    loaded: dict[str, Tasks] = {}
    scored = [_scored(name, run, tasks, loaded, missing, seed) for name, run in runs]
    found = [facts_section(runs, notes)]
    for benchmark in (INPUT, OUTPUT):
        mine = [each for each in scored if each.benchmark == benchmark]
        if mine:
            found += _on_one(benchmark, mine, seed)
    found += _chains(scored)
    quoted = [
        (f"{model} (paper)", 1699 + 642, None, None, None, f"{usd:.2f}", f"{usd / (1699 + 642):.5f}", None)
        for model, usd in paper.COSTS.items()
    ]
    return [*found, cost_section(runs, quoted)]


def _scored(
    name: str, run: RunFolder, tasks: Mapping[str, str], loaded: dict[str, Tasks], missing: Missing, seed: int
) -> Scored:
    benchmark: Benchmark = INPUT if run.facts.benchmark == INPUT else OUTPUT
    source = tasks.get(benchmark, run.facts.tasks.source)
    if source not in loaded:
        loaded[source] = list(input_tasks(source)) if benchmark == INPUT else list(output_tasks(source))
    if all(task.bounce is None for task in loaded[source]):
        raise OperatorError(f"{source} says of no task what is right: name a labelled file, --tasks {benchmark}=F")
    due = run.due(loaded[source], lambda task: task.instance_id)
    answers = run_answers(run)
    return Scored(name, benchmark, due, answers, score(benchmark, due, answers, missing, seed=seed))


def _on_one(benchmark: Benchmark, runs: Sequence[Scored], seed: int) -> Iterator[Section]:
    yield scores_section(benchmark, runs)
    yield lines_section(benchmark, runs)
    by_length = lengths_section(benchmark, runs)
    if by_length is not None:
        yield by_length
    pairs = combinations(runs, 2) if len(runs) <= ALL_PAIRS else ((runs[0], other) for other in runs[1:])
    for first, second in pairs:
        yield comparison_section(first, second, compare(first.tasks, first.answers, second.answers, seed=seed))


def _chains(scored: Sequence[Scored]) -> Iterator[Section]:
    """The first input run before the first output run."""
    first = next((each for each in scored if each.benchmark == INPUT), None)
    second = next((each for each in scored if each.benchmark == OUTPUT), None)
    if first is None or second is None:
        return
    tasks = [task for task in second.tasks if isinstance(task, OutputTask)]
    quality = {task.instance_id: task.quality for task in first.tasks}
    known = [
        task if task.quality is not None else task.model_copy(update={"quality": quality.get(task.instance_id)})
        for task in tasks
    ]
    yield chain_section(first, second, chain(known, first.answers, second.answers))
