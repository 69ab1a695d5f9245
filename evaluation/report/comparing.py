"""``bouncer-eval compare``: two runs of one benchmark on the tasks that both had, as of two prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bot.core.errors import OperatorError
from evaluation.benchmark import Scoring, benchmarks
from evaluation.report.cutoff import Sample
from evaluation.report.page import Cell, Section, Table
from evaluation.report.runs import named
from evaluation.report.terminal import data_of, print_json, show
from evaluation.run.folder import RunFolder
from evaluation.statistics import Array, Counts, bootstrap


def compare_command(old: str, new: str, tasks: str | None, scoring: Scoring, as_json: bool) -> None:
    """Print every figure of both and the difference. Raises OperatorError."""
    runs = named([RunFolder.read(Path(path)) for path in (old, new)])
    kinds = {run.facts.benchmark for _, run in runs}
    entry = benchmarks().get(next(iter(kinds)))
    if len(kinds) > 1 or entry is None or not entry.benchmark:
        raise OperatorError(f"{old} and {new} are runs of {' and '.join(sorted(kinds))}: nothing to compare")
    bench = entry.load()
    source = tasks or runs[0][1].facts.tasks.source
    samples = [bench.sample(bench.score(run, name, source, scoring)) for name, run in runs]
    sections = [_section(samples, [run for _, run in runs], scoring)]
    if as_json:
        print_json(data_of(sections))
    else:
        show(sections)


def _section(samples: Sequence[Sample], runs: Sequence[RunFolder], scoring: Scoring) -> Section:
    places = [{task: place for place, task in enumerate(sample.tasks)} for sample in samples]
    common = [task for task in places[0] if task in places[1]]
    if not common:
        raise OperatorError("the two runs have no task in common")
    indices = [np.array([of_run[task] for task in common], dtype=np.int64) for of_run in places]

    def on(which: int, draws: Counts) -> dict[str, Array]:
        return samples[which].figures(indices[which][draws])

    def difference(draws: Counts) -> dict[str, Array]:
        before, after = on(0, draws), on(1, draws)
        return {name: after[name] - value for name, value in before.items() if name in after}

    how = scoring.resampling
    before, after = (bootstrap(partial(on, which), len(common), how) for which in (0, 1))
    differences = bootstrap(difference, len(common), how)
    rows: list[tuple[Cell, ...]] = [
        (name, before[name].text(), after[name].text(), estimate.text()) for name, estimate in differences.items()
    ]
    changed = _changed([run.facts.prompts for run in runs])
    prompts = "; ".join(
        f"{name}: {old or 'not asked'} to {new or 'not asked'}" for name, (old, new) in changed.items()
    )
    note = f"{len(common)} tasks that both had. Prompts that differ: {prompts or 'none'}."
    table = Table(("figure [95 % interval]", "old", "new", "new - old, paired"), tuple(rows))
    figures = {
        name: {
            group: estimates[name].as_json()
            for group, estimates in (("old", before), ("new", after), ("difference", differences))
        }
        for name in differences
    }
    data = {"tasks": len(common), "prompts": changed, "figures": figures}
    return Section("Old against new", (note,), (table,), data=data)


def _changed(hashes: Sequence[Mapping[str, str]]) -> dict[str, list[str | None]]:
    """The prompts that differ, with the hashes of both."""
    return {
        name: [of_run.get(name) for of_run in hashes]
        for name in sorted({*hashes[0], *hashes[1]})
        if hashes[0].get(name) != hashes[1].get(name)
    }
