"""Compare failures with the report, and select the failing drafts that are good enough to show, or none. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import zip_longest

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduction.protocol import Attempt, Candidate, Fate, Grade, OfferedTest, TestOutcome
from bot.reproduction.report import GENERIC, Facts

GRADES: tuple[Grade, ...] = ("other", "plausible", "reported")

ASSERTIONS = frozenset(
    {"AssertionError", "AssertionFailedError", "ComparisonFailure", "Failed", "ComparisonFailureWithFacts",
     "AssertionErrorWithFacts", "MultipleFailuresError"}
)  # fmt: skip
#: Exceptions of drafts that misuse the code; the type alone is no evidence.
_MISUSE = frozenset(
    {"AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "IndentationError",
     "TypeError", "UnboundLocalError", "FileNotFoundError", "fixture"}
)  # fmt: skip
_STOP = frozenset(
    {"actual", "and", "are", "assert", "assertion", "been", "but", "equal", "equals", "expected",
     "false", "for", "from", "got", "has", "have", "none", "not", "null", "object", "should", "than",
     "that", "the", "this", "true", "was", "where", "with"}
)  # fmt: skip
_TRIVIAL = frozenset({"True", "False", "None", "null", "true", "false", "[]", "{}", "()", "''", '""', "not"})
_QUOTED = re.compile(r"'([^'\n]{2,80})'|\"([^\"\n]{2,80})\"|<([^<>\n]{2,80})>")
_COMPARED = re.compile(
    r"^(?:assert |\w+ differ: )?(.{2,400}?) (?:==|!=|<=|>=|<|>|is not|is|not in|in) (.{2,400}?)$", re.MULTILINE
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")

#: Endings without an exception, and words for them in reports.
SYMPTOMS = {
    "timeout": r"\bhang(?:s|ing)?\b|infinite|endless|forever|deadlock|\bstuck\b|never (?:ends|returns)",
    "crash": r"segfault|segmentation fault|core dump|\bcrash|\babort|access violation|bus error|stack overflow",
    "limit": r"\bmemory\b|\bOOM\b|out of (?:memory|disk)|\bleak",
}

#: Most values of a message that are searched in a report.
_MAX_VALUES = 100

#: Share of a message's words that the report must use for an unnamed exception to count as plausible.
WORDS_NEEDED = 0.5


class Match(Frozen):
    """The agreement of a failure with a report, and the evidence for it."""

    grade: Grade
    exception: bool = Field(description="the report names the exception that was raised, or that was missing")
    values: tuple[str, ...] = Field(description="values of the failure message that the report shows too")

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: a better match is greater."""
        return GRADES.index(self.grade), int(self.exception) + bool(self.values)

    def as_reported(self, crash: bool) -> bool:
        """LIBRO's match with a report of a crash: the exception; of a wrong value: the value (section III.D)."""
        return self.exception if crash else bool(self.values)


def match(outcome: TestOutcome, facts: Facts) -> Match:
    """Compare a failed test with the facts of a report.

    After LIBRO (section III.D): for a report of a crash the exception type must be the reported one, for
    a report of a wrong value the value must be in the report. Added here: a draft's own mistakes (a name that
    does not exist, a missing fixture) count only if the report names the same thing.
    """
    words = _shared_words(outcome.message, facts.text)
    values = _shared_values(outcome.message, facts.text)
    exception = _names_exception(outcome, facts)
    return Match(grade=_grade(outcome, facts, exception, values, words), exception=exception, values=values)


def _grade(outcome: TestOutcome, facts: Facts, exception: bool, values: tuple[str, ...], words: float) -> Grade:
    kind = outcome.kind
    if kind in SYMPTOMS:
        return "reported" if re.search(SYMPTOMS[kind], facts.text, re.IGNORECASE) else "other"
    if kind in ASSERTIONS:
        if exception or values:
            return "reported"
        return "other" if facts.exceptions and words < WORDS_NEEDED else "plausible"
    if kind in _MISUSE:
        return "reported" if exception and (values or words >= WORDS_NEEDED) else "other"
    if exception:
        return "reported"
    return "plausible" if words >= WORDS_NEEDED and not outcome.in_test else "other"


def _names_exception(outcome: TestOutcome, facts: Facts) -> bool:
    if outcome.kind in facts.exceptions and outcome.kind not in GENERIC:
        return True
    if outcome.kind not in ASSERTIONS:
        return False
    # pytest.raises and assertThrows fail with an assertion that names the exception in its message.
    return not facts.exceptions.isdisjoint(re.findall(r"\w+", outcome.message))


def _shared_values(message: str, text: str) -> tuple[str, ...]:
    quoted = ("".join(groups) for groups in _QUOTED.findall(message))
    numbers = (number for number in _NUMBER.findall(message) if len(number.lstrip("-")) > 1)
    compared = (side for sides in _COMPARED.findall(message) for side in sides)
    candidates = dict.fromkeys(" ".join(value.split()) for value in (*quoted, *numbers, *compared))
    text = " ".join(text.split())
    specific = [value for value in candidates if len(value) > 1 and value not in _TRIVIAL][:_MAX_VALUES]
    return tuple(
        value for value in specific if re.search(rf"(?<![\w.\[({{]){re.escape(value)}(?![\w\])}}])", text)
    )


def _shared_words(message: str, text: str) -> float:
    words = {word.lower() for word in _WORD.findall(message)} - _STOP
    if not words:
        return 0.0
    return len(words & {word.lower() for word in _WORD.findall(text)}) / len(words)


def body_matches(code: str, facts: Facts) -> bool:
    """Return True if a test of a reported crash names a reported exception (LIBRO's order within a cluster)."""
    return facts.crash and any(name in code for name in facts.exceptions)


class FailingTest(Attempt):
    """A draft that fails on the buggy version."""

    fate: Fate = "failed"
    candidate: Candidate
    outcome: TestOutcome


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
        (r"\bid='\d{10,}'", "id='<address>'"),  # of a mock
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


class Selection(Frozen):
    """The tests to show, best first; if none, the reason."""

    tests: tuple[OfferedTest, ...] = ()
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
    reasons = {test.number: _drop_reason(test, matches[test.number], matched) for test in tests}
    dropped = {number: reason for number, reason in reasons.items() if reason}
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
    offered_tests = (
        OfferedTest(
            candidate=test.candidate,
            outcome=test.outcome,
            agreeing=sizes[test.number],
            grade=matches[test.number].grade,
        )
        for test in ranked
    )
    return Selection(tests=tuple(offered_tests), dropped=dropped)


def _drop_reason(test: FailingTest, comparison: Match, matched: bool) -> str:
    """Return why a draft is not shown; empty if it may be shown."""
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
