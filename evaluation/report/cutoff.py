"""Contamination: figures without recognised tasks, and figures on bugs before and after a cutoff.

A task is fresh where its row's ``fixed_at`` (else ``created_at``) is the cutoff's day or later; a row without a
date is in neither group. Clean are the fresh ones whose answer does not say that the model knew the fix. The
groups are different tasks, so the interval of the difference is that of two samples, resampled apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bot.core.errors import OperatorError
from bot.core.text import amount
from evaluation.dataset import read_rows
from evaluation.report.page import Cell, Section, Table
from evaluation.run.folder import Familiarity
from evaluation.statistics import Array, Counts, Estimate, Resampling, bootstrap, unpaired


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


#: Estimates of several groups of tasks: by figure, then by group.
ByFigure = dict[str, dict[str, Estimate]]


def by_figure(groups: Mapping[str, Mapping[str, Estimate]]) -> ByFigure:
    """Turn the estimates of each group around."""
    figures: ByFigure = {}
    for group, estimates in groups.items():
        for figure, estimate in estimates.items():
            figures.setdefault(figure, {})[group] = estimate
    return figures


def as_json(figures: ByFigure) -> dict[str, dict[str, list[float | None]]]:
    return {
        figure: {group: estimate.as_json() for group, estimate in estimates.items()}
        for figure, estimates in figures.items()
    }


def _on(sample: Sample, places: Sequence[int], how: Resampling) -> dict[str, Estimate]:
    """The figures on some of the tasks; empty without any."""
    indices = np.array(places, dtype=np.int64)
    return bootstrap(lambda draws: sample.figures(indices[draws]), len(places), how) if places else {}


def _rows(name: str, figures: ByFigure, groups: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    for figure, values in figures.items():
        yield (name, figure, *(values.get(group, Estimate(None)).text() for group in groups))


def recognised_section(samples: Sequence[Sample], how: Resampling) -> Section | None:
    """Every figure on all tasks, without those whose outcome is known, and without all that were recognised.

    None if no answer speaks of it.
    """
    rows: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for sample in samples:
        groups = {
            "all": list(range(len(sample.tasks))),
            "figures": [place for place, task in enumerate(sample.tasks) if not sample.knows_outcome(task)],
            "figures_of_new": [place for place, task in enumerate(sample.tasks) if sample.is_new(task)],
        }
        grades = [sample.recognised[task] for task in sample.tasks if task in sample.recognised]
        counts = {
            "recognised": len(sample.tasks) - len(groups["figures"]),
            "vaguely": sum(familiarity.grade == "vaguely" for familiarity in grades),
            "published": sum(familiarity.published for familiarity in grades),
            "asked": len(grades),
        }
        estimates = {group: _on(sample, places, how) for group, places in groups.items()}
        more = "".join(f", {counts[name]} {name}" for name in ("vaguely", "published") if counts[name])
        tasks = f"tasks ({counts['recognised']} of {counts['asked']} recognised{more})"
        rows += [
            (sample.name, tasks, *map(len, groups.values())),
            *_rows(sample.name, by_figure(estimates), [*groups]),
        ]
        parts = {
            group: {name: estimate.as_json() for name, estimate in of_group.items()}
            for group, of_group in estimates.items()
            if group != "all"
        }
        data[sample.name] = {**counts, **parts}
    if not rows:
        return None
    note = (
        "Recognised: the model said that it knows what became of the issue or change; vaguely: only that it seems "
        "familiar; published: that it knows the text from a data set. The last column is without all three."
    )
    header = ("run", "figure", "all", "without recognised", "without any familiar")
    table = Table(header, tuple(rows), note=note)
    return Section("Without recognised answers", tables=(table,), data={"without_recognised": data})


def cutoff_section(
    samples: Sequence[Sample], dates: Mapping[str, datetime], cutoff: datetime, how: Resampling
) -> Section:
    """Every figure of every run before and after ``cutoff``: old, fresh, the difference, and clean."""
    cutoff = cutoff if cutoff.tzinfo else cutoff.replace(tzinfo=UTC)
    rows: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for sample in samples:
        is_fresh = {place: dates[task] >= cutoff for place, task in enumerate(sample.tasks) if task in dates}
        old, fresh = ([place for place, value in is_fresh.items() if value is side] for side in (False, True))
        clean = [place for place in fresh if not sample.knows_outcome(sample.tasks[place])]
        groups = {"old": old, "fresh": fresh, "clean": clean}
        estimates = {group: _on(sample, places, how) for group, places in groups.items()}
        if old and fresh:
            before, after = (np.array(places, dtype=np.int64) for places in (old, fresh))
            estimates["difference"] = unpaired(sample.figures, before, after, how)
        figures = by_figure(estimates)
        rows += [
            (sample.name, "tasks", len(old), len(fresh), None, len(clean)),
            *_rows(sample.name, figures, ("old", "fresh", "difference", "clean")),
        ]
        counts = {group: len(places) for group, places in groups.items()}
        undated = len(sample.tasks) - len(is_fresh)
        data[sample.name] = {"tasks": {**counts, "undated": undated}, "figures": as_json(figures)}
    undated = sum(aged["tasks"]["undated"] for aged in data.values())
    note = "Difference: fresh minus old, two independent samples. Clean: fresh, without recognised answers. "
    if undated:
        are = "is" if undated == 1 else "are"
        note += f"{amount(undated, 'task has', 'tasks have')} no date and {are} in neither."
    else:
        note += "Every task has a date."
    table = Table(("run", "figure", "old", "fresh", "fresh - old", "clean"), tuple(rows), note=note)
    return Section(f"Before and after {cutoff:%Y-%m-%d}", tables=(table,), data={"cutoff": data})
