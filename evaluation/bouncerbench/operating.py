"""The effect of moving the threshold: operating points, and the risk-coverage curve behind them.

Ranking quality and the place of the threshold are two things. AUC and this curve show the first, the table of
points the second: it is the maintainer's choice (``bounce_at``, ``bounce_above``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from evaluation.benchmark import Missing
from evaluation.bouncerbench.answers import PAPER_LINE, Answer, Line
from evaluation.bouncerbench.metrics import Metrics, Scored, Tasks, score, title_of
from evaluation.bouncerbench.tasks import INPUT, LABEL_NAMES, InputTask, Kind, OutputTask
from evaluation.report.figures import Curve, Series, bars, curves
from evaluation.report.page import Cell, Figure, Section, Table, percentage
from evaluation.statistics import NO_INTERVALS, Estimate, wilson

#: Percent; beside the labels, which are always listed.
THRESHOLDS = (10, 20, 30, 40, 50, 60, 70, 80, 90)


@dataclass(frozen=True)
class Point:
    """One place for the line."""

    name: str
    metrics: Metrics
    is_papers: bool

    @property
    def bounced(self) -> float | None:
        counts = self.metrics.counts
        return (counts["tp_bounce"] + counts["fp_bounce"]) / self.metrics.n if self.metrics.n else None

    @property
    def wrong_share_passed(self) -> float | None:
        counts = self.metrics.counts
        passed = counts["fn_bounce"] + counts["tn_bounce"]
        return counts["fn_bounce"] / passed if passed else None


def operating_points(
    benchmark: Kind, tasks: Tasks, answers: Mapping[str, Answer], missing: Missing = "count"
) -> list[Point]:
    """The figures at every label and at every tenth percent, as far as every answer has a label or a probability.

    If a part of the answers had none, rows would be over different tasks.
    """
    lines: dict[str, Line] = {}
    usable = [answer for answer in answers.values() if answer.bounce is not None]
    if usable and all(answer.level is not None for answer in usable):
        lines |= {f"at {LABEL_NAMES[benchmark][level]}": Line(level) for level in (1, 2, 3)}
    if usable and all(answer.p_bounce is not None for answer in usable):
        lines |= {f"above {above} %": Line(PAPER_LINE, above) for above in THRESHOLDS}
    return [
        Point(name, score(benchmark, tasks, redrawn(answers, line), missing, NO_INTERVALS), line == Line())
        for name, line in lines.items()
    ]


def redrawn(answers: Mapping[str, Answer], line: Line) -> dict[str, Answer]:
    """The same answers at another line; answers without a verdict stay so."""
    return {
        identity: answer
        if answer.bounce is None
        else answer.model_copy(update={"bounce": line.bounces(answer.level, answer.p_bounce)})
        for identity, answer in answers.items()
    }


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
    Scores are probabilities if all answers have one, else severities of labels; None without either, or
    without a task whose truth is known. Tasks without an answer are left out.
    """
    pairs = [(answers[task.instance_id], task.bounce) for task in tasks if task.instance_id in answers]
    labelled = [(answer, truth) for answer, truth in pairs if truth is not None and answer.bounce is not None]
    by_probability = all(answer.p_bounce is not None for answer, _ in labelled)
    scored = [(answer.p_bounce if by_probability else answer.level, truth) for answer, truth in labelled]
    ranked = sorted((score, truth) for score, truth in scored if score is not None)
    if not ranked or len(ranked) < len(scored):
        return None
    coverage: list[float] = []
    risk: list[float] = []
    passed = wrong = 0
    area = 0.0
    for _, group in groupby(ranked, key=lambda entry: entry[0]):
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


def by_length(tasks: Tasks, answers: Mapping[str, Answer], edges: Sequence[int]) -> list[Bin]:
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
    starts = [None, *(edge + 1 for edge in edges)]
    names = [f"≤ {end}" if start is None else f"{start}–{end}" for start, end in zip(starts, edges, strict=False)]
    names.append(f"> {edges[-1]}")
    return [
        Bin(
            name=name,
            tasks=let_through + wrongly + missed + caught,
            to_bounce=missed + caught,
            true_positive_rate=wilson(caught, missed + caught),
            false_positive_rate=wilson(wrongly, let_through + wrongly),
        )
        for name, (let_through, wrongly, missed, caught) in zip(names, cells, strict=True)
    ]


def length(task: InputTask | OutputTask) -> int | None:
    """Words of an issue, characters of a patch; None if the text is not at hand."""
    if isinstance(task, OutputTask):
        return None if task.patch is None else len(task.patch)
    return None if task.problem_statement is None else len(task.problem_statement.split())


def points_of(scored: Scored) -> list[Point]:
    return operating_points(scored.benchmark, scored.tasks, scored.answers, scored.metrics.missing_counts_as)


def lines_section(benchmark: Kind, runs: Sequence[Scored]) -> Section:
    header = ("run", "line", "F_m", "R_b %", "FNR_a %", "bounced %", "wrong among passed %")
    rows: list[tuple[Cell, ...]] = []
    risk_curves: list[Curve] = []
    areas: list[str] = []
    for run in runs:
        for point in points_of(run):
            value = point.metrics.value
            rates = (value("r_b"), value("fnr_a"), point.bounced, point.wrong_share_passed)
            name = point.name + (" (paper)" if point.is_papers else "")
            rows.append((run.name, name, value("f_m"), *map(percentage, rates)))
        curve = risk_coverage(run.tasks, run.answers)
        if curve is not None:
            # Among equals the order is random, so the risk is the same from the first of them on.
            risk_curves.append(Curve(run.name, (0.0, *curve.coverage), (curve.risk[0], *curve.risk)))
            areas.append(f"{run.name} {curve.area:.3f} (by {curve.by})")
    subject = "issues" if benchmark == INPUT else "patches"
    figures: tuple[Figure, ...] = ()
    if risk_curves:
        draw = partial(
            curves,
            risk_curves,
            xlabel=f"share of {subject} let through",
            ylabel=f"of these, wrongly ({subject} to bounce)",
        )
        caption = (
            f"Risk over coverage: how many of the {subject} that are let through, best first, should have been "
            f"bounced. Area under the curve (lower is better): {'; '.join(areas)}."
        )
        figures = (Figure(draw, caption),)
    table = Table(
        header,
        tuple(rows),
        title="Where to draw the line",
        note="Bounced: of all tasks, those without an answer included. The answers are the same in all rows.",
    )
    return Section(f"{title_of(benchmark)}: where to draw the line", tables=(table,), figures=figures)


def lengths_section(benchmark: Kind, runs: Sequence[Scored]) -> Section | None:
    """Figures 2 and 3: rates by length of issue or patch, in the paper's bins; None if no text is at hand."""
    edges = ISSUE_WORDS if benchmark == INPUT else PATCH_CHARACTERS
    unit = "words of the issue" if benchmark == INPUT else "characters of the patch"
    number = 2 if benchmark == INPUT else 3
    binned = {run.name: by_length(run.tasks, run.answers, edges) for run in runs}
    first = next(iter(binned.values()))
    if not any(bin_.tasks for bin_ in first):
        return None
    header = ("run", unit, "tasks", "to bounce %", "true positives %", "false positives %")
    rows = tuple(
        (
            name,
            bin_.name,
            bin_.tasks,
            percentage(bin_.to_bounce / bin_.tasks if bin_.tasks else None),
            bin_.true_positive_rate.percent(),
            bin_.false_positive_rate.percent(),
        )
        for name, bins in binned.items()
        for bin_ in bins
    )
    note = f"by {unit}, in the bins of the paper's figure {number}, with 95 % Wilson intervals."
    table = Table(header, rows, title=f"Share bounced {note}")
    groups = [f"{bin_.name}\n(n = {bin_.tasks})" for bin_ in first]
    figures = []
    for subjects, rate in (("those to bounce", "true_positive_rate"), ("the others", "false_positive_rate")):
        series = [Series.of(name, [getattr(bin_, rate) for bin_ in bins]) for name, bins in binned.items()]
        draw = partial(bars, groups, series, ylabel="share bounced", xlabel=unit)
        figures.append(Figure(draw, f"Share bounced of {subjects} {note}"))
    return Section(f"{title_of(benchmark)}: by length", tables=(table,), figures=tuple(figures))
