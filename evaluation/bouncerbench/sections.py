"""BouncerBench's parts of a report: scores beside the paper's, lines, lengths, comparisons, the chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.bouncerbench import lengths, paper
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.chain import Chain
from evaluation.bouncerbench.compare import Comparison, used_tools
from evaluation.bouncerbench.lengths import Bin
from evaluation.bouncerbench.metrics import Metrics
from evaluation.bouncerbench.operating import operating_points, risk_coverage
from evaluation.bouncerbench.printing import FIGURES, number, percent, score_name, tally_line
from evaluation.bouncerbench.tasks import INPUT, Benchmark, InputTask, OutputTask
from evaluation.report.figures import Curve, Flow, Series, bars, curves, sankey
from evaluation.report.page import Cell, Figure, Section, Table
from evaluation.statistics import Estimate

Tasks = Sequence[InputTask | OutputTask]
#: Of the flips of a comparison, how many are listed.
LISTED = 40


@dataclass(frozen=True)
class Scored:
    """One run's answers with their figures."""

    name: str
    benchmark: Benchmark
    tasks: Tasks
    answers: Mapping[str, Answer]
    metrics: Metrics


def what(benchmark: Benchmark) -> str:
    return "Input bouncer" if benchmark == INPUT else "Output bouncer"


def scores_section(benchmark: Benchmark, runs: Sequence[Scored]) -> Section:
    """Table II or III with ours on top, then every figure with its interval."""
    score = "i_score" if benchmark == INPUT else "o_score"
    header = ("model", "tasks", "F_m", score_name(benchmark), "R_b %", "FNR_a %")
    ours: list[tuple[Cell, ...]] = [
        (
            run.name,
            run.metrics.n,
            number(run.metrics.estimates.get("f_m")),
            number(run.metrics.estimates.get(score)),
            percent(run.metrics.estimates.get("r_b")),
            percent(run.metrics.estimates.get("fnr_a")),
        )
        for run in runs
    ]
    published: list[tuple[Cell, ...]] = [
        (f"{row.model} (paper)", paper.TASKS[benchmark][0], row.f_m, row.score, _pct(row.r_b), _pct(row.fnr_a))
        for row in paper.ROWS[benchmark]
    ]
    beside = Table(
        header,
        (*ours, *published),
        title=f"Beside the paper's table {'II' if benchmark == INPUT else 'III'}",
        quoted_from=len(ours),
        note="In brackets: 95 % bootstrap intervals over tasks.",
    )
    known = [figure for figure in FIGURES if any(figure in run.metrics.estimates for run in runs)]
    every = Table(
        ("figure", *(run.name for run in runs)),
        tuple(
            (
                FIGURES[figure][0],
                *((percent if FIGURES[figure][1] else number)(run.metrics.estimates.get(figure)) for run in runs),
            )
            for figure in known
        ),
        title="Every figure",
        note=_agreement_note() if benchmark == INPUT else "",
    )
    paragraphs = tuple(f"{run.name}: {tally_line(run.metrics)}." for run in runs)
    data = {"scores": {run.name: run.metrics.as_json() for run in runs}}
    return Section(what(benchmark), paragraphs, (beside, every), data=data)


def _agreement_note() -> str:
    rows = [f"{model} {_pct(raw)} %, {kappa}, {rho}" for model, (raw, kappa, rho) in paper.AGREEMENT.items()]
    return "The paper's agreement, kappa and rho over 1,699 tasks: " + "; ".join(rows) + "."


def lines_section(benchmark: Benchmark, runs: Sequence[Scored]) -> Section:
    """Operating points and risk-coverage curves."""
    header = ("run", "line", "F_m", "R_b %", "FNR_a %", "bounced %", "wrong among passed %")
    rows: list[tuple[Cell, ...]] = []
    drawn: list[Curve] = []
    areas: list[str] = []
    for run in runs:
        for point in operating_points(benchmark, run.tasks, run.answers, run.metrics.missing_counts_as):
            value = point.metrics.value
            rates = (value("r_b"), value("fnr_a"), point.bounced, point.wrong_share_passed)
            name = point.name + (" (paper)" if point.is_papers else "")
            rows.append((run.name, name, value("f_m"), *map(_pct, rates)))
        curve = risk_coverage(run.tasks, run.answers)
        if curve is not None:
            # Among equals the order is random, so the risk is the same from the first of them on.
            drawn.append(Curve(run.name, (0.0, *curve.coverage), (curve.risk[0], *curve.risk)))
            areas.append(f"{run.name} {curve.area:.3f} (by {curve.by})")
    subject = "issues" if benchmark == INPUT else "patches"
    figures: tuple[Figure, ...] = ()
    if drawn:
        svg = curves(
            drawn, xlabel=f"share of {subject} let through", ylabel=f"of these, wrongly ({subject} to bounce)"
        )
        caption = (
            f"Risk over coverage: how many of the {subject} that are let through, best first, should have been "
            f"bounced. Area under the curve (lower is better): {'; '.join(areas)}."
        )
        figures = (Figure(svg, caption),)
    table = Table(header, tuple(rows), note="What each place for the line costs; the answers are the same.")
    return Section(f"{what(benchmark)}: where to draw the line", tables=(table,), figures=figures)


def lengths_section(benchmark: Benchmark, runs: Sequence[Scored]) -> Section | None:
    """Rates by length of issue or patch; None where no text is at hand."""
    edges = lengths.ISSUE_WORDS if benchmark == INPUT else lengths.PATCH_CHARACTERS
    unit = "words of the issue" if benchmark == INPUT else "characters of the patch"
    binned = {run.name: lengths.by_length(run.tasks, run.answers, edges) for run in runs}
    first = next(iter(binned.values()))
    if not any(each.tasks for each in first):
        return None
    header = ("run", unit, "tasks", "to bounce %", "true positives %", "false positives %")
    rows = tuple(
        (
            name,
            each.name,
            each.tasks,
            _pct(each.to_bounce / each.tasks if each.tasks else None),
            percent(each.true_positive_rate),
            percent(each.false_positive_rate),
        )
        for name, bins in binned.items()
        for each in bins
    )
    papers = "100, 200 and 500 words" if benchmark == INPUT else "1,000 and 2,500 characters"
    note = f"by {unit}, with 95 % Wilson intervals. The paper's bins are {papers}."
    figures = _length_figures(binned, unit, note)
    return Section(f"{what(benchmark)}: by length", tables=(Table(header, rows),), figures=figures)


def _length_figures(binned: Mapping[str, Sequence[Bin]], unit: str, note: str) -> tuple[Figure, ...]:
    """Both rates in one picture for one or two runs; for more, where bars would be hairs, in one each."""
    groups = [f"{each.name}\n(n = {each.tasks})" for each in next(iter(binned.values()))]
    right: list[Series] = []
    wrong: list[Series] = []
    for colour, (name, bins) in enumerate(binned.items()):
        hits = _series(f"{name}, of those to bounce", [each.true_positive_rate for each in bins])
        slips = _series(f"{name}, of the others", [each.false_positive_rate for each in bins])
        right.append(replace(hits, colour=colour))
        wrong.append(replace(slips, colour=colour, faded=True))
    if len(binned) > 2:
        pictures = [(right, "Share bounced of those to bounce"), (wrong, "Share bounced of the others")]
    else:
        pairs = [each for pair in zip(right, wrong, strict=True) for each in pair]
        pictures = [(pairs, "Share bounced")]
    return tuple(
        Figure(bars(groups, series, ylabel="share bounced", xlabel=unit), f"{shown} {note}")
        for series, shown in pictures
    )


def _series(name: str, estimates: Sequence[Estimate]) -> Series:
    errors = [None if each.low is None or each.high is None else (each.low, each.high) for each in estimates]
    return Series(name, [each.value for each in estimates], errors)


def comparison_section(first: Scored, second: Scored, found: Comparison) -> Section:
    """What flipped from the first run to the second, and whether the difference is more than chance."""
    odds = (
        f"Both right on {found.both_right:,}, both wrong on {found.both_wrong:,}, only {first.name} right on "
        f"{found.only_first_right:,}, only {second.name} right on {found.only_second_right:,} of {found.tasks:,} "
        f"tasks that both answered. McNemar's exact test: p = {found.p_value:.3g}."
    )
    kinds = [("corrected", found.corrections), ("now wrong", found.mistakes), ("all flips", list(found.flips))]
    share = len(found.flips)
    flips = Table(
        ("flips", "number", "of all flips %", "with tool calls"),
        tuple(
            (name, len(flips), _pct(len(flips) / share if share else None), used_tools(flips))
            for name, flips in kinds
        ),
        note="Tool calls of the second run; a dash where they were not recorded."
        + ("" if found.with_tools is None else f" Over all tasks: {found.with_tools} with at least one call."),
    )
    differences = Table(
        ("figure", f"{second.name} minus {first.name}"),
        tuple(
            (FIGURES[figure][0], (percent if FIGURES[figure][1] else number)(estimate))
            for figure, estimate in found.differences.items()
            if figure in FIGURES
        ),
        note="Paired bootstrap over the same tasks: an interval without 0 is a difference at 95 %.",
    )
    listed = tuple(
        (flip.instance_id, "bounce" if flip.to_bounce else "pass", "corrected" if flip.corrected else "now wrong")
        for flip in found.flips[:LISTED]
    )
    tables = [flips, differences]
    if listed:
        more = len(found.flips) - len(listed)
        tables.append(
            Table(
                ("instance", "now", ""),
                listed,
                title=f"What flipped, the first of {len(found.flips)}" if more else "What flipped",
                note=f"{more} more." if more else "",
                folded=True,
            )
        )
    title = f"{what(first.benchmark)}: {second.name} against {first.name}"
    return Section(title, (odds,), tuple(tables), data={"comparison": found.as_json()})


def chain_section(first: Scored, second: Scored, found: Chain) -> Section:
    """Both bouncers in a row, beside the paper's Lite and table IV."""
    rows: list[tuple[Cell, ...]] = [
        ("patches shown", found.submitted.all, found.shown.all),
        ("of these wrong", found.submitted.wrong, found.shown.wrong),
        ("wrong share %", _pct(found.submitted.wrong_share), _pct(found.shown.wrong_share)),
        ("correct share %", _pct(found.submitted.correct_share), _pct(found.shown.correct_share)),
    ]
    quoted: list[tuple[Cell, ...]] = [
        ("patches shown (paper, Lite)", *paper.LITE_SHOWN),
        ("wrong share % (paper, Lite)", *map(_pct, paper.LITE_WRONG_SHARE)),
    ]
    load = Table(("review load", "without bouncers", "with both"), (*rows, *quoted), quoted_from=len(rows))
    published = tuple(
        (f"{name} (paper)", _pct(before), _pct(after), length, _pct(lost))
        for name, (before, after, length, lost) in paper.TABLE_IV.items()
    )
    ours: tuple[Cell, ...] = (
        "these patches",
        _pct(found.submitted.correct_share),
        _pct(found.shown.correct_share),
        None if found.mean_characters is None else round(found.mean_characters),
        _pct(found.lost_share),
    )
    table_iv = Table(
        ("submission", "correct before %", "correct after %", "characters (mean)", "correct ones lost %"),
        (ours, *published),
        title="Beside the paper's table IV",
        quoted_from=1,
    )
    unanswered = (
        f"Input bouncer: {first.name}. Output bouncer: {second.name}. Missing answers turn nothing away: "
        f"{found.unanswered_input} before and {found.unanswered_output} after the patch is written. "
        f"{found.unlabelled} tasks whose outcome is not known are left out."
    )
    figure = Figure(_sankey(found), _flow_caption(found))
    return Section(
        "Both bouncers in a row", (unanswered,), (load, table_iv), (figure,), {"chain": found.as_json()}
    )


def _sankey(found: Chain) -> str:
    held, shown = found.held_back, found.shown
    columns = (
        ("tickets, vague", "tickets, clear"),
        ("patches", "turned away"),
        ("shown, correct", "shown, wrong", "held back, wrong", "held back, correct"),
    )
    flows = (
        Flow("tickets, vague", "patches", found.vague - found.turned_away_vague),
        Flow("tickets, clear", "patches", found.tickets - found.vague - found.turned_away_clear),
        Flow("tickets, vague", "turned away", found.turned_away_vague),
        Flow("tickets, clear", "turned away", found.turned_away_clear),
        Flow("patches", "shown, correct", shown.correct),
        Flow("patches", "shown, wrong", shown.wrong),
        Flow("patches", "held back, wrong", held.wrong),
        Flow("patches", "held back, correct", held.correct),
    )
    good, bad, grey = "#2e8b57", "#c0392b", "#7a7f87"
    colours = {
        "tickets, vague": "#d9822b",
        "tickets, clear": "#0b5fa5",
        "patches": "#0b5fa5",
        "turned away": grey,
        "shown, correct": good,
        "shown, wrong": bad,
        "held back, wrong": grey,
        "held back, correct": "#d9822b",
    }
    return sankey(columns, flows, colours)


def _flow_caption(found: Chain) -> str:
    held, shown = found.held_back, found.shown
    return (
        f"{found.tickets} tickets, {found.vague} of them vague. The input bouncer turns away "
        f"{found.turned_away_vague} vague and {found.turned_away_clear} clear ones. Of the {found.drafted.all} "
        f"patches it lets be written, the output bouncer holds back {held.wrong} wrong and {held.correct} correct "
        f"ones; {shown.correct} correct and {shown.wrong} wrong ones are shown."
    )


def _pct(share: float | None) -> Cell:
    return None if share is None else f"{100 * share:.1f}"
