"""Compare a test's failure with a report. Pure."""

from __future__ import annotations

import re

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduction.protocol import Grade, TestOutcome
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
    words: float = Field(ge=0, le=1, description="share of the message's words that the report uses")

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
    return Match(
        grade=_grade(outcome, facts, exception, values, words), exception=exception, values=values, words=words
    )


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
