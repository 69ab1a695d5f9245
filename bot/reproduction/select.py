"""Which failing drafts are good enough to be shown, and when it is better to show none. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import zip_longest

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduction.match import Match, match
from bot.reproduction.outcome import TestOutcome
from bot.reproduction.report import Facts


class FailingTest(Frozen):
    """A draft that fails on the buggy version, as far as choosing among drafts needs to know it."""

    number: int = Field(description="which draft; unique among the drafts of a report")
    outcome: TestOutcome
    syntax: str = Field(description="the test in normal form: equal for tests that differ in layout or comments")
    tokens: int = Field(ge=0, description="length of the test, lexical tokens")
    inverted: bool = Field(False, description="it passed as drafted, and its last assertion was turned round")
    flaky: bool = Field(False, description="two runs of it did not agree")


class Cluster(Frozen):
    """Drafts that fail with one signature."""

    signature: str
    tests: tuple[FailingTest, ...]

    @property
    def size(self) -> int:
        """How many drafts agree on this failure, equal ones counted each: agreement is what size measures."""
        return len(self.tests)

    @property
    def mean_tokens(self) -> float:
        """Mean length of its syntactically distinct tests, tokens."""
        distinct = distinct_tests(self.tests)
        return sum(test.tokens for test in distinct) / len(distinct)


def cluster(tests: Sequence[FailingTest]) -> tuple[Cluster, ...]:
    """Group failing drafts by the signature of their failure, in order of first appearance."""
    groups: dict[str, list[FailingTest]] = defaultdict(list)
    for test in tests:
        groups[signature(test.outcome)].append(test)
    return tuple(Cluster(signature=key, tests=tuple(members)) for key, members in groups.items())


def distinct_tests(tests: Sequence[FailingTest]) -> tuple[FailingTest, ...]:
    """One test, the first drafted, of every group of syntactically equal ones."""
    first: dict[str, FailingTest] = {}
    for test in tests:
        first.setdefault(test.syntax, test)
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
        # Of any other absolute path the last part is kept: which file was missing tells failures apart.
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
    """A failure message without addresses, temporary paths, line numbers, durations, ids and layout.

    Values under test stay: they are what tells two wrong results apart. Applying it twice changes nothing more.
    """
    for pattern, replacement in _VOLATILE:
        message = pattern.sub(replacement, message)
    return message.strip()


def signature(outcome: TestOutcome) -> str:
    """What two tests share that fail for one reason: exception type and normalised message.

    Only the text up to the first empty line counts, and no line of a value comparison's explanation (pytest's
    ``+  where ...``): those repeat the test's own expressions.
    """
    paragraph = outcome.message.strip().split("\n\n", 1)[0]
    lines = [line for line in paragraph.splitlines() if not re.match(r"\s*(\+|E\s|\?|- |\^)", line)]
    return normalise(f"{outcome.kind}: {' '.join(lines)}")


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
    matches = {test.number: match(test.outcome, facts) for test in tests}
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
        return f"fails with {test.outcome.kind or 'an error'}, which is not what the report tells of"
    return ""


def _size(clusters: Sequence[Cluster], test: FailingTest) -> int:
    return next(each.size for each in clusters if test in each.tests)


def _none_shown(tests: Sequence[FailingTest], largest: int, threshold: int) -> str:
    if not tests:
        return "no draft fails"
    if not largest:
        return "no draft fails steadily for the reported reason"
    return f"only {largest} of the {threshold} drafts that must agree fail in the same way"


def rank(clusters: Sequence[Cluster], order: MatchOrder) -> tuple[FailingTest, ...]:
    """All distinct tests: the best of every cluster in turn, then the second best of every cluster, and so on.

    Clusters are ordered by match with the report (that of their best test), then by size, then by the brevity of
    their tests; within a cluster well matching tests come before others, and short before long. Source: LIBRO,
    section III.D.
    """

    def of_cluster(each: Cluster) -> tuple[tuple[int, ...], int, float]:
        return max(map(order, each.tests)), each.size, -each.mean_tokens

    def of_test(test: FailingTest) -> tuple[tuple[int, ...], int, int]:
        return tuple(-part for part in order(test)), test.tokens, test.number

    queues = [
        sorted(distinct_tests(each.tests), key=of_test) for each in sorted(clusters, key=of_cluster, reverse=True)
    ]
    return tuple(test for turn in zip_longest(*queues) for test in turn if test is not None)
