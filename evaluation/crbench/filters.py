"""Recall over comments per pull request, as the thresholds of severity and confidence move.

The judgements of everything that was reported are enough: a filter only leaves comments out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from bot.features.review.doubt import upheld_from
from bot.features.review.filtering import AGREEMENT
from bot.features.shared.findings import Severity
from evaluation.crbench.judge import Judgement, ReviewComment
from evaluation.crbench.judged import Reviewing, Scored
from evaluation.crbench.martian import ToolScore
from evaluation.report.figures import Curve, Marks, curves
from evaluation.report.page import Cell, Figure, Section, Table, percentage

#: Least confidences that the table lists, percent; the curve has every one that occurs.
CONFIDENCES = (0, 25, 50, 75, 90)
_SETS_DIFFER = (
    "The tools of Martian's benchmark reviewed other pull requests, against other golden comments: their points "
    "show an order of magnitude, not a ranking against this reviewer."
)


@dataclass(frozen=True)
class Filter:
    """Comments of at least this severity and confidence are posted."""

    min_severity: Severity
    min_confidence: int

    def passes(self, comment: ReviewComment) -> bool:
        """Return True if the live reviewer would post the comment; what it did not say holds nothing back.

        A comment that depends on code that was not shown is posted only if it is nearly certain.
        """
        if comment.severity is not None and comment.severity.rank < self.min_severity.rank:
            return False
        if comment.confidence is None or comment.proof == "proven":
            return True
        minimum = upheld_from(self.min_confidence, depends=comment.depends)
        return comment.confidence + AGREEMENT * (comment.models - 1) >= minimum

    @property
    def settings(self) -> str:
        return f"review: {{min_severity: {self.min_severity}, min_confidence: {self.min_confidence}}}"


@dataclass(frozen=True)
class Point:
    """The comments that pass a filter, and the bugs that they find."""

    filter: Filter
    comments: int
    bugs: int
    comments_per_pull: float
    recall: float


def points(run: Scored, filters: Iterable[Filter]) -> Iterator[Point]:
    """Yield the point of each filter; nothing without tasks or bugs."""
    sums = run.metrics.sums
    if not sums["tasks"] or not sums["bugs"]:
        return
    for candidate in filters:
        passing = [judgement for comment, judgement in run.comments if candidate.passes(comment)]
        bugs = bugs_hit(passing)
        yield Point(candidate, len(passing), bugs, len(passing) / sums["tasks"], bugs / sums["bugs"])


def bugs_hit(judgements: Sequence[Judgement]) -> int:
    """Known bugs that some comment of these hits."""
    return len({(judgement.task_id, judgement.bug) for judgement in judgements if judgement.bug is not None})


def every_filter(run: Scored) -> list[Filter]:
    """All filters that tell the comments of a run apart."""
    confidences = {comment.confidence or 0 for comment, _ in run.comments} | set(CONFIDENCES)
    return [Filter(severity, confidence) for severity in Severity for confidence in sorted(confidences)]


def best(run: Scored, most_comments: float) -> Point | None:
    """The filter that finds most bugs with at most so many comments per pull request; of equals the quietest."""
    allowed = [point for point in points(run, every_filter(run)) if point.comments_per_pull <= most_comments]
    return max(allowed, key=lambda point: (point.bugs, -point.comments), default=None)


def thrown_away(run: Scored) -> str:
    """A sentence about what the run's own thresholds cost; empty if they are not known."""
    config = None if run.run is None else run.run.part("review", Reviewing)
    if config is None or config.min_severity is None:
        return ""
    own = Filter(config.min_severity, config.min_confidence)
    point = next(points(run, (own,)), None)
    if point is None:
        return ""
    bugs = bugs_hit([judgement for _, judgement in run.comments])
    shares = f"{percentage(point.recall)} of {percentage(bugs / run.metrics.sums['bugs'])} % of all"
    return (
        f"{run.name}: severity {own.min_severity} and {own.min_confidence} % confidence keep {point.bugs} of "
        f"the {bugs} bugs found ({shares}) and {point.comments} of {len(run.comments)} comments."
    )


def filters_section(runs: Sequence[Scored], tools: Sequence[ToolScore], most_comments: float | None) -> Section:
    """Recall over comments per pull request: the curves of the runs, and the points of known tools."""
    rows: list[tuple[Cell, ...]] = []
    sentences = [sentence for run in runs if (sentence := thrown_away(run))]
    best_by_run = {run.name: best(run, most_comments) for run in runs} if most_comments is not None else {}
    for run in runs:
        for severity in Severity:
            for point in points(run, (Filter(severity, confidence) for confidence in CONFIDENCES)):
                shares = (f"{point.comments_per_pull:.2f}", point.bugs, percentage(point.recall))
                rows.append((run.name, severity.value, f"{point.filter.min_confidence} %", *shares))
        if run.facts.scope == "posted":
            sentences.append(f"{run.name}: only posted comments were judged; --comments reported shows the rest.")
    for name, best_point in best_by_run.items():
        limit = f"at most {most_comments:g} comments per pull request"
        if best_point is None:
            sentences.append(f"{name}: no filter leaves {limit}.")
        else:
            result = f"finds {percentage(best_point.recall)} % with {best_point.comments_per_pull:.2f} comments"
            sentences.append(f"{name}: most bugs with {limit}: {best_point.filter.settings} {result}.")
    header = ("reviewer", "least severity", "least confidence", "comments per PR", "bugs found")
    tables = [Table((*header, "recall per bug %"), tuple(rows), title="Thresholds", folded=True)]
    if tools:
        tables.append(tools_table(tools, folded=True))
        sentences.append(_SETS_DIFFER)
    chosen_filters = {name: point and _as_json(point) for name, point in best_by_run.items()}
    data = {
        "filters": {run.name: [_as_json(point) for point in points(run, every_filter(run))] for run in runs},
        **({"chosen": chosen_filters} if best_by_run else {}),
        **({"tools": [tool.as_json() for tool in tools]} if tools else {}),
    }
    return Section("Comments and recall", tuple(sentences), tuple(tables), (_figure(runs, tools),), data)


def _figure(runs: Sequence[Scored], tools: Sequence[ToolScore]) -> Figure:
    lines: list[Curve] = []
    for run, severity in product(runs, Severity):
        of_severity = [item for item in every_filter(run) if item.min_severity == severity]
        path = sorted({(point.comments_per_pull, point.recall) for point in points(run, of_severity)})
        if path:
            x, y = [at for at, _ in path], [recall for _, recall in path]
            lines.append(Curve(f"{run.name}: {severity} and up", x, y))
    judges = list(dict.fromkeys(tool.judge for tool in tools))
    marks = [Marks(tool.tool, tool.comments_per_pull, tool.recall, judges.index(tool.judge)) for tool in tools]
    labels = {"xlabel": "comments per pull request", "ylabel": "recall per bug"}
    draw = partial(curves, lines, marks=marks, shapes=judges, right=None, **labels)
    caption = "Recall over comments per pull request, as the least severity and confidence of a comment rise."
    if tools:
        caption += f" Marks: the {len({tool.tool for tool in tools})} tools of Martian's benchmark, per judge."
    return Figure(draw, caption)


def _as_json(point: Point) -> dict[str, object]:
    return {
        "min_severity": point.filter.min_severity.value,
        "min_confidence": point.filter.min_confidence,
        "comments_per_pull": point.comments_per_pull,
        "recall_per_bug": point.recall,
    }


def tools_table(tools: Sequence[ToolScore], *, folded: bool = False) -> Table:
    """Recall, precision and comments of every tool by every judge."""
    rows = tuple(
        (tool.tool, tool.judge, tool.pulls, f"{tool.comments_per_pull:.2f}", percentage(tool.recall),
         percentage(tool.precision))
        for tool in sorted(tools, key=lambda tool: (tool.judge, -tool.recall))
    )  # fmt: skip
    header = ("tool", "judge", "pull requests", "comments per PR", "recall %", "precision %")
    return Table(header, rows, title="Tools of Martian's benchmark", quoted_from=0, folded=folded)
