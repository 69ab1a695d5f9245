"""The six layers told as sections: tables beside the paper's, figures, and the JSON of ``score bloom``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from bot import __version__
from bot.core.errors import OperatorError
from bot.reproduction.report import parse_report, read_report
from evaluation.bloom.components import COMPONENTS, PUBLISHED, Analysis, Presence, analyze, presence
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
from evaluation.brt.libro import bug_key, is_invalid, read_rankings
from evaluation.brt.metrics import NS, rankings, reproduced
from evaluation.brt.report import read_run
from evaluation.dataset import read_rows, task_id
from evaluation.report.figures import Series, bars
from evaluation.report.page import Cell, Figure, Report, Section, Table, percentage
from evaluation.report.runs import store
from evaluation.report.terminal import print_json, show


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
    """Compare runs of replay brt layer by layer, or say which parts of a report go with success."""
    if reports is not None or annotations is not None:
        if (rankings is None) == (run is None):
            raise click.UsageError("--reports and --annotations need --rankings, or --run")
        success = _from_rankings(rankings) if rankings is not None else _reproduced(run or Path(), False)
        analysis = analyze_files(reports, annotations, success, seed)
        value, sections = analysis.as_json(), [analysis_section(analysis, by_hand=annotations is not None)]
    elif baseline is None:
        raise click.UsageError("give --baseline, or --reports with --rankings or --run")
    else:
        value, sections = _layers(baseline, seed=seed, **runs)
    if out is not None:
        store(out, Report("Six layers of test generation", tuple(sections), f"bouncer {__version__}"))
    if as_json:
        print_json(value)
    else:
        show(sections)


def _layers(
    baseline: Path,
    repeat: tuple[Path, ...],
    altered: tuple[Path, ...],
    opened: tuple[Path, ...],
    picked: Path | None,
    clarified: Path | None,
    asked: Path | None,
    unclear: str | None,
    plain: bool,
    seed: int,
) -> tuple[dict[str, Any], list[Section]]:
    if len(opened) > len(altered):
        raise click.UsageError("each --open goes with the --altered of the same place")
    if (clarified is not None or unclear is not None) and asked is None:
        raise click.UsageError("--clarified and --unclear need --asked")
    of = partial(_reproduced, plain=plain)
    first = of(baseline)
    remembered = Remembered([first, *map(of, repeat)], seed=seed)
    comparisons = {str(path): compare(first, of(path)) for path in altered}
    books = {str(path): compare(of(closed), of(path)) for closed, path in zip(altered, opened, strict=False)}
    evaluated = None if picked is None else _evaluated(baseline, picked, plain, seed)
    better, ambiguity = _created(first, asked, None if clarified is None else of(clarified), unclear)
    value: dict[str, Any] = {
        "remember": remembered.as_json(),
        "altered": {name: comparison.as_json() for name, comparison in comparisons.items()},
        "open_book": {name: book.as_json() for name, book in books.items()},
        "evaluate": None if evaluated is None else evaluated.as_json(),
        "create": {
            "improvement": better and better.as_json(),
            "detection": ambiguity and ambiguity.model_dump(mode="json"),
        },
    }
    sections = [_layers_section(str(baseline), remembered, comparisons), _books_section(books)]
    if evaluated is not None:
        sections.append(_evaluated_section(evaluated))
    if better is not None or ambiguity is not None:
        sections.append(_created_section(better, ambiguity))
    return value, sections


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
        name = task_id(row, "bug_id" if "bug_id" in row.data else "instance_id")
        if is_invalid(row.data):
            continue
        if "problem_statement" in row.data:
            report = parse_report(str(row.data["problem_statement"]))
        else:
            body = str(row.data.get("description_html") or row.data.get("body") or "")
            report = read_report(str(row.data.get("title", "")), body)
        presences.append(presence(name, report.text, row.data.get("patched_methods")))
    return presences


def _annotated(source: str) -> list[Presence]:
    presences = []
    for row in read_rows(source):
        name = task_id(row, "bug_id" if "bug_id" in row.data else "instance_id")
        values = {component: row.data[component] for component in COMPONENTS if component in row.data}
        wrong = next((component for component, value in values.items() if not isinstance(value, bool)), None)
        if wrong is not None or not values:
            raise OperatorError(f"{row.where}: {wrong or COMPONENTS[0]}: true or false is needed")
        presences.append(Presence(bug_id=name, found=values))
    return presences


def _from_rankings(source: Path) -> dict[str, bool]:
    return {bug_key(ranking.bug_id): ranking.reproducible for ranking in read_rankings(source)}


def _reproduced(path: Path, plain: bool) -> dict[str, bool]:
    return reproduced(read_run(path, plain))


def _evaluated(baseline: Path, picked: Path, plain: bool, seed: int) -> Evaluated:
    ranked, generated = rankings(read_run(baseline, plain))
    picks, _ = rankings(read_run(picked, plain))
    return Evaluated(ranked, picks, generated, seed=seed)


def _created(
    baseline: dict[str, bool], asked: Path | None, clarified: dict[str, bool] | None, unclear: str | None
) -> tuple[Improvement | None, Detection | None]:
    if asked is None:
        return None, None
    changes = {
        task_id(row): (row.data.get("changes") or {}).get("clarified") or {} for row in read_rows(str(asked))
    }
    answered = [name for name, change in changes.items() if change.get("answer")]
    better = None if clarified is None else improvement(baseline, clarified, answered)
    if unclear is None:
        return better, None
    truth = {task_id(row): row.data.get("unclear") is True for row in read_rows(unclear)}
    return better, detection(truth, {name: bool(change.get("flagged")) for name, change in changes.items()})


def _layers_section(name: str, remembered: Remembered, comparisons: dict[str, Comparison]) -> Section:
    rows: list[tuple[Cell, ...]] = [(name, percentage(remembered.share), remembered.bugs, None, None, None, None)]
    for run, comparison in comparisons.items():
        rows.append(
            (
                run,
                percentage(comparison.altered),
                comparison.bugs,
                percentage(comparison.consistency),
                comparison.lost,
                comparison.gained,
                comparison.p,
            )
        )
    quoted: list[tuple[Cell, ...]] = [
        (
            f"paper, {row.benchmark}, {row.model}: {row.setting}",
            percentage(row.brt),
            None,
            percentage(row.consistency),
            *(None, None, None),
        )
        for row in ROWS
        if row.layer != "Analyze"
    ]
    header = ("run", "%BRT", "bugs", "baseline consistency %", "lost", "gained", "McNemar p")
    table = Table(header, (*rows, *quoted), title="Tables 2 to 4", quoted_from=len(rows))
    words: tuple[str, ...] = ()
    if remembered.agreement is not None:
        agree = f"{percentage(remembered.agreement)} % of the bugs"
        words = (f"Repeated {len(remembered.repeats)} times: all runs come to the same on {agree}.",)
    return Section("Remember, Understand, Apply", words, (table,))


def _books_section(books: dict[str, Comparison]) -> Section:
    """Table 5, and Figures 1 (Defects4J) and 2 (GHRB)."""
    rows: list[tuple[Cell, ...]] = [
        (run, percentage(book.baseline), percentage(book.altered), percentage(book.change), book.p)
        for run, book in books.items()
    ]
    published = [row for row in ROWS if row.open_book is not None]
    quoted: list[tuple[Cell, ...]] = [
        (
            f"paper, {row.benchmark}, {row.model}: {row.setting}",
            percentage(row.brt),
            percentage(row.open_book),
            percentage((row.open_book or 0) / row.brt - 1),
            None,
        )
        for row in published
    ]
    header = ("run", "closed book %BRT", "open book %BRT", "change %", "McNemar p")
    table = Table(header, (*rows, *quoted), title="Table 5", quoted_from=len(rows), folded=not rows)
    figures = []
    if books:
        pairs = [(name, book.baseline, book.altered) for name, book in books.items()]
        figures.append(_book_figure(pairs, "%BRT of closed and open book, each of our runs."))
    for number, benchmark in enumerate(("Defects4J", "GHRB"), 1):
        quotes = [(f"{r.model}: {r.setting}", r.brt, r.open_book) for r in published if r.benchmark == benchmark]
        figures.append(_book_figure(quotes, f"The paper's Figure {number}: closed and open book on {benchmark}."))
    return Section("Analyze: closed and open book", tables=(table,), figures=tuple(figures))


def _book_figure(rows: Sequence[tuple[str, float | None, float | None]], caption: str) -> Figure:
    names = [name for name, _, _ in rows]
    closed = [None if share is None else 100 * share for _, share, _ in rows]
    opened = [None if share is None else 100 * share for _, _, share in rows]
    series = [Series("closed book", closed), Series("open book", opened)]
    return Figure(partial(bars, names, series, ylabel="%BRT", top=100), caption)


def analysis_section(analysis: Analysis, by_hand: bool) -> Section:
    """Table 1, and what Figures 3 to 7 show of one setting: how much each component matters, and its rank."""
    rows: list[tuple[Cell, ...]] = [
        (
            importance.component,
            importance.rank,
            f"{importance.mean:+.4f}",
            percentage(analysis.presence.get(importance.component)),
            percentage(PUBLISHED[importance.component]),
            percentage(analysis.success_with[importance.component]),
            percentage(analysis.success_without[importance.component]),
        )
        for importance in analysis.importances
    ]
    unknown = [component for component in COMPONENTS if component not in analysis.presence]
    rows += [(component, None, None, None, percentage(PUBLISHED[component]), None, None) for component in unknown]
    header = ("component", "rank", "importance", "present %", "paper %", "success with %", "without %")
    how = "annotated by hand" if by_hand else "found by rules, an approximation of the authors' annotations"
    words = (
        f"{analysis.reports} reports, {analysis.successes} reproduced; components {how}. "
        f"AUC of the forests on what they had not seen: {analysis.auc:.3f}.",
    )
    names = [f"{importance.component} (rank {importance.rank})" for importance in analysis.importances]
    series = Series(
        "importance",
        [importance.mean for importance in analysis.importances],
        [(min(importance.values), max(importance.values)) for importance in analysis.importances],
    )
    caption = "Scott-Knott ESD ranking of report components: the paper's Figures 3 to 7, each of one setting."
    picture = Figure(partial(bars, names, [series], ylabel="fall of the AUC"), caption)
    return Section(
        "Analyze: components of reports", words, (Table(header, tuple(rows), title="Table 1"),), (picture,)
    )


def _evaluated_section(evaluated: Evaluated) -> Section:
    names = (*(f"acc@{n} %" for n in NS), *(f"wef@{n}" for n in NS))
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            scores.bugs,
            *(percentage(scores.intervals[f"acc@{n}"].value) for n in NS),
            *(scores.wef_where_found[n] for n in NS),
            *(scores.wef[n] for n in NS),
            scores.precision,
            scores.precision_of_tests,
            scores.recall,
        )
        for name, scores in (
            ("ranked by clusters", evaluated.ranked),
            ("the model's pick first", evaluated.picked),
        )
    ]
    header = (
        "order", "bugs", *names, *(f"wef@{n}, LIBRO" for n in NS), "precision, bugs (LIBRO)",
        "precision, tests (Bloom)", "recall",
    )  # fmt: skip
    words = (
        "acc@n: the share of bugs with a right test among the first n. wef@n: over these bugs, the wrong tests "
        "before it; LIBRO's counts all bugs.",
        f"With the pick a right test comes first for {evaluated.gained} bugs more and {evaluated.lost} bugs fewer"
        f" (McNemar p = {evaluated.p:.3f}).",
    )
    return Section("Evaluate", words, (Table(header, tuple(rows)),))


def _created_section(better: Improvement | None, ambiguity: Detection | None) -> Section:
    rows: list[tuple[Cell, ...]] = []
    if ambiguity is not None:
        rows += [
            ("ambiguity detection rate %", percentage(ambiguity.rate), f"of {ambiguity.unclear} unclear reports"),
            ("false alarms %", percentage(ambiguity.false_alarms), f"of {ambiguity.clear} clear reports"),
        ]
    if better is not None:
        points = percentage(better.points)
        shares = f"{percentage(better.without)} to {percentage(better.with_answer)} %"
        change = f"{shares} of {better.reports} clarified reports"
        rows.append(("reproduction improvement rate, points", points, change))
    return Section("Create", tables=(Table(("rate", "value", "over"), tuple(rows)),))
