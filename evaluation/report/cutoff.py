"""Contamination: figures without recognised tasks, and figures on bugs before and after a cutoff.

A task is fresh where its row's ``fixed_at`` (else ``created_at``) is the cutoff's day or later; a row without a
date is in neither group. Clean are the fresh ones whose answer does not say that the model knew the fix. The
groups are different tasks, so the interval of the difference is that of two samples, resampled apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bot.core.errors import OperatorError
from evaluation.dataset import read_rows
from evaluation.report.page import Cell, Section, Table
from evaluation.run.folder import Familiarity
from evaluation.statistics import USUAL, Array, Counts, Estimate, Resampling, bootstrap, unpaired


@dataclass(frozen=True)
class Sample:
    """One run's tasks and figures; ``figures`` takes draws of indices into ``tasks``.

    ``recognised`` says by task how well the model knew it from elsewhere, for the answers that speak of it.
    """

    name: str
    tasks: Sequence[str]
    figures: Callable[[Counts], dict[str, Array]]
    recognised: Mapping[str, Familiarity] = field(default_factory=dict)

    def knows_outcome(self, task: str) -> bool:
        """Return True if the model knew what became of a task."""
        return task in self.recognised and self.recognised[task].grade == "knows_outcome"

    def is_new(self, task: str) -> bool:
        """Return True if the model knew neither the task nor its text, or was not asked."""
        return task not in self.recognised or self.recognised[task] == Familiarity()


@dataclass(frozen=True)
class Aged:
    """One run on old, fresh and clean tasks: how many, and each figure."""

    name: str
    undated: int
    tasks: Mapping[str, int]
    estimates: Mapping[str, Mapping[str, Estimate]]

    def as_json(self) -> dict[str, Any]:
        """``{"tasks": {...}, "figures": {name: {"old": [value, low, high], ...}}}``."""
        figures = {
            name: {group: estimate.as_json() for group, estimate in estimates.items()}
            for name, estimates in self.estimates.items()
        }
        return {"tasks": {**self.tasks, "undated": self.undated}, "figures": figures}


def read_dates(source: str) -> dict[str, datetime]:
    """When each bug was fixed, by task id, as far as the rows say. Raises OperatorError for what is no date."""
    dates: dict[str, datetime] = {}
    for row in read_rows(source):
        value = row.data.get("fixed_at") or row.data.get("created_at")
        if not value:
            continue
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            raise OperatorError(f"{row.where}: fixed_at: {str(value)[:40]!r} is no date") from None
        dates[str(row.data.get("instance_id"))] = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return dates


def aged(sample: Sample, dates: Mapping[str, datetime], cutoff: datetime, how: Resampling = USUAL) -> Aged:
    """The figures of a run before and after ``cutoff``."""
    cutoff = cutoff if cutoff.tzinfo else cutoff.replace(tzinfo=UTC)
    groups: dict[str, list[int]] = {"old": [], "fresh": [], "clean": []}
    for index, task in enumerate(sample.tasks):
        if task in dates:
            fresh = dates[task] >= cutoff
            groups["fresh" if fresh else "old"].append(index)
            if fresh and not sample.knows_outcome(task):
                groups["clean"].append(index)
    old, fresh_ones, clean = (np.array(group, dtype=np.int64) for group in groups.values())
    estimates: dict[str, dict[str, Estimate]] = {}

    def tell(group: str, values: Mapping[str, Estimate]) -> None:
        for name, estimate in values.items():
            estimates.setdefault(name, {})[group] = estimate

    for group, indices in (("old", old), ("fresh", fresh_ones), ("clean", clean)):
        if len(indices):
            tell(group, bootstrap(_on(sample, indices), len(indices), how))
    if len(old) and len(fresh_ones):
        tell("difference", unpaired(sample.figures, old, fresh_ones, how))
    undated = len(sample.tasks) - len(old) - len(fresh_ones)
    return Aged(sample.name, undated, {name: len(group) for name, group in groups.items()}, estimates)


def _on(sample: Sample, indices: Counts) -> Callable[[Counts], dict[str, Array]]:
    return lambda draws: sample.figures(indices[draws])


def recognised_section(samples: Sequence[Sample], how: Resampling = USUAL) -> Section | None:
    """Every figure on all tasks, without those whose outcome is known, and without all that were recognised.

    None if no answer speaks of it.
    """
    rows: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for sample in samples:
        others = [index for index, task in enumerate(sample.tasks) if not sample.knows_outcome(task)]
        new = [index for index, task in enumerate(sample.tasks) if sample.is_new(task)]
        grades = [sample.recognised[task] for task in sample.tasks if task in sample.recognised]
        counts = {
            "recognised": len(sample.tasks) - len(others),
            "vaguely": sum(familiarity.grade == "vaguely" for familiarity in grades),
            "published": sum(familiarity.published for familiarity in grades),
            "asked": len(grades),
        }
        groups = (range(len(sample.tasks)), others, new)
        whole, without, strict = (
            bootstrap(_on(sample, np.array(group, dtype=np.int64)), len(group), how) if len(group) else {}
            for group in groups
        )
        more = "".join(f", {counts[name]} {name}" for name in ("vaguely", "published") if counts[name])
        tasks = f"tasks ({counts['recognised']} of {counts['asked']} recognised{more})"
        rows.append((sample.name, tasks, *map(len, groups)))
        rows += [
            (
                sample.name,
                name,
                estimate.text(),
                *(part.get(name, Estimate(None)).text() for part in (without, strict)),
            )
            for name, estimate in whole.items()
        ]
        data[sample.name] = {
            **counts,
            "figures": {name: estimate.as_json() for name, estimate in without.items()},
            "figures_of_new": {name: estimate.as_json() for name, estimate in strict.items()},
        }
    if not rows:
        return None
    note = (
        "Recognised: the model said that it knows what became of the issue or change; vaguely: only that it seems "
        "familiar; published: that it knows the text from a data set. The last column is without all three."
    )
    header = ("run", "figure", "all", "without recognised", "without any familiar")
    table = Table(header, tuple(rows), note=note)
    return Section("Without recognised answers", tables=(table,), data={"without_recognised": data})


def cutoff_section(runs: Sequence[Aged], cutoff: datetime) -> Section:
    """Every figure of every run: old, fresh, the difference, and clean."""
    groups = ("old", "fresh", "difference", "clean")
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        counts = (run.tasks["old"], run.tasks["fresh"], None, run.tasks["clean"])
        rows.append((run.name, "tasks", *counts))
        rows += [
            (run.name, figure, *(values.get(group, Estimate(None)).text() for group in groups))
            for figure, values in run.estimates.items()
        ]
    undated = sum(run.undated for run in runs)
    note = "Difference: fresh minus old, two independent samples. Clean: fresh, without recognised answers. " + (
        f"{undated} tasks have no date and are in neither." if undated else "Every task has a date."
    )
    table = Table(("run", "figure", "old", "fresh", "fresh - old", "clean"), tuple(rows), note=note)
    data = {"cutoff": {run.name: run.as_json() for run in runs}}
    return Section(f"Before and after {cutoff:%Y-%m-%d}", tables=(table,), data=data)
