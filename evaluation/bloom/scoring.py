"""Layers beside the baseline, from records alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from bot.errors import OperatorError
from bot.reproduce.report import read_report
from evaluation.bloom import paper
from evaluation.bloom.analyze import Analysis, analyze
from evaluation.bloom.comparison import Comparison, compare
from evaluation.bloom.components import PUBLISHED, presence
from evaluation.bloom.evaluate import Evaluated
from evaluation.bloom.remember import Remembered
from evaluation.brt import outcomes
from evaluation.brt.rankings import read_rankings
from evaluation.dataset import read_rows, task_id
from evaluation.report.terminal import new_table, print_json, wide_console
from evaluation.run.folder import RunFolder


def score_command(
    baseline: Path | None,
    repeat: tuple[Path, ...],
    altered: tuple[Path, ...],
    picked: Path | None,
    reports: str | None,
    rankings: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Compare runs of replay brt layer by layer, or say which parts of a report go with success."""
    if reports is not None:
        if rankings is None:
            raise click.UsageError("--reports needs --rankings")
        analysis = analyze_files(reports, rankings, seed)
        _show(analysis.as_json(), [_analysis_table(analysis)], as_json)
        return
    if baseline is None:
        raise click.UsageError("give --baseline, or --reports with --rankings")
    runs = [_reproduced(path) for path in (baseline, *repeat)]
    remembered = Remembered(runs, seed=seed)
    comparisons = {str(path): compare(runs[0], _reproduced(path)) for path in altered}
    evaluated = None if picked is None else _evaluated(baseline, picked, seed)
    value: dict[str, Any] = {
        "remember": remembered.as_json(),
        "altered": {name: each.as_json() for name, each in comparisons.items()},
        "evaluate": None if evaluated is None else evaluated.as_json(),
    }
    _show(value, [_layers_table(str(baseline), remembered, comparisons)], as_json)


def analyze_files(reports: str, rankings: Path, seed: int = 0) -> Analysis:
    """Component analysis of reports against recorded rankings; a bug that is not ranked was not reproduced.

    Reports that are marked ``invalid`` are left out. Raises OperatorError.
    """
    reproducible = {_key(each.bug_id): each.reproducible for each in read_rankings(rankings)}
    found = []
    success: dict[str, bool] = {}
    for row in read_rows(reports):
        name = task_id(row, "bug_id" if "bug_id" in row.data else "instance_id")
        if str(row.data.get("invalid", "")).lower() == "true":
            continue
        body = str(row.data.get("description_html") or row.data.get("body") or "")
        report = read_report(str(row.data.get("title", "")), body)
        found.append(presence(name, report.text, row.data.get("patched_methods")))
        success[name] = reproducible.get(_key(name), False)
    try:
        return analyze(found, success, seed)
    except ValueError as error:
        raise OperatorError(f"{reports}: {error}") from None


def _key(bug: str) -> str:
    """LIBRO writes Chart_1, the reports say Chart-1."""
    return bug.replace("-", "_")


def _reproduced(path: Path) -> dict[str, bool]:
    return outcomes.reproduced(tuple(RunFolder.read(path).outcomes()))


def _evaluated(baseline: Path, picked: Path, seed: int) -> Evaluated:
    ranked, generated = outcomes.rankings(tuple(RunFolder.read(baseline).outcomes()))
    chosen, _ = outcomes.rankings(tuple(RunFolder.read(picked).outcomes()))
    return Evaluated(ranked, chosen, generated, seed=seed)


def _show(value: dict[str, Any], tables: list[Table], as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    console = wide_console()
    for table in tables:
        console.print(table)


def _layers_table(name: str, remembered: Remembered, comparisons: dict[str, Comparison]) -> Table:
    table = new_table("run", "%BRT", "bugs", "consistency %", "lost", "gained", "McNemar p")
    table.add_row(
        name, _percent(remembered.share), str(remembered.bugs), _percent(remembered.agreement), "", "", ""
    )
    for run, each in comparisons.items():
        counts = (str(each.lost), str(each.gained), f"{each.p:.3f}")
        table.add_row(run, _percent(each.altered), str(each.bugs), _percent(each.consistency), *counts)
    table.add_section()
    for row in paper.ROWS:
        if row.benchmark == "Defects4J" and row.model == "GPT-4o":
            label = f"paper, {row.benchmark}, {row.model}: {row.setting}"
            table.add_row(label, _percent(row.brt), "", _percent(row.consistency), "", "", "", style="dim")
    return table


def _analysis_table(analysis: Analysis) -> Table:
    title = f"{analysis.reports} reports, {analysis.successes} reproduced, AUC {analysis.auc:.3f}"
    table = new_table(title, "rank", "importance", "present %", "paper %", "success with %", "without %")
    for each in analysis.importances:
        component = each.component
        table.add_row(
            component,
            str(each.rank),
            f"{each.mean:+.4f}",
            _percent(analysis.presence.get(component)),
            _percent(PUBLISHED[component]),
            _percent(analysis.success_with[component]),
            _percent(analysis.success_without[component]),
        )
    return table


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
