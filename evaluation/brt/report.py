"""A report on runs of ``replay brt``: %BRT, rankings, what became of the drafts, and settings side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from evaluation.benchmark import Benchmark, Scoring
from evaluation.bloom import paper
from evaluation.bloom.comparison import Comparison, compare
from evaluation.brt import outcomes
from evaluation.brt.cases import Candidate, Case, read_candidates, read_cases
from evaluation.brt.scores import NS, RankingScores, RunScores
from evaluation.report.figures import Series, bars
from evaluation.report.page import Cell, Figure, Section, Table
from evaluation.run.folder import Record, RunFolder
from evaluation.statistics import Estimate

#: A run by name: its records, and one for each task that it did not come to.
Recorded = tuple[str, tuple[Record, ...]]

#: LIBRO on Defects4J, 350 bugs after selection, as its replication package gives it.
_LIBRO: tuple[Cell, ...] = ("LIBRO, Defects4J (350 bugs)", 219, 149, 184, 199, 201, 539, 797, 0.626, 0.873)


def recorded(run: RunFolder, name: str, source: str, scoring: Scoring) -> Recorded:
    """What the figures are made of; the cases themselves are not needed again."""
    return name, tuple(run.outcomes())


def sections(records: Sequence[Recorded], scoring: Scoring) -> list[Section]:
    """Everything there is to say about these runs. Bugs without an answer count as not reproduced, always."""
    seed = scoring.seed
    found = [_shares(records, seed)]
    drafted = [(name, each) for name, each in records if outcomes.drafted(each)]
    if drafted:
        found += [_rankings(drafted, seed), _fates(drafted)]
    if len(records) > 1:
        found.append(_compared(records))
    return found


def _shares(runs: Sequence[tuple[str, tuple[Record, ...]]], seed: int) -> Section:
    scores = [
        (name, RunScores(outcomes.reproduced(each), sum(r.failed for r in each), seed=seed)) for name, each in runs
    ]
    rows: list[tuple[Cell, ...]] = [
        (name, each.instances, each.reproduced, _percent(each.share), _ends(each.interval), each.failed)
        for name, each in scores
    ]
    quoted: list[tuple[Cell, ...]] = [
        (f"{row.model}, {row.benchmark}: {row.setting} (paper)", None, None, _percent(row.brt), "", None)
        for row in paper.ROWS
        if row.layer == "Remember"
    ]
    header = ("run", "instances", "reproduced", "%BRT", "95 % interval", "without an answer")
    table = Table(header, (*rows, *quoted), quoted_from=len(rows))
    shown = Series(
        "%BRT",
        [None if each.share is None else 100 * each.share for _, each in scores],
        [_bar(each.interval) for _, each in scores],
    )
    draw = partial(bars, [name for name, _ in scores], [shown], ylabel="%BRT", top=100)
    picture = Figure(draw, "%BRT of each run.")
    figures = (picture,) if len(scores) > 1 else ()
    data = {"brt": {name: each.as_json() for name, each in scores}}
    text = "A bug counts as reproduced where a test fails on the buggy and passes on the fixed version."
    return Section("Bugs reproduced", (text,), (table,), figures, data)


def _rankings(runs: Sequence[tuple[str, tuple[Record, ...]]], seed: int) -> Section:
    scores = [(name, RankingScores(*outcomes.rankings(each), seed=seed)) for name, each in runs]
    header = ("run", "reproducible", *(f"acc@{n}" for n in NS), *(f"wef@{n}" for n in NS), "precision", "recall")
    rows: list[tuple[Cell, ...]] = [
        (
            f"{name} ({each.bugs} bugs)",
            each.reproducible,
            *(each.acc[n] for n in NS),
            *(each.wef[n] for n in NS),
            each.precision,
            each.recall,
        )
        for name, each in scores
    ]
    note = "Counts over the bugs for which something was suggested. Precision and recall are of suggestions."
    table = Table(header, (*rows, _LIBRO), quoted_from=len(rows), note=note)
    return Section("Suggestions", tables=(table,), data={"suggestions": {n: e.as_json() for n, e in scores}})


def _fates(runs: Sequence[tuple[str, tuple[Record, ...]]]) -> Section:
    fates = ("failed", "passed", "unusable", "skipped", "not run")
    rows: list[tuple[Cell, ...]] = []
    for name, records in runs:
        drafts = [each for record in records for each in record.details.get("drafts", ())]
        counts = Counter(str(each["fate"]) for each in drafts)
        right = sum(bool(each["brt"]) for each in drafts)
        mended, turned = (sum(bool(each[what]) for each in drafts) for what in ("repaired", "inverted"))
        rows.append((name, len(drafts), *(counts[fate] for fate in fates), mended, turned, right))
    header = ("run", "drafts", *fates, "mended", "turned round", "reproduce the bug")
    return Section("Drafts", ("What each draft did on the buggy version.",), (Table(header, tuple(rows)),))


def _compared(runs: Sequence[tuple[str, tuple[Record, ...]]]) -> Section:
    """Each run beside the first: how far a changed setting keeps what the baseline reproduced."""
    (first, baseline), *others = [(name, outcomes.reproduced(each)) for name, each in runs]
    comparisons = [(name, compare(baseline, each)) for name, each in others]
    rows = tuple(_row(name, each) for name, each in comparisons)
    header = ("run", "bugs in both", "%BRT before", "%BRT", "consistency %", "lost", "gained", "McNemar p")
    note = "Consistency: of the bugs reproduced by the first run, the share that this run reproduces too."
    data: dict[str, Any] = {"compared": {name: each.as_json() for name, each in comparisons}}
    return Section(f"Beside {first}", tables=(Table(header, rows, note=note),), data=data)


def _row(name: str, each: Comparison) -> tuple[Cell, ...]:
    shares = (_percent(each.baseline), _percent(each.altered), _percent(each.consistency))
    return (name, each.bugs, *shares, each.lost, each.gained, each.p)


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.1f}"


def _ends(estimate: Estimate) -> str:
    low, high = estimate.low, estimate.high
    return "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"


def _bar(estimate: Estimate) -> tuple[float, float] | None:
    low, high = estimate.low, estimate.high
    return None if low is None or high is None else (100 * low, 100 * high)


def _cases(source: str) -> Iterator[Case]:
    return iter(read_cases(source).values())


BRT: Benchmark[Case, Recorded] = Benchmark("brt", _cases, lambda case: case.instance_id, recorded, sections)
#: The same where tests are given: a task is a candidate.
CANDIDATES: Benchmark[Candidate, Recorded] = Benchmark(
    "brt", read_candidates, lambda candidate: candidate.task, recorded, sections
)
