"""Select the failing drafts that are good enough to show, or none. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import zip_longest

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduction.match import Match, body_matches, match
from bot.reproduction.protocol import Candidate, TestOutcome
from bot.reproduction.report import Facts


class FailingTest(Frozen):
    """A draft that fails on the buggy version, with the facts for selection."""

    number: int = Field(description="which draft; unique among the drafts of a report")
    candidate: Candidate
    outcome: TestOutcome
    inverted: bool = Field(False, description="it passed as drafted, and its last assertion was inverted")
    flaky: bool = Field(False, description="two runs of it differed")


#: Drafts that fail with one signature, including equal drafts: its size measures agreement.
Cluster = tuple[FailingTest, ...]


def cluster(tests: Sequence[FailingTest]) -> tuple[Cluster, ...]:
    """Group failing drafts by the signature of their failure, in order of first appearance."""
    groups: dict[str, list[FailingTest]] = defaultdict(list)
    for test in tests:
        groups[signature(test.outcome)].append(test)
    return tuple(map(tuple, groups.values()))


def distinct_tests(tests: Sequence[FailingTest]) -> tuple[FailingTest, ...]:
    """Return the first draft of every group of syntactically equal tests."""
    first: dict[str, FailingTest] = {}
    for test in tests:
        first.setdefault(test.candidate.syntax, test)
    return tuple(first.values())


# Order matters: a path is replaced before the numbers in it are.
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
        (r"\b0x[0-9a-fA-F]{4,}\b", "<address>"),
        (r"(?<=[\w$])@[0-9a-f]{5,8}\b", "@<address>"),
        # Temporary folders first, with everything below them: their names are random.
        (r"(?:/private)?(?:/var/folders|/tmp|/var/tmp|/dev/shm)(?:/[\w.+@~-]+)+", "<path>"),
        (r"[A-Za-z]:\\(?:[\w .+@~-]+\\)*[\w.+@~-]+", "<path>"),
        # Keep the last part of any other absolute path: the name of a missing file distinguishes failures.
        (r"(?<![\w/.<>])/(?:[\w.+@~-]+/)+(?=[\w.+@~-])", "<path>/"),
        (r"\b[0-9a-f]{32,64}\b", "<hash>"),
        (r"(?<=\.py):\d+\b|(?<=\.java):\d+\b", ":<line>"),
        (r"\b(lines?|column|col|char|position|offset) \d+\b", r"\1 <n>"),
        (r"\b(pid|PID|process|Thread|thread|worker|port)([ =:#-]+)\d+\b", r"\1\2<n>"),
        (r"\b(127\.0\.0\.1|localhost):\d+\b", r"\1:<n>"),
        (r"\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:seconds?|secs?|minutes?|milliseconds?|ms|[µu]s|ns|s)\b", "<duration>"),
        (r"\s+", " "),
    )
)


def normalise(message: str) -> str:
    """Remove addresses, temporary paths, line numbers, durations, ids and layout from a failure message.

    Values under test stay, because they distinguish wrong results. Idempotent.
    """
    for pattern, replacement in _VOLATILE:
        message = pattern.sub(replacement, message)
    return message.strip()


def signature(outcome: TestOutcome) -> str:
    """Return a key that tests failing for one reason share: exception type and normalised message.

    Only the text up to the first empty line counts, without the explanation of a comparison (pytest's
    ``+  where ...``), which repeats the test's own expressions.
    """
    paragraph = outcome.message.strip().split("\n\n", 1)[0]
    lines = [line for line in paragraph.splitlines() if not re.match(r"\s*(\+|E\s|\?|- |\^)", line)]
    return normalise(f"{outcome.kind}: {' '.join(lines)}")


#: Sort key of a test's match with the report; a better match is greater.
MatchOrder = Callable[[FailingTest], tuple[int, ...]]


class Suggestion(Frozen):
    """A draft to show."""

    test: FailingTest
    match: Match
    agreeing: int = Field(ge=1, description="drafts that fail with the same signature, this one included")


class Selection(Frozen):
    """The tests to show, best first; if none, the reason."""

    suggestions: tuple[Suggestion, ...] = ()
    dropped: dict[int, str] = Field(default_factory=dict, description="why a draft is not shown, by its number")
    reason: str = Field("", description="why nothing is shown; empty if something is")


def select(
    tests: Sequence[FailingTest], facts: Facts, threshold: int = 1, *, matched: bool = True, smallest: int = 1
) -> Selection:
    """Select the drafts that fail in both runs for the reported reason, and rank them.

    ``threshold``: the minimal size of the largest cluster (LIBRO's agreement; its published selection, "more than
    1 of 50", is a threshold of 2 here). Below it nothing is shown. Clusters below ``smallest`` are left out.
    Without ``matched`` the match with the report only ranks, in LIBRO's order.
    """
    matches = {test.number: match(test.outcome, facts) for test in tests}
    dropped = {test.number: reason for test in tests if (reason := _reason(test, matches[test.number], matched))}
    clusters = cluster([test for test in tests if test.number not in dropped])
    largest = max(map(len, clusters), default=0)
    if largest < threshold:
        return Selection(dropped=dropped, reason=_none_shown(tests, largest, threshold))
    clusters = tuple(group for group in clusters if len(group) >= smallest)
    if matched:
        # A test that was drafted to fail is better evidence than an inverted one.
        ranked = rank(clusters, lambda test: (not test.inverted, *matches[test.number].order))
    else:
        ranked = rank(
            clusters,
            lambda test: (not test.inverted, matches[test.number].as_reported(facts.crash)),
            lambda test: (not test.inverted, body_matches(test.candidate.code, facts)),
        )
    sizes = {test.number: len(group) for group in clusters for test in group}
    suggestions = (
        Suggestion(test=test, match=matches[test.number], agreeing=sizes[test.number]) for test in ranked
    )
    return Selection(suggestions=tuple(suggestions), dropped=dropped)


def _reason(test: FailingTest, comparison: Match, matched: bool) -> str:
    if test.flaky:
        return "flaky: it failed in one of two runs only"
    if not matched:
        return ""
    if test.inverted and comparison.grade != "reported":
        # Any inverted passing test fails; it is evidence only if it fails as reported.
        return "passes as drafted, and turned round it does not show what the report shows"
    if comparison.grade == "other":
        return f"fails with {test.outcome.kind or 'an error'}, which is not what the report tells of"
    return ""


def _none_shown(tests: Sequence[FailingTest], largest: int, threshold: int) -> str:
    if not tests:
        return "no draft fails"
    if not largest:
        return "no draft fails steadily for the reported reason"
    return f"only {largest} of the {threshold} drafts that must agree fail in the same way"


def rank(
    clusters: Sequence[Cluster], order: MatchOrder, within: MatchOrder | None = None
) -> tuple[FailingTest, ...]:
    """Rank all distinct tests: the best of every cluster in turn, then the second best of every cluster, ...

    Clusters are ordered by match with the report (that of their best test), then by size, then by the brevity of
    their tests; within a cluster better matching tests come first, by ``within`` if given, then shorter ones.
    Source: LIBRO, section III.D.
    """
    inner = within or order

    def of_cluster(group: Cluster) -> tuple[tuple[int, ...], int, float]:
        lengths = [test.candidate.tokens for test in distinct_tests(group)]
        return max(map(order, group)), len(group), -sum(lengths) / len(lengths)

    def of_test(test: FailingTest) -> tuple[tuple[int, ...], int, int]:
        return tuple(-part for part in inner(test)), test.candidate.tokens, test.number

    queues = [
        sorted(distinct_tests(group), key=of_test) for group in sorted(clusters, key=of_cluster, reverse=True)
    ]
    return tuple(test for turn in zip_longest(*queues) for test in turn if test is not None)
