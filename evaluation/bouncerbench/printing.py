"""Scores as tables in a terminal, beside the paper's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from evaluation.bouncerbench import paper
from evaluation.bouncerbench.compare import Comparison, used_tools
from evaluation.bouncerbench.metrics import Metrics
from evaluation.bouncerbench.operating import Point
from evaluation.bouncerbench.tasks import INPUT, Benchmark
from evaluation.report.terminal import new_table, short, wide_console
from evaluation.statistics import Estimate


def print_scores(benchmark: Benchmark, scored: Mapping[str, Metrics], points: Sequence[Point]) -> None:
    """The metrics, the counts behind them, the paper's rows, and what moving the line would do."""
    console = wide_console()
    if len(scored) == 1:
        console.print(_figures(benchmark, *next(iter(scored.items()))))
    console.print(_scores(benchmark, scored))
    for name, metrics in scored.items():
        console.print(f"{short(name)}: {tally_line(metrics)}")
    if any(metrics.value("o_score") is None for metrics in scored.values()) and benchmark != INPUT:
        console.print("O-Score is not defined: the share of passing tests is not known for every wrong patch")
    if points:
        console.print(_points(points))


def print_comparison(before: str, found: Comparison) -> None:
    """What flipped since ``before``, and whether that is more than chance (IV.E)."""
    console = wide_console()
    console.print(
        f"against {before}: {len(found.flips)} flips on {found.tasks} tasks that both answered, "
        f"McNemar's exact test p = {found.p_value:.3g}"
    )
    for name, flips in (("corrected", found.corrections), ("now wrong", found.mistakes)):
        looked = used_tools(flips)
        console.print(f"{name}: {len(flips)}" + ("" if looked is None else f", {looked} of them with tool calls"))
    table = new_table("figure", "difference")
    for figure, estimate in found.differences.items():
        if figure in FIGURES:
            title, is_share = FIGURES[figure]
            table.add_row(title, (percent if is_share else number)(estimate))
    console.print(table)


def tally_line(metrics: Metrics) -> str:
    """How tasks and answers met, in words."""
    tally = metrics.tally
    parts = [
        f"{metrics.n} of {tally.tasks} tasks scored",
        f"{tally.answered} answered",
        f"{tally.missing} missing",
    ]
    if tally.missing:
        parts[-1] += f" ({_MISSING[metrics.missing_counts_as]})"
    if 0 < metrics.auc_tasks < metrics.n:
        parts.append(f"AUC over the {metrics.auc_tasks} that can be ranked")
    if tally.errors:
        parts.append(f"{tally.errors} errors")
    if tally.unlabelled:
        parts.append(f"{tally.unlabelled} tasks of unknown truth not scored: a part, no BouncerBench score")
    if tally.unknown:
        parts.append(f"{tally.unknown} answers to other instances, ignored")
    return ", ".join(parts)


_MISSING = {"count": "counted as never right", "accept": "counted as passes", "exclude": "left out"}


#: Figure -> what it is called, and whether it is a share that is shown in percent.
FIGURES: dict[str, tuple[str, bool]] = {
    "f_m": ("F_m", False),
    "i_score": ("I-Score", False),
    "o_score": ("O-Score", False),
    "r_b": ("R_b %", True),
    "fnr_a": ("FNR_a %", True),
    "fpr_a": ("FPR_a %", True),
    "precision_bounce": ("precision, bounce %", True),
    "f_bounce": ("F, bounce", False),
    "precision_accept": ("precision, accept %", True),
    "recall_accept": ("recall, accept %", True),
    "f_accept": ("F, accept", False),
    "raw_agreement": ("agreement with annotators %", True),
    "cohen_kappa": ("Cohen's kappa", False),
    "spearman_rho": ("Spearman's rho", False),
    "auc": ("AUC (of the probability)", False),
    "auc_of_label": ("AUC (of the label)", False),
}


def _figures(benchmark: Benchmark, name: str, metrics: Metrics) -> Table:
    """Every figure of one model with its interval."""
    table = new_table(short(name), "value", "95 % interval")
    for figure, (title, is_share) in FIGURES.items():
        if figure in metrics.estimates:
            value, _, interval = (percent if is_share else number)(metrics.estimates[figure]).partition(" ")
            table.add_row(title, value, interval)
    return table


def _scores(benchmark: Benchmark, scored: Mapping[str, Metrics]) -> Table:
    """One line a model, and the paper's lines below."""
    agreements = ("agree %", "kappa", "rho") if benchmark == INPUT else ()
    table = new_table("model", "F_m", score_name(benchmark), "R_b %", "FNR_a %", "AUC", *agreements)
    for name, metrics in scored.items():
        value = metrics.value
        auc = value("auc") if "auc" in metrics.estimates else value("auc_of_label")
        table.add_row(
            short(name),
            *map(_number, (value("f_m"), value("i_score" if benchmark == INPUT else "o_score"))),
            *map(_percent, (value("r_b"), value("fnr_a"))),
            _number(auc),
            *_agreement(benchmark, metrics),
        )
    table.add_section()
    table.add_row(f"the paper, {paper.TASKS[benchmark][0]:,} tasks", style="dim")
    for row in paper.ROWS[benchmark]:
        agreement = paper.AGREEMENT.get(row.model) if benchmark == INPUT else None
        agreed = () if agreement is None else (_percent(agreement[0]), *map(str, agreement[1:]))
        rates = (_percent(row.r_b), _percent(row.fnr_a))
        table.add_row(row.model, _number(row.f_m), _number(row.score), *rates, "", *agreed, style="dim")
    return table


def _agreement(benchmark: Benchmark, metrics: Metrics) -> tuple[str, ...]:
    if benchmark != INPUT:
        return ()
    value = metrics.value
    return (_percent(value("raw_agreement")), _number(value("cohen_kappa")), _number(value("spearman_rho")))


def _number(value: float | None) -> str:
    return number(Estimate(value))


def _percent(value: float | None) -> str:
    return percent(Estimate(value))


def _points(points: Sequence[Point]) -> Table:
    table = new_table("line", "F_m", "R_b %", "FNR_a %", "bounced %", "wrong passed %")
    for point in points:
        table.add_row(
            point.name + (" (paper)" if point.is_papers else ""),
            _number(point.metrics.value("f_m")),
            *map(_percent, (point.metrics.value("r_b"), point.metrics.value("fnr_a"))),
            *map(_percent, (point.bounced, point.wrong_share_passed)),
        )
    return table


def score_name(benchmark: Benchmark) -> str:
    return "I-Score" if benchmark == INPUT else "O-Score"


def number(estimate: Estimate | None) -> str:
    """``0.584 [0.552, 0.616]``; a dash where the figure is not defined."""
    return _written(estimate, 1.0, 3)


def percent(estimate: Estimate | None) -> str:
    """A share in percent with its interval."""
    return _written(estimate, 100.0, 1)


def _written(estimate: Estimate | None, scale: float, digits: int) -> str:
    if estimate is None or estimate.value is None:
        return "–"
    text = f"{scale * estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{scale * estimate.low:.{digits}f}, {scale * estimate.high:.{digits}f}]"
