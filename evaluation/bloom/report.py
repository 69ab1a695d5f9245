"""The six layers as sections: tables beside the paper's, figures, and the JSON of ``score bloom``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from bot import __version__
from bot.core.errors import OperatorError
from bot.core.text import amount
from bot.reproduction.report import parse_report, read_report
from evaluation.bloom.components import COMPONENTS, PUBLISHED, TELLING, Analysis, Presence, analyze, presence
from evaluation.bloom.components import shares as component_shares
from evaluation.bloom.layers import (
    ROWS,
    Comparison,
    Detection,
    Evaluated,
    Improvement,
    Remembered,
    compare,
    detection,
    improvement,
)
from evaluation.brt.libro import bug_id, bug_key, is_invalid, read_rankings
from evaluation.brt.metrics import NS, rankings, reproduced
from evaluation.brt.report import read_run
from evaluation.dataset import read_rows, task_id
from evaluation.report.figures import Series, bars
from evaluation.report.page import Cell, Figure, Report, Section, Table, percentage
from evaluation.report.runs import store
from evaluation.report.terminal import tell

#: What ``build bloom --change clarified`` says of each case.
Changes = dict[str, dict[str, Any]]


def score_command(
    baseline: Path | None,
    reports: str | None,
    rankings: Path | None,
    run: Path | None,
    annotations: str | None,
    seed: int,
    out: Path | None,
    as_json: bool,
    **runs: Any,
) -> None:
    """Compare runs of replay brt layer by layer, or rank the components of reports by their effect on success."""
    if reports is not None or annotations is not None:
        sections = [] if reports is None else [_reports_section(reports)]
        success = _outcomes(rankings, run)
        if success is not None:
            analysis = analyze_files(reports, annotations, success, seed)
            sections.append(analysis_section(analysis, by_hand=annotations is not None))
        elif annotations is not None:
            raise click.UsageError("--annotations need --rankings, or --run")
    elif baseline is None:
        raise click.UsageError("give --baseline, --reports or --annotations")
    else:
        sections = _layers(baseline, seed=seed, **runs)
    if out is not None:
        store(out, Report("Six layers of test generation", tuple(sections), f"bouncer {__version__}"))
    tell(sections, as_json)


def _outcomes(rankings: Path | None, run: Path | None) -> dict[str, bool] | None:
    """For each bug, if LIBRO or a run reproduced it; None if neither is given."""
    if rankings is not None and run is not None:
        raise click.UsageError("give --rankings or --run, not both")
    if rankings is not None:
        return {bug_key(ranking.bug_id): ranking.reproducible for ranking in read_rankings(rankings)}
    if run is not None:
        return {bug_key(bug): right for bug, right in reproduced(read_run(run)).items()}
    return None


def _layers(
    baseline: Path,
    repeat: tuple[Path, ...],
    altered: tuple[Path, ...],
    open_book: tuple[Path, ...],
    picked: Path | None,
    clarified: Path | None,
    clarified_cases: Path | None,
    unclear: str | None,
    plain: bool,
    seed: int,
) -> list[Section]:
    if len(open_book) > len(altered):
        raise click.UsageError("each --open goes with the --altered of the same place")
    if (clarified is not None or unclear is not None) and clarified_cases is None:
        raise click.UsageError("--clarified and --unclear need --asked")

    def of(path: Path) -> dict[str, bool]:
        return reproduced(read_run(path, plain))

    first = of(baseline)
    remembered = Remembered([first, *map(of, repeat)], seed=seed)
    comparisons = {str(path): compare(first, of(path)) for path in altered}
    books = {str(path): compare(of(closed), of(path)) for closed, path in zip(altered, open_book, strict=False)}
    sections = [_layers_section(str(baseline), remembered, comparisons), _books_section(books)]
    if picked is not None:
        ranked, generated = rankings(read_run(baseline, plain))
        picks, _ = rankings(read_run(picked, plain))
        sections.append(_evaluated_section(Evaluated(ranked, picks, generated, seed=seed)))
    if clarified_cases is not None:
        rows = read_rows(str(clarified_cases))
        changes = {task_id(row): (row.data.get("changes") or {}).get("clarified") or {} for row in rows}
        with_answers = [name for name, change in changes.items() if change.get("answer")]
        better = None if clarified is None else improvement(first, of(clarified), with_answers)
        sections.append(_created_section(better, None if unclear is None else _detected(changes, unclear)))
    return sections


def _detected(changes: Changes, unclear: str) -> Detection:
    truth = {task_id(row): row.data.get("unclear") is True for row in read_rows(unclear)}
    flags = {name: bool(change["flagged"]) for name, change in changes.items() if "flagged" in change}
    return detection(truth, flags)


def analyze_files(
    reports: str | None, annotations: str | None, success: dict[str, bool], seed: int = 0
) -> Analysis:
    """Component analysis of reports, or of annotations by hand; a bug without an outcome was not reproduced.

    Reports that are marked ``invalid`` are left out. Raises OperatorError.
    """
    presences = _annotated(annotations) if annotations is not None else _by_rules(reports or "")
    outcomes = {presence.bug_id: success.get(bug_key(presence.bug_id), False) for presence in presences}
    try:
        return analyze(presences, outcomes, seed)
    except ValueError as error:
        raise OperatorError(f"{annotations or reports}: {error}") from None


def _by_rules(source: str) -> list[Presence]:
    presences = []
    for row in read_rows(source):
        if is_invalid(row.data):
            continue
        if "problem_statement" in row.data:
            report = parse_report(str(row.data["problem_statement"]))
        else:
            body = str(row.data.get("description_html") or row.data.get("body") or "")
            report = read_report(str(row.data.get("title", "")), body)
        presences.append(presence(bug_id(row), report.text, row.data.get("patched_methods")))
    return presences


def _annotated(source: str) -> list[Presence]:
    presences = []
    for row in read_rows(source):
        values = {component: row.data[component] for component in COMPONENTS if component in row.data}
        wrong = next((component for component, value in values.items() if not isinstance(value, bool)), None)
        if wrong is not None or not values:
            raise OperatorError(f"{row.where}: {wrong or COMPONENTS[0]}: true or false is needed")
        presences.append(Presence(bug_id=bug_id(row), components=values))
    return presences


def _reports_section(source: str) -> Section:
    """Table 1 by rules, and the bugs that share one report (section 5.1); invalid ones share reports, too."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in read_rows(source):
        texts = (row.data.get(name) for name in ("title", "description_html", "body", "problem_statement"))
        groups[tuple(" ".join(str(text or "").split()) for text in texts)].append(bug_id(row))
    shared = [sorted(bugs) for bugs in groups.values() if len(bugs) > 1]
    if not groups:
        raise OperatorError(f"{source} holds no report")
    reports = _by_rules(source)
    present = component_shares(reports)
    rows = tuple((c, percentage(present.get(c)), percentage(PUBLISHED[c])) for c in COMPONENTS)
    total, several = sum(map(len, groups.values())), sum(map(len, shared))
    words = (
        f"{total} bugs, {total - len(reports)} of them with a report that is marked invalid and left out of the "
        f"table. {len(shared)} groups of bugs have one and the same report, {several} bugs in all (the paper: 29 "
        "groups, 66 bugs of Defects4J). Components are recognised by rules, the paper's were annotated by hand.",
    )
    data = {"bugs": total, "presence": present, "shared_reports": {"bugs": several, "groups": shared}}
    table = Table(("component", "present %", "paper %"), rows, title="Table 1")
    return Section("Bug reports", words, (table,), data=data)


def _layers_section(name: str, remembered: Remembered, comparisons: dict[str, Comparison]) -> Section:
    rows: list[tuple[Cell, ...]] = [(name, percentage(remembered.share), remembered.bugs, None, None, None, None)]
    for run, other in comparisons.items():
        shares = (percentage(other.altered), other.bugs, percentage(other.consistency))
        rows.append((run, *shares, other.lost, other.gained, other.p))
    quoted: list[tuple[Cell, ...]] = [
        (row.title, percentage(row.brt), None, percentage(row.consistency), None, None, None)
        for row in ROWS
        if row.layer != "Analyze"
    ]
    header = ("run", "%BRT", "bugs", "baseline consistency %", "lost", "gained", "McNemar p")
    table = Table(header, (*rows, *quoted), title="Tables 2 to 4", quoted_from=len(rows))
    data = {
        "remember": remembered.as_json(),
        "altered": {run: comparison.as_json() for run, comparison in comparisons.items()},
    }
    words: tuple[str, ...] = ()
    if remembered.agreement is not None:
        agree = f"{percentage(remembered.agreement)} % of the bugs"
        words = (f"Repeated {amount(len(remembered.repeats), 'time')}: all runs come to the same on {agree}.",)
    return Section("Remember, Understand, Apply", words, (table,), data=data)


def _books_section(books: dict[str, Comparison]) -> Section:
    """Table 5, and Figures 1 (Defects4J) and 2 (GHRB)."""
    rows: list[tuple[Cell, ...]] = [
        (run, percentage(book.baseline), percentage(book.altered), percentage(book.change), book.p)
        for run, book in books.items()
    ]
    published = [row for row in ROWS if row.open_book is not None]
    quoted: list[tuple[Cell, ...]] = []
    for row in published:
        shares = (row.brt, row.open_book, (row.open_book or 0) / row.brt - 1)
        quoted.append((row.title, *map(percentage, shares), None))
    header = ("run", "closed book %BRT", "open book %BRT", "change %", "McNemar p")
    table = Table(header, (*rows, *quoted), title="Table 5", quoted_from=len(rows), folded=not rows)
    figures = []
    if books:
        pairs = [(name, book.baseline, book.altered) for name, book in books.items()]
        figures.append(_book_figure(pairs, "%BRT of closed and open book, each of our runs."))
    for number, benchmark in enumerate(("Defects4J", "GHRB"), 1):
        quotes = [(f"{r.model}: {r.setting}", r.brt, r.open_book) for r in published if r.benchmark == benchmark]
        figures.append(_book_figure(quotes, f"The paper's Figure {number}: closed and open book on {benchmark}."))
    data = {"open_book": {run: book.as_json() for run, book in books.items()}}
    return Section("Analyze: closed and open book", tables=(table,), figures=tuple(figures), data=data)


def _book_figure(rows: Sequence[tuple[str, float | None, float | None]], caption: str) -> Figure:
    names, *values = zip(*rows, strict=True)
    series = [
        Series(book, [None if share is None else 100 * share for share in column])
        for book, column in zip(("closed book", "open book"), values, strict=True)
    ]
    return Figure(partial(bars, names, series, ylabel="%BRT", top=100), caption)


def analysis_section(analysis: Analysis, by_hand: bool) -> Section:
    """Table 1, and what Figures 3 to 7 show of one setting: how much each component matters, and its rank."""
    rows: list[tuple[Cell, ...]] = []
    for importance in analysis.importances:
        component = importance.component
        present = (analysis.presence.get(component), PUBLISHED[component])
        shares = (*present, analysis.success_with[component], analysis.success_without[component])
        rows.append((component, importance.rank, f"{importance.mean:+.4f}", *map(percentage, shares)))
    unknown = [component for component in COMPONENTS if component not in analysis.presence]
    rows += [(component, None, None, None, percentage(PUBLISHED[component]), None, None) for component in unknown]
    header = ("component", "rank", "importance", "present %", "paper %", "success with %", "without %")
    how = "annotated by hand" if by_hand else "recognised by rules, an approximation of the authors' annotations"
    text = (
        f"{analysis.reports} reports, {analysis.successes} reproduced; components {how}. "
        f"AUC of the forests on held-out reports: {analysis.auc:.3f}."
    )
    figures: tuple[Figure, ...] = ()
    if analysis.auc < TELLING:
        text += (
            f" This is below {TELLING}: these components hardly tell reproduced reports from others, so that "
            "their importances are noise. No ranks are given and no figure is drawn."
        )
    else:
        series = Series(
            "importance",
            [importance.mean for importance in analysis.importances],
            [(min(importance.values), max(importance.values)) for importance in analysis.importances],
        )
        caption = "Scott-Knott ESD ranking of report components: the paper's Figures 3 to 7, each of one setting."
        names = [f"{importance.component} (rank {importance.rank})" for importance in analysis.importances]
        figures = (Figure(partial(bars, names, [series], ylabel="fall of the AUC"), caption),)
    table = Table(header, tuple(rows), title="Table 1")
    return Section("Analyze: components of reports", (text,), (table,), figures, analysis.as_json())


def _evaluated_section(evaluated: Evaluated) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, scores in (("ranked by clusters", evaluated.ranked), ("the model's pick first", evaluated.picked)):
        acc = (percentage(scores.intervals[f"acc@{n}"].value) for n in NS)
        wef = (*scores.wef_where_found.values(), *scores.wef.values())
        rows.append((name, scores.bugs, *acc, *wef, scores.precision, scores.precision_of_tests, scores.recall))
    names = (*(f"acc@{n} %" for n in NS), *(f"wef@{n}" for n in NS), *(f"wef@{n}, LIBRO" for n in NS))
    header = ("order", "bugs", *names, "precision, bugs (LIBRO)", "precision, tests (Bloom)", "recall")
    words = (
        "acc@n: the share of bugs with a right test among the first n. wef@n: over these bugs, the wrong tests "
        "before it; LIBRO's counts all bugs.",
        f"With the pick a right test comes first for {evaluated.gained} bugs more and {evaluated.lost} bugs fewer"
        f" (McNemar p = {evaluated.p:.3f}).",
    )
    return Section("Evaluate", words, (Table(header, tuple(rows)),), data={"evaluate": evaluated.as_json()})


def _created_section(better: Improvement | None, ambiguity: Detection | None) -> Section:
    rows: list[tuple[Cell, ...]] = []
    if ambiguity is not None:
        rows += [
            ("ambiguity detection rate %", percentage(ambiguity.rate), f"of {ambiguity.unclear} unclear reports"),
            ("false alarms %", percentage(ambiguity.false_alarms), f"of {ambiguity.clear} clear reports"),
            ("without a verdict", ambiguity.unanswered, "counted as not flagged"),
        ]
    if better is not None:
        points = percentage(better.points)
        change = f"{percentage(better.without)} to {percentage(better.with_answer)} % of {better.reports} reports"
        rows.append(("reproduction improvement rate, points", points, f"{change} that were clarified"))
    data = {"improvement": better and better.as_json(), "detection": ambiguity and ambiguity.model_dump()}
    return Section("Create", tables=(Table(("rate", "value", "over"), tuple(rows)),), data={"create": data})
