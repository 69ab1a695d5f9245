"""Scores of runs of ``replay brt``: %BRT, rankings, the fate of drafts, and settings side by side."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from bot.core.errors import OperatorError
from evaluation.benchmark import Benchmark, Scoring
from evaluation.bloom.layers import ROWS, Comparison, compare
from evaluation.brt.cases import Candidate, Case, read_candidates, read_cases
from evaluation.brt.metrics import (
    NEVER,
    NS,
    Ranking,
    RankingScores,
    RunScores,
    drafted,
    rankings,
    read_rankings,
    reproduced,
)
from evaluation.report.cutoff import Sample
from evaluation.report.figures import Series, bars
from evaluation.report.page import Cell, Figure, Section, Table, percentage
from evaluation.report.terminal import data_of, print_json, say, show
from evaluation.run.folder import Record, RunFolder
from evaluation.statistics import NO_INTERVALS, Estimate, Resampling, ratio

#: A run by name: its records, and one for each task that it did not come to.
Recorded = tuple[str, tuple[Record, ...]]

#: LIBRO on Defects4J, 350 bugs after selection, as its replication package gives it.
_LIBRO: tuple[Cell, ...] = ("LIBRO, Defects4J (350 bugs)", 219, 149, 184, 199, 201, 539, 797, 0.626, None, 0.873)
#: The columns of LIBRO's features, one row a distinct failing test.
FEATURES = (
    "bug_id", "test_path", "success", "test_length", "clus_size_output_fib", "num_fib_tests", "is_crash",
    "actual_crash", "actual_value_match", "exception_type_match", "test_exception_type_match",
)  # fmt: skip


def score_command(
    rankings: Path | None,
    before: Path | None,
    run: Path | None,
    plain: bool,
    export: Path | None,
    seed: int,
    replicates: int,
    cutoff: datetime | None,
    cases: str | None,
    as_json: bool,
) -> None:
    """Score rankings of tests (acc@n, wef@n) or a run of replay (%BRT, and the rankings of what it drafted)."""
    if (rankings is None) == (run is None):
        raise click.UsageError("give either --rankings or --run")
    if before and rankings is None:
        raise click.UsageError("--before goes with --rankings")
    for option, is_given in (("plain", plain), ("export", export), ("cutoff", cutoff), ("cases", cases)):
        if is_given and run is None:
            raise click.UsageError(f"--{option} goes with --run")
    how = Resampling(seed, replicates)
    if rankings is not None:
        generated = None if before is None else read_rankings(before)
        ranked = RankingScores(read_rankings(rankings), generated, how)
        value, parts = ranked.as_json(), [_ranked_section(ranked)]
    else:
        assert run is not None
        folder = RunFolder.read(run)
        records = tuple(folder.outcomes())
        value, parts = _run_scores(records, plain, how)
        if export is not None:
            _export(records, export)
        dated = cases or folder.facts.tasks.source
        aged = BRT.contamination([(run.name, records)], dated, Scoring("count", seed, replicates, cutoff))
        value, parts = {**value, **data_of(aged)}, [*parts, *aged]
    if as_json:
        print_json(value)
    else:
        show(parts)


def _run_scores(records: Sequence[Record], plain: bool, how: Resampling) -> tuple[dict[str, Any], list[Section]]:
    failed = sum(record.failed for record in records)
    brt, bare = (RunScores(reproduced(records, only_plain), failed, how) for only_plain in (plain, True))
    value = {**brt.as_json(), "brt_plain": bare.share}
    rows: list[tuple[Cell, ...]] = [
        ("reproduced", brt.reproduced, ""),
        ("%BRT", percentage(brt.share), _ends(brt.interval)),
        ("%BRT, no draft repaired or inverted", percentage(bare.share), _ends(bare.interval)),
        ("without an answer", failed, ""),
        ("of these, no test can be run", sum(_no_environment(record) for record in records), ""),
    ]
    parts = [Section("", tables=(Table((f"{brt.instances} instances", "value", "95 % interval"), tuple(rows)),))]
    if drafted(records):
        ranked = RankingScores(*rankings(records), how=how)
        value["suggestions"] = ranked.as_json()
        parts.append(_ranked_section(ranked))
    return value, parts


def _no_environment(record: Record) -> bool:
    return (record.error or "").startswith("environment:")


def _ranked_section(scores: RankingScores) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, counts in (("acc", scores.acc), ("wef", scores.wef)):
        for n in NS:
            estimate = scores.intervals[f"{name}@{n}"]
            rows.append((f"{name}@{n}", counts[n], _three(estimate.value), _ends(estimate, 1, 3)))
    precision = scores.intervals["suggestion_precision"]
    rows += [
        ("suggestion precision, bugs (LIBRO)", _three(scores.precision), "", _ends(precision, 1, 3)),
        ("suggestion precision, tests (Bloom)", _three(scores.precision_of_tests), "", ""),
        ("suggestion recall", _three(scores.recall), "", ""),
    ]
    header = (f"{scores.bugs} bugs, {scores.reproducible} reproducible", "value", "per bug", "95 % interval")
    return Section("", tables=(Table(header, tuple(rows)),))


def _export(records: Sequence[Record], folder: Path) -> None:
    """Rankings before and after selection, and features, as LIBRO's replication package stores them."""
    suggested, generated = rankings(records)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, ranked in (("rankings.csv", suggested), ("rankings_before.csv", generated)):
            rows = [
                {**ranking.model_dump(), "first_success_rank": ranking.first_success_rank or NEVER}
                for ranking in ranked
            ]
            _csv(folder / name, tuple(Ranking.model_fields), rows)
        _csv(folder / "features.csv", FEATURES, features(records))
    except OSError as error:
        raise OperatorError(f"--export {folder}: {error.strerror}") from None
    say(f"{folder}: rankings.csv, rankings_before.csv, features.csv")


def _csv(file: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)


def features(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """One row for each distinct test that fails on the buggy version, of a run that drafted."""
    for record in records:
        failing = [draft for draft in record.details.get("drafts", ()) if draft.get("features")]
        sizes = Counter(draft["features"]["signature"] for draft in failing)
        equal = Counter(draft["features"]["syntax"] for draft in failing)
        syntaxes: set[str] = set()
        for draft in failing:
            values = draft["features"]
            if values["syntax"] not in syntaxes:
                syntaxes.add(values["syntax"])
                yield {
                    "bug_id": record.task_id,
                    "test_path": draft["candidate_id"],
                    "success": bool(draft["brt"]),
                    "clus_size_output_fib": sizes[values["signature"]],
                    "num_fib_tests": equal[values["syntax"]],
                    **{name: values[name] for name in FEATURES if name in values},
                }


def digest(text: str) -> str:
    """A short name for a long text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def recorded(run: RunFolder, name: str, source: str, scoring: Scoring) -> Recorded:
    """Return the records that the figures are computed from; the cases are not needed again."""
    return name, tuple(run.outcomes())


def sections(records: Sequence[Recorded], scoring: Scoring) -> list[Section]:
    """Everything there is to say about these runs. Bugs without an answer count as not reproduced, always."""
    parts = [_shares(records, scoring.seed)]
    own = [(name, own_records) for name, own_records in records if drafted(own_records)]
    if own:
        parts += [_rankings(own, scoring.seed), _fates(own)]
    if len(records) > 1:
        parts.append(_compared(records))
    return parts


def _shares(runs: Sequence[Recorded], seed: int) -> Section:
    scores = [
        (name, RunScores(reproduced(records), sum(r.failed for r in records), Resampling(seed)))
        for name, records in runs
    ]
    bare = {name: RunScores(reproduced(records, plain=True), 0, NO_INTERVALS).share for name, records in runs}
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            score.instances,
            score.reproduced,
            percentage(score.share),
            _ends(score.interval),
            percentage(bare[name]),
            score.failed,
        )
        for name, score in scores
    ]
    quoted: list[tuple[Cell, ...]] = [
        (f"{row.model}, {row.benchmark}: {row.setting} (paper)", None, None, None, "", percentage(row.brt), None)
        for row in ROWS
        if row.layer == "Remember"
    ]
    header = ("run", "instances", "reproduced", "%BRT", "95 % interval", "%BRT plain", "without an answer")
    note = "Plain: LIBRO's own method, so that drafts which were repaired or inverted count for nothing."
    table = Table(header, (*rows, *quoted), quoted_from=len(rows), note=note)
    series = Series(
        "%BRT",
        [None if score.share is None else 100 * score.share for _, score in scores],
        [_bar(score.interval) for _, score in scores],
    )
    draw = partial(bars, [name for name, _ in scores], [series], ylabel="%BRT", top=100)
    figures = (Figure(draw, "%BRT of each run."),) if len(scores) > 1 else ()
    data = {"brt": {name: {**score.as_json(), "brt_plain": bare[name]} for name, score in scores}}
    text = "A bug counts as reproduced if a test fails on the buggy and passes on the fixed version."
    return Section("Bugs reproduced", (text,), (table,), figures, data)


def _rankings(runs: Sequence[Recorded], seed: int) -> Section:
    scores = [(name, RankingScores(*rankings(records), how=Resampling(seed))) for name, records in runs]
    names = (*(f"acc@{n}" for n in NS), *(f"wef@{n}" for n in NS))
    header = ("run", "reproducible", *names, "precision, bugs", "precision, tests", "recall")
    rows: list[tuple[Cell, ...]] = [
        (
            f"{name} ({score.bugs} bugs)",
            score.reproducible,
            *(score.acc[n] for n in NS),
            *(score.wef[n] for n in NS),
            score.precision,
            score.precision_of_tests,
            score.recall,
        )
        for name, score in scores
    ]
    note = "Counts over the bugs with a suggestion. Precision: LIBRO's is of bugs, Bloom's of tests."
    table = Table(header, (*rows, _LIBRO), quoted_from=len(rows), note=note)
    return Section("Suggestions", tables=(table,), data={"suggestions": {n: e.as_json() for n, e in scores}})


def _fates(runs: Sequence[Recorded]) -> Section:
    fates = ("failed", "passed", "unusable", "skipped", "not run")
    rows: list[tuple[Cell, ...]] = []
    for name, records in runs:
        drafts = [draft for record in records for draft in record.details.get("drafts", ())]
        counts = Counter(str(draft["fate"]) for draft in drafts)
        right = sum(bool(draft["brt"]) for draft in drafts)
        mended, turned = (sum(bool(draft[what]) for draft in drafts) for what in ("repaired", "inverted"))
        rows.append((name, len(drafts), *(counts[fate] for fate in fates), mended, turned, right))
    header = ("run", "drafts", *fates, "repaired", "inverted", "reproduce the bug")
    return Section("Drafts", ("What each draft did on the buggy version.",), (Table(header, tuple(rows)),))


def _compared(runs: Sequence[Recorded]) -> Section:
    """Each run beside the first: how far a changed setting keeps what the baseline reproduced."""
    (first, baseline), *others = [(name, reproduced(records)) for name, records in runs]
    comparisons = [(name, compare(baseline, outcomes)) for name, outcomes in others]
    rows = tuple(_row(name, comparison) for name, comparison in comparisons)
    header = ("run", "bugs in both", "%BRT before", "%BRT", "consistency %", "lost", "gained", "McNemar p")
    note = "Consistency: of the bugs reproduced by the first run, the share that this run reproduces too."
    data: dict[str, Any] = {"compared": {name: comparison.as_json() for name, comparison in comparisons}}
    return Section(f"Beside {first}", tables=(Table(header, rows, note=note),), data=data)


def _row(name: str, comparison: Comparison) -> tuple[Cell, ...]:
    shares = (percentage(comparison.baseline), percentage(comparison.altered), percentage(comparison.consistency))
    return (name, comparison.bugs, *shares, comparison.lost, comparison.gained, comparison.p)


def _ends(estimate: Estimate, scale: float = 100, digits: int = 1) -> str:
    low, high = estimate.low, estimate.high
    return "" if low is None or high is None else f"{scale * low:.{digits}f} to {scale * high:.{digits}f}"


def _three(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _bar(estimate: Estimate) -> tuple[float, float] | None:
    low, high = estimate.low, estimate.high
    return None if low is None or high is None else (100 * low, 100 * high)


def _cases(source: str) -> Iterator[Case]:
    return iter(read_cases(source).values())


def _sample(score: Recorded) -> Sample:
    name, records = score
    outcomes = reproduced(records)
    hits = np.array(list(outcomes.values()), dtype=float)
    knew = {
        record.task_id.partition("/")[0]: record.recognised for record in records if record.recognised is not None
    }
    return Sample(name, list(outcomes), lambda draws: {"brt": ratio(hits[draws].sum(-1), draws.shape[-1])}, knew)


BRT: Benchmark[Case, Recorded] = Benchmark(
    "brt", _cases, lambda case: case.instance_id, recorded, sections, _sample
)
#: The same where tests are given: a task is a candidate.
CANDIDATES: Benchmark[Candidate, Recorded] = Benchmark(
    "brt", read_candidates, lambda candidate: candidate.task, recorded, sections, _sample
)
