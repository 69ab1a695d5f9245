"""Which failing drafts are good enough to be shown, and when it is better to show none. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduce.cluster import Cluster, FailingTest, cluster, distinct_tests
from bot.reproduce.match import Match, match
from bot.reproduce.report import Facts

#: How well the failure of a cluster fits the report; the better match is the greater.
MatchOrder = Callable[[FailingTest], tuple[int, ...]]


class Suggestion(Frozen):
    """A draft worth showing."""

    test: FailingTest
    match: Match
    agreeing: int = Field(ge=1, description="drafts that fail with the same signature, this one included")


class Selection(Frozen):
    """What to show, best first; empty with a reason where nothing deserves it."""

    suggestions: tuple[Suggestion, ...] = ()
    dropped: dict[int, str] = Field(default_factory=dict, description="why a draft is not shown, by its number")
    reason: str = Field("", description="why nothing is shown; empty where something is")


def select(tests: Sequence[FailingTest], facts: Facts, threshold: int = 1, *, matched: bool = True) -> Selection:
    """Keep the drafts that fail steadily and for the reported reason, and rank them.

    ``threshold``: the size that the largest cluster must have (LIBRO's agreement; its published selection,
    "more than 1 of 50", is a threshold of 2 here). Below it nothing is shown at all. Without ``matched`` a test
    need not fit the report: that only ranks, as in LIBRO.
    """
    matches = {test.number: match(test.failure, facts) for test in tests}
    dropped = {test.number: reason for test in tests if (reason := _reason(test, matches[test.number], matched))}
    kept = cluster([test for test in tests if test.number not in dropped])
    largest = max((each.size for each in kept), default=0)
    if largest < threshold:
        return Selection(dropped=dropped, reason=_none_shown(tests, largest, threshold))
    # A test that was drafted to fail says more than one that was turned round.
    ranked = rank(kept, lambda test: (not test.inverted, *matches[test.number].order))
    return Selection(
        suggestions=tuple(
            Suggestion(test=test, match=matches[test.number], agreeing=_size(kept, test)) for test in ranked
        ),
        dropped=dropped,
    )


def _reason(test: FailingTest, found: Match, matched: bool) -> str:
    if test.flaky:
        return "flaky: it failed in one of two runs only"
    if not matched:
        return ""
    if test.inverted and found.grade != "reported":
        # Turning round any passing test makes it fail; only what the report shows makes that worth something.
        return "passes as drafted, and turned round it does not show what the report shows"
    if found.grade == "other":
        return f"fails with {test.failure.short_type or 'an error'}, which is not what the report tells of"
    return ""


def _size(clusters: Sequence[Cluster], test: FailingTest) -> int:
    return next(each.size for each in clusters if test in each.tests)


def _none_shown(tests: Sequence[FailingTest], largest: int, threshold: int) -> str:
    if not tests:
        return "no draft fails"
    if not largest:
        return "no draft fails steadily for the reported reason"
    return f"only {largest} of the {threshold} drafts that must agree fail in the same way"


def rank_clusters(clusters: Sequence[Cluster], order: MatchOrder) -> tuple[Cluster, ...]:
    """Clusters by match with the report, then by size, then by the brevity of their tests.

    Source: LIBRO, section III.D. A cluster matches as well as the best of its tests.
    """
    return tuple(
        sorted(
            clusters,
            key=lambda each: (max(order(test) for test in each.tests), each.size, -each.mean_tokens),
            reverse=True,
        )
    )


def rank(clusters: Sequence[Cluster], order: MatchOrder) -> tuple[FailingTest, ...]:
    """All distinct tests: the best of every cluster in turn, then the second best of every cluster, and so on.

    Within a cluster steady tests come before flaky ones, well matching before others, and short before long.
    """
    queues = [_within(each, order) for each in rank_clusters(clusters, order)]
    longest = max(map(len, queues), default=0)
    return tuple(queue[turn] for turn in range(longest) for queue in queues if turn < len(queue))


def _within(each: Cluster, order: MatchOrder) -> tuple[FailingTest, ...]:
    def key(test: FailingTest) -> tuple[bool, tuple[int, ...], int, int]:
        return test.flaky, tuple(-part for part in order(test)), test.tokens, test.number

    return tuple(sorted(distinct_tests(each.tests), key=key))
