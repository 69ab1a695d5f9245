"""The figures of test generation from bug reports: rankings, the bugs of a run, and their scores. Pure.

Definitions: LIBRO (Kang, Yoon, Yoo: Large Language Models are Few-shot Testers, section V) and the
evaluation scheme of layer Evaluate in the cognitive layered framework (Qureshi, Jiang). Where the prose
leaves room the definition is the one under which LIBRO's recorded rankings give LIBRO's printed figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field

from bot.core.frozen import Frozen, Lenient
from bot.reproduction.protocol import Candidate, TestOutcome
from bot.reproduction.select import FailingTest, rank
from evaluation.dataset import validated
from evaluation.run.folder import Familiarity, Record
from evaluation.statistics import USUAL, Array, Counts, Estimate, Resampling, bootstrap, resampled_mean

#: How many suggestions a person looks at (LIBRO, section V.C).
NS = (1, 3, 5)


class Features(Lenient):
    """LIBRO's features of a test that fails on the buggy version; keys instead of long texts."""

    signature: str = Field(description="equal for tests that fail alike")
    syntax: str = Field(description="equal for tests that differ in layout only")
    test_length: int = Field(ge=0)
    is_crash: bool
    actual_crash: bool = False
    actual_value_match: bool
    exception_type_match: bool
    test_exception_type_match: bool

    @property
    def match(self) -> bool:
        """True if the failure is the reported one: the exception of a crash, else the value (section III.D)."""
        return self.exception_type_match if self.is_crash else self.actual_value_match


class Draft(Lenient):
    """One test of a run, as its record holds it. A given test has no ``fate``."""

    candidate_id: str
    brt: bool = False
    applied: bool = False
    fate: str = ""
    repaired: bool = False
    inverted: bool = False
    base: TestOutcome | None = None
    features: Features | None = None


class _Details(Lenient):
    """The tests in a record: the drafts of a case, or one test that was given, among its other fields."""

    instance_id: str | None = None
    drafts: tuple[dict[str, Any], ...] | None = None
    suggestions: tuple[int | str, ...] = Field((), validation_alias="shown")


@dataclass(frozen=True)
class Bug:
    """The tests that a run has for one bug. ``suggested`` are the suggested ones, best first."""

    bug_id: str
    tests: tuple[Draft, ...] = ()
    suggested: tuple[Draft, ...] = ()
    is_drafted: bool = False
    error: str | None = None
    recognised: Familiarity | None = None

    @property
    def reproduced(self) -> bool:
        """True if any of its tests reproduces it."""
        return any(test.brt for test in self.tests)

    @property
    def answer(self) -> Draft | None:
        """The one test that counts where a system has one answer: the first suggested, or the first given."""
        tests = self.suggested if self.is_drafted else self.tests
        return tests[0] if tests else None

    @property
    def plain(self) -> Bug:
        """The bug by LIBRO's own method: drafts that were repaired or inverted are left out."""
        tests, suggested = (
            tuple(test for test in group if not (test.repaired or test.inverted))
            for group in (self.tests, self.suggested)
        )
        return replace(self, tests=tests, suggested=suggested)


def bugs_of(records: Iterable[Record], *, are_drafts: bool) -> tuple[Bug, ...]:
    """The bugs of a run. Without ``are_drafts`` each record is of a given test; they are put together by bug."""
    bugs: dict[str, Bug] = {}
    records = tuple(records)
    names = {str(name) for record in records if (name := record.details.get("instance_id"))}
    for record in records:
        details = validated(_Details.model_validate, record.details, f"record of {record.task_id}")
        # A record without details failed: its task id names the bug, and the candidate if tests were given.
        of_task = record.task_id
        if not are_drafts:
            others = (name for name in names if record.task_id.startswith(f"{name}/"))
            of_task = max(others, key=len, default=record.task_id.partition("/")[0])
        name = details.instance_id or of_task
        rows = details.drafts
        if rows is None:
            rows = (record.details,) if "brt" in record.details else ()
        tests = tuple(
            validated(Draft.model_validate, {"candidate_id": record.task_id, **row}, f"record of {record.task_id}")
            for row in rows
        )
        by_id = {test.candidate_id: test for test in tests}
        bug = bugs.get(name, Bug(name))
        bugs[name] = Bug(
            name,
            (*bug.tests, *tests),
            tuple(by_id[str(number)] for number in details.suggestions if str(number) in by_id),
            bug.is_drafted or details.drafts is not None,
            record.error or bug.error,
            bug.recognised if record.recognised is None else record.recognised,
        )
    return tuple(bugs.values())


def reproduced(bugs: Iterable[Bug]) -> dict[str, bool]:
    """For each bug, if any of its tests reproduces it; one without a usable answer is not reproduced."""
    return {bug.bug_id: bug.reproduced for bug in bugs}


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
        return self.first_success_rank is not None


def ranking_of(bug_id: str, tests: Sequence[Draft]) -> Ranking:
    ranks = [rank for rank, test in enumerate(tests, 1) if test.brt]
    return Ranking(
        bug_id=bug_id,
        first_success_rank=min(ranks, default=None),
        total_success_fibs=len(ranks),
        num_clusters=len(tests),
    )


def libro_order(tests: Sequence[Draft]) -> tuple[Draft, ...]:
    """The syntactically distinct tests that fail on the buggy version, in LIBRO's order (section III.D).

    The best test of every cluster of equal failures in turn, then the second best, and so on. Clusters are ordered
    by the match of their failure with the report, size and brevity; tests within one by the match of their body
    with the report, and brevity.
    """
    clusters: dict[str, list[FailingTest]] = {}
    features: dict[int, Features] = {}
    for number, test in enumerate(tests):
        if test.features is not None:
            features[number] = test.features
            candidate = Candidate(
                number=number, draft="", path="", content="", name="", code="", new_file=True,
                syntax=test.features.syntax, tokens=test.features.test_length,
            )  # fmt: skip
            failing = FailingTest(number=number, candidate=candidate, outcome=TestOutcome(status="failed"))
            clusters.setdefault(test.features.signature, []).append(failing)
    ranked = rank(
        [tuple(group) for group in clusters.values()],
        lambda test: (features[test.number].match,),
        lambda test: (features[test.number].test_exception_type_match,),
    )
    return tuple(tests[test.number] for test in ranked)


def cluster_sizes(tests: Iterable[Draft]) -> Counter[str]:
    """The number of tests that fail with each signature, equal tests included."""
    return Counter(test.features.signature for test in tests if test.features is not None)


def rankings(bugs: Iterable[Bug]) -> tuple[tuple[Ranking, ...], tuple[Ranking, ...]]:
    """Return the suggested and the generated tests of a run that drafted, as rankings.

    Suggested are the bugs for which tests were shown, with the rank of the first right one. Generated are all
    bugs with a test that fails on the buggy version, in LIBRO's order: the pool from which selection chose.
    """
    own = [bug for bug in bugs if bug.is_drafted]
    suggested = tuple(ranking_of(bug.bug_id, bug.suggested) for bug in own if bug.suggested)
    pools = ((bug.bug_id, libro_order(bug.tests)) for bug in own)
    return suggested, tuple(ranking_of(name, pool) for name, pool in pools if pool)


def found_at_n(rankings: Sequence[Ranking], n: int) -> tuple[bool, ...]:
    """For each bug, if a reproducing test is among the first ``n`` suggestions; acc@n is their sum or share."""
    return tuple(r.first_success_rank is not None and r.first_success_rank <= n for r in rankings)


def wasted_at_n(rankings: Sequence[Ranking], n: int) -> tuple[int, ...]:
    """For each bug, the wrong tests read before the first right one, giving up after ``n`` tests.

    Their sum is wef@n, the wasted effort, as LIBRO prints it. A list shorter than ``n`` without a right test costs
    its whole length. Bugs that no test reproduces count too: the reader does not know them beforehand.
    """
    return tuple(
        min(n, r.num_clusters if r.first_success_rank is None else r.first_success_rank - 1) for r in rankings
    )


def wasted_where_found(rankings: Sequence[Ranking], n: int) -> int:
    """The layered framework's wef@n: the wrong tests before a right one that is among the first ``n``."""
    ranks = (ranking.first_success_rank for ranking in rankings)
    return sum(rank - 1 for rank in ranks if rank is not None and rank <= n)


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


def brt_share(outcomes: Mapping[str, bool]) -> float | None:
    """%BRT as a fraction: bugs with at least one test that fails on the buggy and passes on the fixed version.

    Every bug that was tried belongs into ``outcomes``: one that could not be run is False, never absent.
    None if there is no bug.
    """
    return sum(outcomes.values()) / len(outcomes) if outcomes else None


def baseline_consistency(baseline: Mapping[str, bool], altered: Mapping[str, bool]) -> float | None:
    """Of the bugs reproduced under the baseline, the share that is reproduced under the altered setting too.

    Only bugs tried in both settings are compared. None if the baseline reproduced none of them.
    Source: layered framework, section 3.2, Baseline Consistency Rate.
    """
    repeated = [altered[bug] for bug, success in baseline.items() if success and bug in altered]
    return sum(repeated) / len(repeated) if repeated else None


class RankingScores:
    """acc@n, wef@n and what they are made of."""

    def __init__(
        self, rankings: Sequence[Ranking], generated: Sequence[Ranking] | None = None, how: Resampling = USUAL
    ) -> None:
        """``generated``: the rankings before selection left bugs out; without it there is no recall."""
        self.bugs = len(rankings)
        self.reproducible = sum(ranking.reproducible for ranking in rankings)
        self.acc = {n: sum(found_at_n(rankings, n)) for n in NS}
        self.wef = {n: sum(wasted_at_n(rankings, n)) for n in NS}
        self.wef_where_found = {n: wasted_where_found(rankings, n) for n in NS}
        self.precision = suggestion_precision(rankings)
        self.precision_of_tests = precision_of_tests(rankings)
        self.recall = None if generated is None else suggestion_recall(rankings, generated)
        # Means over bugs: the share found (acc), the tests wasted (wef), the share with any right test.
        columns: dict[str, Any] = {"suggestion_precision": [ranking.reproducible for ranking in rankings]}
        columns |= {f"acc@{n}": found_at_n(rankings, n) for n in NS}
        columns |= {f"wef@{n}": wasted_at_n(rankings, n) for n in NS}
        self.intervals = means(columns, len(rankings), how)

    def as_json(self) -> dict[str, Any]:
        """Counts as LIBRO prints them, and shares of bugs with their 95 % intervals."""
        return {
            "bugs": self.bugs,
            "reproducible": self.reproducible,
            **{f"acc@{n}": count for n, count in self.acc.items()},
            **{f"wef@{n}": count for n, count in self.wef.items()},
            "wef_where_found": {f"wef@{n}": count for n, count in self.wef_where_found.items()},
            "suggestion_precision": self.precision,
            "suggestion_precision_of_tests": self.precision_of_tests,
            "suggestion_recall": self.recall,
            "per_bug": {name: dict(vars(estimate)) for name, estimate in self.intervals.items()},
        }


def means(columns: Mapping[str, Sequence[float]], n: int, how: Resampling = USUAL) -> dict[str, Estimate]:
    """The mean of each column over ``n`` tasks with its bootstrap interval."""
    arrays = {name: np.asarray(values, dtype=float) for name, values in columns.items()}

    def statistics(draws: Counts) -> dict[str, Array]:
        return {name: resampled_mean(values, draws) for name, values in arrays.items()}

    return bootstrap(statistics, n, how)


class RunScores:
    """%BRT over instances of a run, errors and missing ones counted as not reproduced."""

    def __init__(self, outcomes: Mapping[str, bool], failed: int, how: Resampling) -> None:
        self.instances = len(outcomes)
        self.reproduced = sum(outcomes.values())
        self.failed = failed
        self.share = brt_share(outcomes)
        columns = {"brt": [float(value) for value in outcomes.values()]}
        self.interval = means(columns, len(outcomes), how)["brt"]

    def as_json(self) -> dict[str, Any]:
        """Shares from 0 to 1; ``brt`` is %BRT as a fraction."""
        return {
            "instances": self.instances,
            "reproduced": self.reproduced,
            "without_answer": self.failed,
            "brt": self.share,
            "brt_interval": [self.interval.low, self.interval.high],
        }
