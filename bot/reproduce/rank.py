"""The order in which failing drafts are shown: best match first, one of each cluster in turn. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.reproduce.cluster import Cluster, FailingTest, distinct_tests

#: How well the failure of a cluster fits the report; the better match is the greater.
MatchOrder = Callable[[FailingTest], tuple[int, ...]]


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
