"""The scores of a reviewer's comments: CR-Bench, section 5, equations 2 to 6, with bootstrap intervals
over tasks.

    recall              bug hits / bugs             (2)  a bug that is hit twice counts twice: it can pass 1
    recall_per_bug      bugs hit / bugs                  a bug that is hit twice counts once
    precision           bug hits / comments         (3)
    f1                  of precision and recall     (4)
    f1_per_bug          of precision and recall_per_bug
    usefulness          (hits + valid) / comments   (5)
    snr                 (hits + valid) / noise      (6)  not defined without noise: None, never infinity
    comments_per_pull   comments / tasks

Every comment counts in the denominators, also one that no judge could place: a judge that fails lowers a
figure, it never raises one, and it adds nothing to the noise. A task that the reviewer failed on has no
comments and its bug counts as not found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from pydantic import Field

from bot.core.frozen import Frozen
from bot.features.shared.findings import Severity
from evaluation.crbench.judge import Judgement, ReviewComment
from evaluation.crbench.task import Kind, Known, Level, PaperSeverity, ReviewTask
from evaluation.statistics import USUAL, Array, Counts, Estimate, Resampling, bootstrap, ratio, wilson


@dataclass(frozen=True)
class Tally:
    """How the comments on one task were judged."""

    task_id: str
    bugs: int
    comments: int = 0
    hits: int = 0
    valid: int = 0
    noise: int = 0
    bugs_hit: frozenset[int] = frozenset()

    @property
    def unjudged(self) -> int:
        """Comments that no judge could place."""
        return self.comments - self.hits - self.valid - self.noise


@dataclass(frozen=True)
class Metrics:
    """Figures with their 95 % intervals, and the sums behind them: of tasks, bugs, comments, hits and so on."""

    sums: dict[str, int]
    estimates: dict[str, Estimate]

    def value(self, figure: str) -> float | None:
        return self.estimates[figure].value


def tallies(
    tasks: Iterable[ReviewTask], comments: Iterable[ReviewComment], judgements: Mapping[str, Judgement]
) -> list[Tally]:
    """One tally a task, in their order; comments on other tasks are not counted."""
    by_task: dict[str, list[Judgement | None]] = {}
    for comment in comments:
        by_task.setdefault(comment.task_id, []).append(judgements.get(comment.key))
    rows: list[Tally] = []
    for task in tasks:
        every = by_task.get(task.instance_id, [])
        labels = Counter(verdict.label for verdict in every if verdict is not None)
        row = Tally(
            task_id=task.instance_id,
            bugs=len(task.bugs),
            comments=len(every),
            hits=labels["BUG_HIT"],
            valid=labels["VALID_SUGGESTION"],
            noise=labels["NOISE"],
            bugs_hit=frozenset(verdict.bug for verdict in every if verdict and verdict.bug is not None),
        )
        rows.append(row)
    return rows


def score(tallies: Sequence[Tally], how: Resampling = USUAL) -> Metrics:
    totals = {name: int(values.sum()) for name, values in _columns(tallies).items()}
    return Metrics({"tasks": len(tallies), **totals}, bootstrap(figures(tallies), len(tallies), how))


def figures(tallies: Sequence[Tally]) -> Callable[[Counts], dict[str, Array]]:
    """All figures as functions of resampled task indices; see ``statistics.bootstrap``."""
    columns = _columns(tallies)

    def on(draws: Counts) -> dict[str, Array]:
        sums = {name: values[draws].sum(-1) for name, values in columns.items()}
        useful = sums["hits"] + sums["valid"]
        recall, per_bug = ratio(sums["hits"], sums["bugs"]), ratio(sums["bugs_found"], sums["bugs"])
        precision = ratio(sums["hits"], sums["comments"])
        return {
            "recall": recall,
            "recall_per_bug": per_bug,
            "precision": precision,
            "f1": harmonic(precision, recall),
            "f1_per_bug": harmonic(precision, per_bug),
            "usefulness": ratio(useful, sums["comments"]),
            "snr": ratio(useful, sums["noise"]),
            "comments_per_pull": ratio(sums["comments"], draws.shape[-1]),
        }

    return on


def _columns(tallies: Sequence[Tally]) -> dict[str, Counts]:
    columns = {
        name: np.array([getattr(tally, name) for tally in tallies], dtype=np.int64)
        for name in ("bugs", "comments", "hits", "valid", "noise", "unjudged")
    }
    return {**columns, "bugs_found": np.array([len(tally.bugs_hit) for tally in tallies], dtype=np.int64)}


#: Kinds that have an order of their own; those of other dimensions are sorted by how often they occur.
ORDER: dict[str, Sequence[str]] = {
    "severity": [severity.value for severity in reversed(Severity)],
    "paper_severity": [severity.value for severity in reversed(PaperSeverity)],
    "level": get_args(Level),
    "kind": get_args(Kind),
}


def kinds_of(tasks: Iterable[ReviewTask], dimension: str) -> dict[str, int]:
    """How many bugs there are of each kind in a dimension, in the order in which they are shown."""
    counts = Counter(kind for task in tasks for bug in task.bugs if (kind := kind_of(task, bug, dimension)))
    order = ORDER.get(dimension, ())
    ranks = {kind: order.index(kind) if kind in order else -count for kind, count in counts.items()}
    return {kind: counts[kind] for kind in sorted(counts, key=lambda kind: (ranks[kind], kind))}


def kind_of(task: ReviewTask, bug: Known, dimension: str) -> str:
    """The kind of a bug in a dimension; empty if it is not known."""
    return str(getattr(task if dimension == "language" else bug, dimension) or "")


@dataclass(frozen=True)
class Share:
    """How many bugs of one kind were found."""

    kind: str
    bugs: int
    recall: Estimate


def by_kind(tasks: Sequence[ReviewTask], tallies: Sequence[Tally], dimension: str) -> list[Share]:
    """Bugs found by ``category``, ``impact``, ``severity``, ... with Wilson intervals."""
    hits: Counter[str] = Counter()
    for task, of_task in zip(tasks, tallies, strict=True):
        hits.update(kind_of(task, task.bugs[index], dimension) for index in of_task.bugs_hit)
    return [Share(kind, count, wilson(hits[kind], count)) for kind, count in kinds_of(tasks, dimension).items()]


def harmonic(precision: Array, recall: Array) -> Array:
    """The F1 of precision and recall; 0 if both are 0, NaN if one is not defined."""
    both = precision + recall
    return np.where(both == 0, 0.0, ratio(2 * precision * recall, both))


class Averages(Frozen):
    """Means over the kept tasks; None if nothing is known to average."""

    tasks: int
    lines_fixed: float | None = Field(description="lines that the fix removes and adds, of tasks with a fix")
    comments: float | None = Field(description="comments that a pull request got, if that is known")
    comments_known: int = Field(description="for how many tasks that is")
    description_length: float | None = Field(description="characters of the pull request's description")


#: CR-Bench, Table 3, and the sizes of section 7.1.
PAPER = {
    "CR-Bench": Averages(
        tasks=584, lines_fixed=10.28, comments=41.03, comments_known=584, description_length=906.63
    ),
    "CR-Bench-verified": Averages(
        tasks=174, lines_fixed=8.69, comments=35.83, comments_known=174, description_length=893.59
    ),
}


@dataclass(frozen=True)
class PaperRow:
    """One agent with one model (CR-Bench, Table 4), as shares."""

    name: str
    recall: float
    precision: float
    f1: float
    usefulness: float
    snr: float

    @property
    def comments_per_pull(self) -> float:
        """Not printed in the paper; it follows from equations 2 and 3 with one bug a task."""
        return self.recall / self.precision


#: Table 4: 174 tasks of CR-Bench-verified, judged by claude-sonnet-4.5. Our tasks are built anew, so the rows are
#: neighbours, not targets.
PAPER_ROWS = (
    PaperRow("single-shot, GPT-5.2", 0.2701, 0.0356, 0.0630, 0.8363, 5.11),
    PaperRow("single-shot, GPT-5-mini", 0.1839, 0.0351, 0.0590, 0.7429, 2.89),
    PaperRow("reflexion, GPT-5.2", 0.3276, 0.0510, 0.0883, 0.6610, 1.95),
    PaperRow("reflexion, GPT-5-mini", 0.2759, 0.0319, 0.0572, 0.4772, 0.91),
)


def averages(tasks: Sequence[ReviewTask]) -> Averages:
    """The row of Table 3."""
    pulls = [task.pull for task in tasks if task.pull is not None]
    comments = [pull.comments for pull in pulls if pull.comments is not None]
    return Averages(
        tasks=len(tasks),
        lines_fixed=_mean([task.fixed_lines for task in tasks if task.fixed]),
        comments=_mean(comments),
        comments_known=len(comments),
        description_length=_mean([len(pull.body) for pull in pulls]),
    )


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None
