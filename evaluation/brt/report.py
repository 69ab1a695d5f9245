"""Scores of runs of ``replay brt``: %BRT, rankings, the fate of drafts, and settings side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from bot.core.errors import OperatorError
from evaluation.benchmark import Benchmark, Scoring
from evaluation.bloom.layers import ROWS, compare
from evaluation.brt.cases import Candidate, Case, read_candidates, read_cases
from evaluation.brt.libro import all_bugs, read_outcomes, read_rankings, write_libro
from evaluation.brt.metrics import NS, Bug, RankingScores, RunScores, bugs_of, rankings, reproduced
from evaluation.report.cutoff import Sample
from evaluation.report.figures import Series, bars
from evaluation.report.page import Cell, Figure, Section, Table, percentage
from evaluation.report.terminal import data_of, tell
from evaluation.run.folder import RunFolder
from evaluation.statistics import NO_INTERVALS, Resampling, resampled_mean

BENCHMARK = "brt"


@dataclass(frozen=True)
class ScoredRun:
    """The bugs of a run, by the name that the run goes by."""

    name: str
    bugs: tuple[Bug, ...]

    @property
    def is_drafted(self) -> bool:
        return any(bug.is_drafted for bug in self.bugs)


#: LIBRO on Defects4J, 350 bugs after selection, as its replication package gives it.
_LIBRO: tuple[Cell, ...] = ("LIBRO, Defects4J (350 bugs)", 219, 149, 184, 199, 201, 539, 797, 0.626, None, 0.873)


def read_run(path: Path, plain: bool = False) -> tuple[Bug, ...]:
    """The bugs of a run of ``replay brt``. Raises OperatorError for a run of another benchmark."""
    bugs = _bugs(RunFolder.read(path, BENCHMARK))
    return tuple(bug.plain for bug in bugs) if plain else bugs


def _bugs(run: RunFolder) -> tuple[Bug, ...]:
    return bugs_of(run.outcomes(), are_drafts="drafting" in run.facts.config)


def score_command(
    rankings: Path | None,
    before: Path | None,
    bugs: str | None,
    outcomes: str | None,
    features: str | None,
    run: Path | None,
    plain: bool,
    export: Path | None,
    seed: int,
    replicates: int,
    cutoff: datetime | None,
    cases: str | None,
    as_json: bool,
) -> None:
    """Score rankings of tests (acc@n, wef@n), LIBRO's outcomes, or a run of replay (%BRT and its rankings)."""
    sources = {"rankings": rankings, "outcomes": outcomes, "run": run}
    if sum(source is not None for source in sources.values()) != 1:
        raise click.UsageError("give one of --rankings, --outcomes and --run")
    for option, setting, source in (
        ("before", before, "rankings"), ("bugs", bugs, "rankings"), ("features", features, "outcomes"),
        ("plain", plain, "run"), ("export", export, "run"), ("cutoff", cutoff, "run"), ("cases", cases, "run"),
    ):  # fmt: skip
        if setting and sources[source] is None:
            raise click.UsageError(f"--{option} goes with --{source}")
    how = Resampling(seed, replicates)
    value: dict[str, Any]
    if rankings is not None:
        value, parts = _rankings_scores(rankings, before, bugs, how)
    elif outcomes is not None:
        value, parts = _run_scores(read_outcomes(outcomes, features), how)
    else:
        assert run is not None
        bugs_of_run = read_run(run, plain)
        value, parts = _run_scores(bugs_of_run, how)
        if export is not None:
            write_libro(bugs_of_run, export)
        dated = cases or RunFolder.read(run).facts.tasks.source
        scoring = Scoring("count", seed, replicates, cutoff)
        aged = BRT.contamination([ScoredRun(run.name, bugs_of_run)], dated, scoring)
        value, parts = {**value, **data_of(aged)}, [*parts, *aged]
    tell(parts, as_json, value)


def _rankings_scores(
    source: Path, before: Path | None, bugs: str | None, how: Resampling
) -> tuple[dict[str, Any], list[Section]]:
    ranked = read_rankings(source)
    scores = RankingScores(ranked, None if before is None else read_rankings(before), how)
    value, parts = scores.as_json(), [_ranked_section(scores)]
    if bugs is not None:
        total = int(bugs) if bugs.isdecimal() else len(all_bugs(bugs))
        if total < len(ranked):
            raise OperatorError(f"--bugs {bugs}: {total} bugs, and {len(ranked)} are ranked")
        value |= {"instances": total, "brt": scores.reproducible / total}
        text = f"%BRT: {percentage(scores.reproducible / total)} ({scores.reproducible} of {total} bugs)"
        parts.append(Section("", (text,)))
    return value, parts


def _run_scores(bugs: Sequence[Bug], how: Resampling) -> tuple[dict[str, Any], list[Section]]:
    brt, bare = _brt(bugs, how), _brt([bug.plain for bug in bugs], how)
    broken = sum((bug.error or "").startswith("environment:") for bug in bugs)
    value = {**brt.as_json(), "brt_plain": bare.share}
    rows: list[tuple[Cell, ...]] = [
        ("reproduced", brt.reproduced, ""),
        ("%BRT", percentage(brt.share), brt.interval.ends(100, 1)),
        ("%BRT, no draft repaired or inverted", percentage(bare.share), bare.interval.ends(100, 1)),
        ("without an answer", brt.failed, ""),
        ("of these, no test can be run", broken, ""),
    ]
    parts = [Section("", tables=(Table((f"{brt.instances} instances", "value", "95 % interval"), tuple(rows)),))]
    if any(bug.is_drafted for bug in bugs):
        ranked = RankingScores(*rankings(bugs), how=how)
        value["suggestions"] = ranked.as_json()
        parts += [_ranked_section(ranked), _fates([ScoredRun("drafts", tuple(bugs))])]
    return value, parts


def _brt(bugs: Sequence[Bug], how: Resampling) -> RunScores:
    return RunScores(reproduced(bugs), sum(bug.error is not None and not bug.tests for bug in bugs), how)


def _ranked_section(scores: RankingScores) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, counts in (("acc", scores.acc), ("wef", scores.wef)):
        for n in NS:
            estimate = scores.intervals[f"{name}@{n}"]
            rows.append((f"{name}@{n}", counts[n], estimate.value, estimate.ends(1, 3)))
    ends = scores.intervals["suggestion_precision"].ends(1, 3)
    rows += [
        ("suggestion precision, bugs (LIBRO)", scores.precision, "", ends),
        ("suggestion precision, tests (Bloom)", scores.precision_of_tests, "", ""),
        ("suggestion recall", scores.recall, "", ""),
    ]
    header = (f"{scores.bugs} bugs, {scores.reproducible} reproducible", "value", "per bug", "95 % interval")
    return Section("", tables=(Table(header, tuple(rows)),))


def score_run(run: RunFolder, name: str, source: str, scoring: Scoring) -> ScoredRun:
    """Return the bugs that the figures are computed from; the cases are not needed again."""
    return ScoredRun(name, _bugs(run))


def sections(runs: Sequence[ScoredRun], scoring: Scoring) -> list[Section]:
    """All tables of these runs. Bugs without an answer count as not reproduced, always."""
    parts = [_shares(runs, scoring.seed)]
    own = [run for run in runs if run.is_drafted]
    if own:
        parts += [_rankings(own, scoring.seed), _fates(own)]
    if len(runs) > 1:
        parts.append(_compared(runs))
    return [*parts, swt_section([(run.name, run.bugs) for run in runs])]


def _shares(runs: Sequence[ScoredRun], seed: int) -> Section:
    scores = [(run.name, _brt(run.bugs, Resampling(seed))) for run in runs]
    plain = [_brt([bug.plain for bug in run.bugs], NO_INTERVALS).share for run in runs]
    rows: list[tuple[Cell, ...]] = []
    for (name, score), bare in zip(scores, plain, strict=True):
        shares = (percentage(score.share), score.interval.ends(100, 1), percentage(bare))
        rows.append((name, score.instances, score.reproduced, *shares, score.failed))
    quoted: list[tuple[Cell, ...]] = [
        (f"{row.model}, {row.benchmark}: {row.setting} (paper)", None, None, None, "", percentage(row.brt), None)
        for row in ROWS
        if row.layer == "Remember"
    ]
    header = ("run", "instances", "reproduced", "%BRT", "95 % interval", "%BRT plain", "without an answer")
    note = "Plain: LIBRO's own method, so that drafts which were repaired or inverted count for nothing."
    table = Table(header, (*rows, *quoted), quoted_from=len(rows), note=note)
    series = Series.of("%BRT", [score.interval for _, score in scores], 100)
    draw = partial(bars, [name for name, _ in scores], [series], ylabel="%BRT", top=100)
    figures = (Figure(draw, "%BRT of each run."),) if len(scores) > 1 else ()
    data = {
        "brt": {
            name: {**score.as_json(), "brt_plain": bare} for (name, score), bare in zip(scores, plain, strict=True)
        }
    }
    text = "A bug counts as reproduced if a test fails on the buggy and passes on the fixed version."
    return Section("Bugs reproduced", (text,), (table,), figures, data)


def _rankings(runs: Sequence[ScoredRun], seed: int) -> Section:
    scores = [(run.name, RankingScores(*rankings(run.bugs), how=Resampling(seed))) for run in runs]
    names = (*(f"acc@{n}" for n in NS), *(f"wef@{n}" for n in NS))
    header = ("run", "reproducible", *names, "precision, bugs", "precision, tests", "recall")
    rows: list[tuple[Cell, ...]] = []
    for name, score in scores:
        counts = (score.reproducible, *score.acc.values(), *score.wef.values())
        shares = (score.precision, score.precision_of_tests, score.recall)
        rows.append((f"{name} ({score.bugs} bugs)", *counts, *shares))
    note = "Counts over the bugs with a suggestion. Precision: LIBRO's is of bugs, Bloom's of tests."
    table = Table(header, (*rows, _LIBRO), quoted_from=len(rows), note=note)
    data = {"suggestions": {name: score.as_json() for name, score in scores}}
    return Section("Suggestions", tables=(table,), data=data)


def _fates(runs: Sequence[ScoredRun]) -> Section:
    fates = ("failed", "passed", "unusable", "skipped", "not run")
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        drafts = [test for bug in run.bugs for test in bug.tests]
        counts = Counter(test.fate for test in drafts)
        flags = (sum(getattr(test, name) for test in drafts) for name in ("repaired", "inverted", "brt"))
        rows.append((run.name, len(drafts), *(counts[fate] for fate in fates), *flags))
    header = ("run", "drafts", *fates, "repaired", "inverted", "reproduce the bug")
    return Section("Drafts", ("The outcome of each draft on the buggy version.",), (Table(header, tuple(rows)),))


def _compared(runs: Sequence[ScoredRun]) -> Section:
    """Compare each run with the first: how far a changed setting keeps what the baseline reproduced."""
    first, *others = runs
    comparisons = [(run.name, compare(reproduced(first.bugs), reproduced(run.bugs))) for run in others]
    rows: list[tuple[Cell, ...]] = []
    for name, comparison in comparisons:
        shares = map(percentage, (comparison.baseline, comparison.altered, comparison.consistency))
        rows.append((name, comparison.bugs, *shares, comparison.lost, comparison.gained, comparison.p))
    header = ("run", "bugs in both", "%BRT before", "%BRT", "consistency %", "lost", "gained", "McNemar p")
    note = "Consistency: of the bugs reproduced by the first run, the share that this run reproduces too."
    data: dict[str, Any] = {"compared": {name: comparison.as_json() for name, comparison in comparisons}}
    return Section(f"Beside {first.name}", tables=(Table(header, tuple(rows), note=note),), data=data)


def _sample(run: ScoredRun) -> Sample:
    hits = np.array([bug.reproduced for bug in run.bugs], dtype=float)
    names = [bug.bug_id for bug in run.bugs]
    recognised = {bug.bug_id: bug.recognised for bug in run.bugs if bug.recognised is not None}
    return Sample(run.name, names, lambda draws: {"brt": resampled_mean(hits, draws)}, recognised)


BRT: Benchmark[Case, ScoredRun] = Benchmark(
    BENCHMARK,
    lambda source: iter(read_cases(source).values()),
    lambda case: case.instance_id,
    score_run,
    sections,
    _sample,
)
#: The same if tests are given: a task is a candidate.
CANDIDATES: Benchmark[Candidate, ScoredRun] = Benchmark(
    BENCHMARK, read_candidates, lambda candidate: candidate.task, score_run, sections, _sample
)


#: Set, method, model, success rate S in percent: swtbench.com, the rows in unit test mode.
PUBLISHED: tuple[tuple[str, str, str, float], ...] = (
    ("Verified", "LogicStar AI", "L*Agent v1", 84.0),
    ("Verified", "PatchTwin+Guard", "GPT-5", 82.9),
    ("Verified", "OpenHands", "GPT-5", 79.8),
    ("Verified", "PatchTwin+Guard", "GPT-5-mini", 75.8),
    ("Verified", "ReProAgent", "GPT-5-mini", 69.7),
    ("Verified", "OpenHands", "GPT-5-mini", 62.4),
    ("Verified", "e-Otter++", "Claude 3.7 Sonnet", 62.1),
    ("Verified", "Amazon Q Developer Agent", "v20250405-dev", 51.0),
    ("Verified", "AssertFlip", "GPT-4o", 45.5),
    ("Verified", "Otter++", "GPT-4o", 37.4),
    ("Verified", "Otter", "GPT-4o", 31.6),
    ("Verified", "OpenHands", "Claude 3.5 Sonnet", 27.7),
    ("Verified", "LIBRO", "GPT-4o", 17.8),
    ("Verified", "Zero-Shot Plus", "GPT-4o + BM25", 14.3),
    ("Lite", "ReProAgent", "GPT-5-mini", 56.2),
    ("Lite", "e-Otter++", "Claude 3.7 Sonnet", 52.5),
    ("Lite", "Amazon Q Developer Agent", "v20250405-dev", 39.9),
    ("Lite", "AssertFlip", "GPT-4o", 38.0),
    ("Lite", "OpenHands", "Claude 3.5 Sonnet, CI set-up", 28.3),
    ("Lite", "OpenHands", "Claude 3.5 Sonnet", 22.8),
    ("Lite", "SWE-Agent+", "GPT-4", 18.5),
    ("Lite", "SWE-Agent", "GPT-4", 15.9),
    ("Lite", "LIBRO", "GPT-4", 14.1),
    ("Lite", "Aider", "GPT-4", 12.7),
    ("Lite", "Zero-Shot Plus", "GPT-4 + BM25", 9.4),
    ("Lite", "AutoCodeRover", "GPT-4", 9.1),
    ("Lite", "Zero-Shot Base", "GPT-4 + BM25", 3.6),
)
INSTANCES = {"Verified": 433, "Lite": 276}


def swt_section(runs: Sequence[tuple[str, Sequence[Bug]]]) -> Section:
    """Our runs beside SWT-Bench's rows. A bug without an answer counts as failed."""
    data: dict[str, dict[str, int]] = {}
    rows: list[tuple[Cell, ...]] = []
    for name, bugs in runs:
        answers = [bug.answer for bug in bugs]
        total = len(answers)
        counts = {
            "answered": sum(answer is not None and answer.applied for answer in answers),
            "failing": sum(
                answer is not None and answer.base is not None and answer.base.fails for answer in answers
            ),
            "reproduced": sum(answer is not None and answer.brt for answer in answers),
        }
        data[name] = {"instances": total, **counts}
        rows.append((name, total, *(percentage(count / total if total else None) for count in counts.values())))
    quoted: list[tuple[Cell, ...]] = [
        (f"{method}, {model} ({group})", INSTANCES[group], None, None, f"{rate:.1f}")
        for group, method, model, rate in PUBLISHED
    ]
    header = ("run", "instances", "with a test that applies %", "fails before the fix %", "success rate S %")
    note = (
        "S: the one answer for an instance (our first suggestion, or the first given test) fails before the fix "
        "and passes after it. SWT-Bench's rows are from swtbench.com, July 2026, without those that run a script "
        "instead of a test. Sets, environments and dates differ."
    )
    table = Table(header, (*rows, *quoted), quoted_from=len(rows), note=note)
    return Section("Beside SWT-Bench", tables=(table,), data={"swt_bench": data})
