"""What a reviewer reports, and what becomes of it once it is held against the diff."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen, Lenient
from bot.core.subjects import Side
from bot.features.shared.labels import Chance
from bot.features.shared.taxonomy import Category, Impact, Severity

#: Why a reported finding is no finding: what it cites is not in the diff.
DropReason = Literal[
    "path_not_in_diff", "quote_missing", "quote_not_in_diff", "symbol_not_in_diff", "comment_missing"
]


class FurtherPlace(Lenient):
    """A further place where the model says that the same cause shows."""

    path: str = Field(description="path of the file, exactly as in its header")
    quote: str = Field(description="the line or lines of code, copied without line numbers")
    line: int | None = Field(None, description="line number shown beside the first quoted line, null if none")


class Reported(Lenient):
    """One defect as the model reports it; nothing in it is believed before it was found in the diff."""

    path: str = Field(description="path of the file, exactly as in its header")
    quote: str = Field(description="the line or lines of code that are wrong, copied without line numbers")
    line: int | None = Field(None, description="line number shown beside the first quoted line, null if none")
    symbol: str = Field("", description="name of the function, variable or key at fault, as in the diff; or empty")
    comment: str = Field(
        description="one sentence: what breaks, and when. One sentence: why. Then how to mend it, if it is short"
    )
    places: tuple[FurtherPlace, ...] = Field((), description="further places of the same cause; usually empty")
    category: Category = Field(description="root cause")
    impact: Impact = Field(description="what it compromises")
    severity: Severity = Field(description="high: crash, data loss, security; medium: wrong result; low: minor")
    confidence: Chance = Field(
        None, description="chance in percent that a maintainer who checks it agrees that the change breaks this"
    )
    suggestion: str | None = Field(
        None, description="code that replaces exactly the quoted lines, one or several; null unless surely right"
    )


class ReviewReply(Lenient):
    """A review as the model answers it: it thinks before it chooses (free text first)."""

    reasoning: str = Field(description="what the change does, and where it could go wrong; a few sentences")
    findings: tuple[Reported, ...] = Field(description="defects only; an empty list when there are none")


ProofOutcome = Literal["proven", "passes on both", "not proven", "not run"]


class Proof(Frozen):
    """What tests that were drafted for a finding did on the head and on the merge base."""

    outcome: ProofOutcome
    why: str = Field("", description="one sentence, where it is not proven")
    path: str = ""
    command: str = ""
    test: str = Field("", description="the code of the test")
    output: str = Field("", description="what it printed on the head")


class Finding(Frozen):
    """A defect whose path, quote and symbol stand in the diff."""

    path: str
    line: int | None = Field(description="last line it is about; None = no line of the diff can carry it")
    start_line: int | None = Field(None, description="first line, where it is about several")
    side: Side = "RIGHT"
    code: tuple[str, ...] = Field(description="the lines it is about, white space squeezed")
    fingerprint: str = Field(description="path + code + defect class: stays when lines shift")
    comment: str
    category: Category
    impact: Impact
    severity: Severity
    suggestion: str | None = None
    confidence: int | None = Field(
        None, description="percent: what the look says, then what the second question does; None = it did not say"
    )
    proof: Proof | None = Field(None, description="None where nobody tried")
    looks: int = Field(1, ge=1, description="independent looks that saw it")
    places: tuple[str, ...] = Field((), description="further places of the same cause: ``path:line``")

    @property
    def own_places(self) -> tuple[str, ...]:
        """The lines it is about, as ``path:line``."""
        if self.line is None:
            return ()
        return tuple(f"{self.path}:{number}" for number in range(self.start_line or self.line, self.line + 1))

    @property
    def proven(self) -> bool:
        """Whether a test passes before the change and fails after it."""
        return self.proof is not None and self.proof.outcome == "proven"


class Dropped(Frozen):
    """A reported defect that cites what is not there."""

    reported: Reported
    reason: DropReason


def fingerprint(path: str, code: Sequence[str], category: Category) -> str:
    """16 hex digits over path, code (white space squeezed, blank lines left out) and defect class."""
    lines = (" ".join(line.split()) for line in code)
    content = "\0".join((path, category.value, *(line for line in lines if line)))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def same_defect(one: Finding, other: Finding) -> bool:
    """Equal fingerprints, or the same class of defect on overlapping code of one file.

    The second half is for models that quote one line today and two tomorrow: advice that was given, or
    rejected, must not come back in a slightly different frame.
    """
    if one.fingerprint == other.fingerprint:
        return True
    if (one.path, one.category) != (other.path, other.category):
        return False
    return bool(_telling(one.code) & _telling(other.code))


def same_cause(one: Finding, other: Finding) -> bool:
    """Return True if two findings report one cause at two places.

    Both name the other's line among their places; or one does, or the code is the same, and the kind of defect is
    the same too. Two findings on the same lines are duplicates, see ``same_defect``.
    """
    if set(one.own_places) & set(other.own_places):
        return False
    names = set(one.places) & set(other.own_places), set(other.places) & set(one.own_places)
    if all(names):
        return True
    if any(names):
        return one.category == other.category or one.impact == other.impact
    same_code = one.code == other.code and bool(_telling(one.code))
    return same_code and one.category == other.category


def _telling(code: Sequence[str]) -> frozenset[str]:
    """Lines that say something by themselves: not ``}``, ``else:`` or ``return``."""
    return frozenset(line for line in code if sum(char.isalnum() for char in line) >= _TELLING)


# Fewer letters and digits than this stand in many places of a file.
_TELLING = 8
