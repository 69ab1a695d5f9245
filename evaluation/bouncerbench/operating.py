"""What moving the line costs: operating points, and the risk-coverage curve behind them.

Ranking quality and the place of the line are two things. AUC and this curve show the first, the table of points
the second: it is the maintainer's choice (``bounce_at``, ``bounce_above``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from evaluation.benchmark import Missing
from evaluation.bouncerbench.answers import PAPER_LINE, Answer, Line
from evaluation.bouncerbench.metrics import Metrics, score
from evaluation.bouncerbench.tasks import LABELS, InputTask, Kind, OutputTask
from evaluation.statistics import Estimate, wilson

Tasks = Sequence[InputTask | OutputTask]

#: Percent; beside the labels, which are always listed.
THRESHOLDS = (10, 20, 30, 40, 50, 60, 70, 80, 90)


@dataclass(frozen=True)
class Point:
    """One place for the line."""

    name: str
    metrics: Metrics
    bounced: float
    wrong_share_passed: float | None
    is_papers: bool = False


def operating_points(
    benchmark: Kind, tasks: Tasks, answers: Mapping[str, Answer], missing: Missing = "count"
) -> list[Point]:
    """The figures at every label, and at every tenth percent where all answers carry a probability."""
    points: list[Point] = []
    if any(answer.level is not None for answer in answers.values()):
        names = list(LABELS[benchmark])
        points += [
            _point(f"at {names[level]}", Line(level), benchmark, tasks, answers, missing) for level in (1, 2, 3)
        ]
    answered = [answer for answer in answers.values() if answer.bounce is not None]
    if answered and all(answer.p_bounce is not None for answer in answered):
        points += [
            _point(f"above {above} %", Line(PAPER_LINE, above), benchmark, tasks, answers, missing)
            for above in THRESHOLDS
        ]
    return points


def redrawn(answers: Mapping[str, Answer], line: Line) -> dict[str, Answer]:
    """The same answers at another line; answers without a verdict stay so."""
    return {
        identity: answer
        if answer.bounce is None
        else answer.model_copy(update={"bounce": line.bounces(answer.level, answer.p_bounce)})
        for identity, answer in answers.items()
    }


def _point(
    name: str, line: Line, benchmark: Kind, tasks: Tasks, answers: Mapping[str, Answer], missing: Missing
) -> Point:
    metrics = score(benchmark, tasks, redrawn(answers, line), missing, replicates=0)
    counts = metrics.counts
    bounced = counts["tp_bounce"] + counts["fp_bounce"]
    passed = counts["fn_bounce"] + counts["tn_bounce"]
    return Point(
        name=name,
        metrics=metrics,
        bounced=bounced / (bounced + passed) if bounced + passed else 0.0,
        wrong_share_passed=counts["fn_bounce"] / passed if passed else None,
        is_papers=line == Line(),
    )


@dataclass(frozen=True)
class RiskCoverage:
    """``coverage[i]`` of the subjects let through, best first, of which ``risk[i]`` should have been bounced."""

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    area: float
    by: str


def risk_coverage(tasks: Tasks, answers: Mapping[str, Answer]) -> RiskCoverage | None:
    """The curve, one point per distinct score; ``area`` is the mean risk over all coverages (AURC).

    Subjects of equal score are let through in random order, so the area takes the expected risk among them.
    Scores are probabilities where all answers have one, else severities of labels; None without either, or
    without a task whose truth is known. Tasks without an answer are left out.
    """
    found = [(answers[task.instance_id], task.bounce) for task in tasks if task.instance_id in answers]
    known = [(answer, truth) for answer, truth in found if truth is not None and answer.bounce is not None]
    by_probability = all(answer.p_bounce is not None for answer, _ in known)
    scored = [(answer.p_bounce if by_probability else answer.level, truth) for answer, truth in known]
    ranked = sorted((score, truth) for score, truth in scored if score is not None)
    if not ranked or len(ranked) < len(scored):
        return None
    coverage: list[float] = []
    risk: list[float] = []
    passed = wrong = 0
    area = 0.0
    for _, group in groupby(ranked, key=lambda each: each[0]):
        truths = [truth for _, truth in group]
        share = sum(truths) / len(truths)
        area += sum((wrong + step * share) / (passed + step) for step in range(1, len(truths) + 1))
        passed, wrong = passed + len(truths), wrong + sum(truths)
        coverage.append(passed / len(ranked))
        risk.append(wrong / passed)
    by = "probability" if by_probability else "label"
    return RiskCoverage(tuple(coverage), tuple(risk), area / len(ranked), by)


#: Upper ends of the bins of figures 2 and 3, inclusive.
ISSUE_WORDS = (100, 200, 500)
PATCH_CHARACTERS = (1000, 2500)


@dataclass(frozen=True)
class Bin:
    """The tasks of one range of lengths."""

    name: str
    tasks: int
    to_bounce: int
    true_positive_rate: Estimate
    false_positive_rate: Estimate


def by_length(
    tasks: Sequence[InputTask | OutputTask], answers: Mapping[str, Answer], edges: Sequence[int]
) -> list[Bin]:
    """Rates per bin over the tasks with a known truth and a text; a missing answer is no bounce.

    The true positive rate is the bounced share of what should bounce, the false positive rate that of what
    should not; each with its Wilson interval.
    """
    cells = [[0, 0, 0, 0] for _ in range(len(edges) + 1)]
    for task in tasks:
        size = length(task)
        if task.bounce is None or size is None:
            continue
        answer = answers.get(task.instance_id)
        bounced = answer is not None and answer.bounce is True
        index = next((place for place, edge in enumerate(edges) if size <= edge), len(edges))
        cells[index][2 * task.bounce + bounced] += 1
    return [
        Bin(
            name=name,
            tasks=kept + wrongly + missed + caught,
            to_bounce=missed + caught,
            true_positive_rate=wilson(caught, missed + caught),
            false_positive_rate=wilson(wrongly, kept + wrongly),
        )
        for name, (kept, wrongly, missed, caught) in zip(_names(edges), cells, strict=True)
    ]


def length(task: InputTask | OutputTask) -> int | None:
    """Words of an issue, characters of a patch; None where the text is not at hand."""
    if isinstance(task, OutputTask):
        return None if task.patch is None else len(task.patch)
    return None if task.problem_statement is None else len(task.problem_statement.split())


def _names(edges: Sequence[int]) -> list[str]:
    starts = [None, *(edge + 1 for edge in edges)]
    middle = [f"≤ {end}" if start is None else f"{start}–{end}" for start, end in zip(starts, edges, strict=False)]
    return [*middle, f"> {edges[-1]}"]
