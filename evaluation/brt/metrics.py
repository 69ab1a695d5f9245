"""The figures of test generation from bug reports: rankings, records of runs, and what both come to.

Definitions: LIBRO (Kang, Yoon, Yoo: Large Language Models are Few-shot Testers, section V) and the
evaluation scheme of layer Evaluate in the cognitive layered framework (Qureshi, Jiang). Where the prose
leaves room the definition is the one under which LIBRO's recorded rankings give LIBRO's printed figures.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, ValidationError

from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from evaluation.run.folder import Record
from evaluation.statistics import USUAL, Array, Counts, Estimate, Resampling, bootstrap, ratio

#: What stands in the column ``first_success_rank`` of a bug that no test reproduces.
NEVER = 100_000


class Ranking(Frozen):
    """How the ranked tests of one bug turned out: where the first that reproduces it stands."""

    bug_id: str
    first_success_rank: int | None = Field(
        ge=1, description="rank, from 1, of the first bug-reproducing test; None if there is none"
    )
    total_success_fibs: int = Field(ge=0, description="distinct failing tests that reproduce the bug")
    num_clusters: int = Field(
        ge=0,
        description="length of the ranked list: the syntactically distinct tests that fail on the buggy "
        "version. (The column's name notwithstanding it does not count clusters of failure output.)",
    )

    @property
    def reproducible(self) -> bool:
        """True if any test of the list reproduces the bug."""
        return self.first_success_rank is not None


def read_rankings(path: Path) -> tuple[Ranking, ...]:
    """Read a CSV with the columns bug_id, first_success_rank, total_success_fibs and num_clusters.

    Raises OperatorError, naming file and line, if a column is missing, a value is no whole number, a bug
    is listed twice, or nothing is listed at all.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            missing = set(Ranking.model_fields) - set(reader.fieldnames or ())
            if missing:
                raise OperatorError(f"{path}: no column {', '.join(sorted(missing))}")
            rankings = tuple(_ranking(row, f"{path}, line {reader.line_num}") for row in reader)
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise OperatorError(f"{path}: no CSV text: {error}") from error
    return _distinct(rankings, path)


def _ranking(row: dict[str, str | None], where: str) -> Ranking:
    values = {name: row[name] for name in Ranking.model_fields}
    rank = values["first_success_rank"]
    if rank is not None and rank.strip() == str(NEVER):
        values["first_success_rank"] = None
    elif rank is None or not rank.strip():
        raise OperatorError(f"{where}: first_success_rank: empty (write {NEVER} for never)")
    try:
        ranking = Ranking.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise OperatorError(f"{where}: {first['loc'][0]}: {first['msg']}") from error
    if ranking.first_success_rank is not None and ranking.first_success_rank > ranking.num_clusters:
        raise OperatorError(f"{where}: first_success_rank lies behind the end of the list (num_clusters)")
    return ranking


def _distinct(rankings: tuple[Ranking, ...], path: Path) -> tuple[Ranking, ...]:
    if not rankings:
        raise OperatorError(f"{path}: no bug is listed")
    identities: set[str] = set()
    for ranking in rankings:
        if ranking.bug_id in identities:
            raise OperatorError(f"{path}: {ranking.bug_id} is listed twice")
        identities.add(ranking.bug_id)
    return rankings


def found_at_n(rankings: Sequence[Ranking], n: int) -> tuple[bool, ...]:
    """For each bug, whether a reproducing test is among the first ``n`` suggestions; acc@n is their sum."""
    return tuple(r.first_success_rank is not None and r.first_success_rank <= n for r in rankings)


def wasted_at_n(rankings: Sequence[Ranking], n: int) -> tuple[int, ...]:
    """For each bug, the wrong tests read before the first right one, giving up after ``n`` tests.

    Their sum is wef@n, the wasted effort.
    A list shorter than ``n`` without a right test costs its whole length. Bugs that no test reproduces
    count too: the reader does not know them beforehand. (The layered framework's prose restricts the
    measure to bugs with a right test among the first ``n``; that gives 70 instead of 201 at n = 1.)
    """
    return tuple(_wasted(ranking, n) for ranking in rankings)


def _wasted(ranking: Ranking, n: int) -> int:
    wrong_before = ranking.num_clusters if ranking.first_success_rank is None else ranking.first_success_rank - 1
    return min(n, wrong_before)


def precision_of_tests(suggested: Sequence[Ranking]) -> float | None:
    """Of the suggested tests, the share that reproduces its bug (layer Evaluate); None if none is suggested."""
    tests = sum(r.num_clusters for r in suggested)
    return sum(r.total_success_fibs for r in suggested) / tests if tests else None


def suggestion_precision(suggested: Sequence[Ranking]) -> float | None:
    """LIBRO's: of the bugs for which something is suggested, the share that a suggested test reproduces."""
    if not suggested:
        return None
    return sum(r.reproducible for r in suggested) / len(suggested)


def suggestion_recall(suggested: Sequence[Ranking], generated: Sequence[Ranking]) -> float | None:
    """Of the bugs that some generated test reproduces, the share for which one is suggested.

    ``generated`` are the rankings before the agreement threshold left bugs out, ``suggested`` those after.
    None if no generated test reproduces anything.
    """
    reproducible = {r.bug_id for r in generated if r.reproducible}
    if not reproducible:
        return None
    return len(reproducible & {r.bug_id for r in suggested if r.reproducible}) / len(reproducible)


def brt_share(reproduced: Mapping[str, bool]) -> float | None:
    """%BRT as a fraction: bugs with at least one test that fails on the buggy and passes on the fixed version.

    Every bug that was tried belongs into ``reproduced``: one that could not be run is False, never absent.
    None if there is no bug.
    """
    if not reproduced:
        return None
    return sum(reproduced.values()) / len(reproduced)


def baseline_consistency(baseline: Mapping[str, bool], altered: Mapping[str, bool]) -> float | None:
    """Of the bugs reproduced under the baseline, the share that is reproduced under the altered setting too.

    Only bugs tried in both settings are compared. None if the baseline reproduced none of them.
    Source: layered framework, section 3.2, Baseline Consistency Rate.
    """
    held = [altered[bug] for bug, success in baseline.items() if success and bug in altered]
    return sum(held) / len(held) if held else None


def drafted(records: Iterable[Record]) -> bool:
    """Return True if the run drafted its tests itself."""
    return any("drafts" in record.details for record in records)


def reproduced(records: Iterable[Record], plain: bool = False) -> dict[str, bool]:
    """For each bug whether any of its tests reproduces it; one without a usable answer is not reproduced.

    ``plain``: LIBRO's own method, so that drafts which were repaired or inverted count for nothing.
    """
    outcomes: dict[str, bool] = {}
    for record in records:
        bug = str(record.details.get("instance_id") or _bug_of(record))
        outcomes[bug] = outcomes.get(bug, False) or any(
            judgement["brt"] and not (plain and (judgement.get("repaired") or judgement.get("inverted")))
            for judgement in _judgements(record)
        )
    return outcomes


def rankings(records: Iterable[Record]) -> tuple[tuple[Ranking, ...], tuple[Ranking, ...]]:
    """Return the suggested and the generated tests of a run that drafted, as rankings.

    Suggested are the bugs for which tests were shown, with the rank of the first right one. Generated are all
    bugs with a test that fails on the buggy version: the pool from which selection chose.
    """
    suggested: list[Ranking] = []
    generated: list[Ranking] = []
    for record in records:
        if "drafts" not in record.details:
            continue
        right = {judgement["candidate_id"]: bool(judgement["brt"]) for judgement in _judgements(record)}
        suggestions = [str(identity) for identity in record.details.get("shown", ())]
        if suggestions:
            suggested.append(_ranked(record, [right.get(suggestion, False) for suggestion in suggestions]))
        failing = [
            bool(judgement["brt"]) for judgement in _judgements(record) if judgement.get("fate") == "failed"
        ]
        if failing:
            # The pool as a whole has no order of its own: the right ones are put first.
            generated.append(_ranked(record, sorted(failing, reverse=True)))
    return tuple(suggested), tuple(generated)


def _ranked(record: Record, right: list[bool]) -> Ranking:
    return Ranking(
        bug_id=record.task_id,
        first_success_rank=right.index(True) + 1 if any(right) else None,
        total_success_fibs=sum(right),
        num_clusters=len(right),
    )


def _judgements(record: Record) -> list[dict[str, Any]]:
    if "drafts" in record.details:
        return list(record.details["drafts"])
    return [{"brt": bool(record.details.get("brt")), "candidate_id": record.task_id}]


def _bug_of(record: Record) -> str:
    """A record that failed has no details: its task id names bug and candidate."""
    return record.task_id.partition("/")[0]


#: How many suggestions a person looks at (LIBRO, section V.C).
NS = (1, 3, 5)


class RankingScores:
    """acc@n, wef@n and what they are made of."""

    def __init__(
        self,
        rankings: Sequence[Ranking],
        generated: Sequence[Ranking] | None = None,
        how: Resampling = USUAL,
    ) -> None:
        """``generated``: the rankings before selection left bugs out; without it there is no recall."""
        self.bugs = len(rankings)
        self.reproducible = sum(ranking.reproducible for ranking in rankings)
        self.acc = {n: sum(found_at_n(rankings, n)) for n in NS}
        self.wef = {n: sum(wasted_at_n(rankings, n)) for n in NS}
        self.precision = suggestion_precision(rankings)
        self.precision_of_tests = precision_of_tests(rankings)
        self.recall = None if generated is None else suggestion_recall(rankings, generated)
        self.intervals = _intervals(rankings, how)

    def as_json(self) -> dict[str, Any]:
        """Counts as LIBRO prints them, and shares of bugs with their 95 % intervals."""
        return {
            "bugs": self.bugs,
            "reproducible": self.reproducible,
            **{f"acc@{n}": count for n, count in self.acc.items()},
            **{f"wef@{n}": count for n, count in self.wef.items()},
            "suggestion_precision": self.precision,
            "suggestion_precision_of_tests": self.precision_of_tests,
            "suggestion_recall": self.recall,
            "per_bug": {name: dict(vars(estimate)) for name, estimate in self.intervals.items()},
        }


def _intervals(rankings: Sequence[Ranking], how: Resampling) -> dict[str, Estimate]:
    """Means over bugs: the share found (acc), the tests wasted (wef), the share with any right test."""
    columns: dict[str, Any] = {"suggestion_precision": [ranking.reproducible for ranking in rankings]}
    columns |= {f"acc@{n}": found_at_n(rankings, n) for n in NS}
    columns |= {f"wef@{n}": wasted_at_n(rankings, n) for n in NS}
    return means(columns, len(rankings), how)


def means(columns: Mapping[str, Sequence[float]], n: int, how: Resampling = USUAL) -> dict[str, Estimate]:
    """The mean of each column over ``n`` tasks with its bootstrap interval."""
    arrays = {name: np.asarray(values, dtype=float) for name, values in columns.items()}

    def statistics(draws: Counts) -> dict[str, Array]:
        return {name: ratio(values[draws].sum(axis=1), draws.shape[1]) for name, values in arrays.items()}

    return bootstrap(statistics, n, how)


class RunScores:
    """%BRT over instances of a run, errors and missing ones counted as not reproduced."""

    def __init__(self, reproduced: Mapping[str, bool], failed: int, how: Resampling = USUAL) -> None:
        self.instances = len(reproduced)
        self.reproduced = sum(reproduced.values())
        self.failed = failed
        self.share = brt_share(reproduced)
        columns = {"brt": [float(value) for value in reproduced.values()]}
        self.interval = means(columns, len(reproduced), how)["brt"]

    def as_json(self) -> dict[str, Any]:
        """Shares from 0 to 1; ``brt`` is %BRT as a fraction."""
        return {
            "instances": self.instances,
            "reproduced": self.reproduced,
            "without_answer": self.failed,
            "brt": self.share,
            "brt_interval": [self.interval.low, self.interval.high],
        }
