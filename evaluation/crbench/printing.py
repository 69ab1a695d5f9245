"""Tables in a terminal, beside the paper's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from bot.core.disclaimer import caveat
from evaluation.crbench import paper
from evaluation.crbench.dataset import PAPER, Averages, Statistics
from evaluation.crbench.judged import Scored
from evaluation.crbench.metrics import by_kind
from evaluation.report.terminal import new_table, wide_console
from evaluation.statistics import Estimate

#: Figure -> what it is called, and whether it is a share that is shown in percent.
FIGURES: dict[str, tuple[str, bool]] = {
    "recall": ("recall % (equation 2)", True),
    "recall_per_bug": ("recall per bug %", True),
    "precision": ("precision %", True),
    "f1": ("F1 %", True),
    "f1_per_bug": ("F1 per bug %", True),
    "usefulness": ("usefulness %", True),
    "snr": ("signal-to-noise ratio", False),
    "comments_per_pull": ("comments per pull request", False),
}


def print_statistics(name: str, found: Statistics) -> None:
    """Averages beside the paper's Table 3, then shares and reasons."""
    console = wide_console(stderr=True)
    table = new_table("data set", "tasks", "lines fixed", "comments", "description length")
    for title, row in {name: found.averages, **PAPER}.items():
        table.add_row(title, str(row.tasks), *_cells(row), style="" if title == name else "dim")
    console.print(table)
    for title, counts in (
        ("category", found.categories),
        ("impact", found.impacts),
        ("severity", found.severities),
        ("discarded", found.discarded),
    ):
        if counts:
            console.print(f"{title}: " + ", ".join(f"{what} {count}" for what, count in counts.items()))


def print_scores(runs: Sequence[Scored], missing: str) -> None:
    """One line a run with the paper's lines below, then every figure with its interval, then bugs by kind."""
    console = wide_console()
    table = new_table("", "recall %", "precision %", "F1 %", "useful %", "SNR", "per bug %", "comments")
    for run in runs:
        table.add_row(run.name, *scores_row(run.metrics.estimates))
    table.add_section()
    for row in paper.ROWS:
        cells = [f"{100 * share:.2f}" for share in (row.recall, row.precision, row.f1, row.usefulness)]
        table.add_row(
            f"{row.name} (paper)", *cells, f"{row.snr:.2f}", "", f"{row.comments_per_pull:.2f}", style="dim"
        )
    console.print(table)
    for run in runs:
        _print_details(console, run, missing)


def scores_row(estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    """The paper's figures, then recall per bug and comments per pull request."""
    shares = [_percent(estimates[name]) for name in ("recall", "precision", "f1", "usefulness")]
    per_bug, comments = _percent(estimates["recall_per_bug"]), _number(estimates["comments_per_pull"])
    return (*shares, _number(estimates["snr"]), per_bug, comments)


def counted_line(run: Scored, missing: str) -> str:
    """The sums behind the figures, in words."""
    counted = run.metrics.counted
    parts = [
        f"{counted.bugs} bugs in {counted.tasks} pull requests, {counted.bugs_found} of them found",
        f"{counted.comments} comments: {counted.hits} bug hits, {counted.valid} valid, {counted.noise} noise",
    ]
    if counted.unjudged:
        parts.append(f"{counted.unjudged} that no judge could place (in no class, in every denominator)")
    if run.unanswered:
        fate = "their bugs count as not found" if missing != "exclude" else "left out"
        parts.append(f"{run.unanswered} tasks without a usable answer ({fate})")
    return "; ".join(parts)


def judges_line(run: Scored) -> str:
    """Who judged, what that is worth, how far they agree, and what it cost."""
    facts = run.facts
    text = f"judged by {', '.join(facts.judges)}"
    if facts.draws > 1:
        text += f", {facts.draws} draws each"
    if len(facts.judges) * facts.draws > 1:
        kappa = "not defined" if facts.agreement is None else f"{facts.agreement:.3f}"
        text += f"; Fleiss' kappa {kappa}"
    text += f"; {facts.usage.calls} questions to judges"
    if facts.usage.cost_usd is not None:
        text += f", {facts.usage.cost_usd:.4f} USD"
    warnings = dict.fromkeys(warning for judge in facts.judges if (warning := caveat(judge)))
    return "; ".join([text, *warnings])


def interval(estimate: Estimate, scale: float = 100.0, digits: int = 1) -> str:
    """``27.0 [20.1, 34.2]``; a dash where the figure is not defined."""
    if estimate.value is None:
        return "–"
    text = f"{scale * estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{scale * estimate.low:.{digits}f}, {scale * estimate.high:.{digits}f}]"


def _print_details(console: Console, run: Scored, missing: str) -> None:
    table = new_table(run.name, "value [95 % interval]")
    for figure, (title, is_share) in FIGURES.items():
        estimate = run.metrics.estimates[figure]
        table.add_row(title, interval(estimate) if is_share else interval(estimate, 1.0, 2))
    console.print(table)
    console.print(f"{counted_line(run, missing)}; {judges_line(run)}")
    if run.metrics.value("snr") is None and run.metrics.counted.comments:
        console.print("SNR is not defined: no comment was judged to be noise")
    for dimension in ("category", "impact", "severity"):
        shares = by_kind(run.tasks, run.counted, dimension)
        if shares:
            table = new_table(dimension, "bugs", "found % [95 % interval]")
            for share in shares:
                table.add_row(share.kind, str(share.bugs), interval(share.found))
            console.print(table)


def _cells(row: Averages) -> tuple[str, ...]:
    comments = "–" if row.comments is None else f"{row.comments:.2f}"
    if row.comments is not None and row.comments_known < row.tasks:
        comments += f" (of {row.comments_known})"
    return (_mean(row.lines_fixed), comments, _mean(row.description_length))


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _percent(estimate: Estimate) -> str:
    return interval(Estimate(estimate.value), digits=2)


def _number(estimate: Estimate) -> str:
    return interval(Estimate(estimate.value), 1.0, 2)
