"""What generated tests are worth, from recorded outcomes alone; nothing is run and no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from evaluation.brt import outcomes
from evaluation.brt.rankings import read_rankings
from evaluation.brt.scores import NS, RankingScores, RunScores
from evaluation.report.terminal import new_table, print_json, wide_console
from evaluation.run.folder import RunFolder
from evaluation.statistics import Estimate


def score_command(
    rankings: Path | None, before: Path | None, run: Path | None, seed: int, replicates: int, as_json: bool
) -> None:
    """Score rankings of tests (acc@n, wef@n) or a run of replay (%BRT, and the rankings of what it drafted)."""
    if (rankings is None) == (run is None):
        raise click.UsageError("give either --rankings or --run")
    if before is not None and rankings is None:
        raise click.UsageError("--before goes with --rankings")
    if rankings is not None:
        generated = None if before is None else read_rankings(before)
        ranked = RankingScores(read_rankings(rankings), generated, seed=seed, replicates=replicates)
        _print(ranked.as_json(), [_ranking_table(ranked)], as_json)
    elif run is not None:
        value, tables = score_run(RunFolder.read(run), seed, replicates)
        _print(value, tables, as_json)


def score_run(folder: RunFolder, seed: int, replicates: int) -> tuple[dict[str, Any], list[Table]]:
    """The figures of a run as JSON and as tables."""
    records = tuple(folder.outcomes())
    failed = sum(record.failed for record in records)
    brt = RunScores(outcomes.reproduced(records), failed, seed=seed, replicates=replicates)
    value, tables = brt.as_json(), [_brt_table(brt)]
    if outcomes.drafted(records):
        suggested, generated = outcomes.rankings(records)
        ranked = RankingScores(suggested, generated, seed=seed, replicates=replicates)
        value["suggestions"] = ranked.as_json()
        tables.append(_ranking_table(ranked))
    return value, tables


def _print(value: dict[str, Any], tables: Sequence[Table], as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    console = wide_console()
    for table in tables:
        console.print(table)


def _ranking_table(scores: RankingScores) -> Table:
    table = new_table(
        f"{scores.bugs} bugs, {scores.reproducible} reproducible", "value", "per bug", "95 % interval"
    )
    for name, counts in (("acc", scores.acc), ("wef", scores.wef)):
        for n in NS:
            estimate = scores.intervals[f"{name}@{n}"]
            table.add_row(f"{name}@{n}", str(counts[n]), _number(estimate.value), _interval(estimate))
    precision = scores.intervals["suggestion_precision"]
    table.add_row("suggestion precision", _number(scores.precision), "", _interval(precision))
    table.add_row("suggestion recall", _number(scores.recall), "", "")
    return table


def _brt_table(scores: RunScores) -> Table:
    table = new_table(f"{scores.instances} instances", "value", "95 % interval")
    table.add_row("reproduced", str(scores.reproduced), "")
    share = None if scores.share is None else 100 * scores.share
    ends = "" if scores.interval.low is None else f"{100 * scores.interval.low:.1f} – {_high(scores.interval):.1f}"
    table.add_row("%BRT", "–" if share is None else f"{share:.1f}", ends)
    table.add_row("without an answer", str(scores.failed), "")
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(estimate: Estimate) -> str:
    return "" if estimate.low is None else f"{estimate.low:.3f} – {estimate.high:.3f}"


def _high(estimate: Estimate) -> float:
    return 100 * (estimate.high or 0.0)
