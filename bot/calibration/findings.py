"""What judgements on past subjects say about the line: all that the page and the command tell. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from bot.calibration import reliability, risk
from bot.calibration.reliability import Bin
from bot.calibration.risk import Judged, OperatingPoint, Promise
from bot.core.frozen import Frozen

#: Which bouncer, as its section of bouncer.yml is called.
Bouncer = Literal["triage", "verify"]

#: Where replies carry no probability, the severity of their label (0 to 3) is the score.
STEPS = 3


class PastVerdict(Frozen):
    """What the model said of one past subject, beside what became of it."""

    subject: str = Field(description="owner/name#number")
    number: int
    title: str
    url: str
    good: bool
    why: str = Field(description="what became of it, in words")
    label: str | None = Field(None, description="None: it was not judged")
    severity: int | None = Field(None, ge=0, le=STEPS, description="of the label")
    p_bounce: int | None = Field(None, ge=0, le=100, description="percent; None where the reply has none")
    explanation: str = ""
    problem: str = Field("", description="why it was not judged")


class Findings(Frozen):
    """One bouncer on one repository's past."""

    bouncer: Bouncer
    by_label: bool = Field(description="replies carry no probability: the line is drawn at a label")
    verdicts: tuple[PastVerdict, ...]
    cases: tuple[Judged, ...]
    promise: Promise
    curve: tuple[OperatingPoint, ...] = Field(description="every line that tells cases apart, highest first")
    reliability: tuple[Bin, ...]
    calibration_error: float | None
    brier: float | None
    unjudged: dict[str, int] = Field(description="how many were not judged, by why")

    @property
    def bounced(self) -> int | None:
        """How many of the cases the promised line bounces; None without one."""
        line = self.promise.line
        return None if line is None else line.harmed + line.caught

    @property
    def level(self) -> int | None:
        """The severity from which on the promised line bounces, 1 to 3; None where there is none."""
        line = self.promise.line
        return max(1, -(-line.bounce_above * STEPS // 100)) if line is not None and self.by_label else None

    def mistakes(self, most: int = 10) -> tuple[PastVerdict, ...]:
        """The most instructive ones at the promised line; without one, at 50 %."""
        line = self.promise.line
        wrong = risk.instructive(self.cases, 50 if line is None else line.bounce_above, most)
        known = {each.subject: each for each in self.verdicts}
        return tuple(known[each.subject] for each in wrong)


def found(bouncer: Bouncer, verdicts: Iterable[PastVerdict], harm: float) -> Findings:
    """Draw the line for a share of harm. Raises ValueError where ``harm`` is no share."""
    every = tuple(verdicts)
    judged = [each for each in every if each.severity is not None]
    by_label = any(each.p_bounce is None for each in judged)
    cases = tuple(Judged(subject=each.subject, p_bounce=score(each, by_label), good=each.good) for each in judged)
    return Findings(
        bouncer=bouncer,
        by_label=by_label,
        verdicts=every,
        cases=cases,
        promise=risk.promise(cases, harm),
        curve=risk.curve(cases),
        reliability=() if by_label else reliability.bins(cases),
        calibration_error=None if by_label else reliability.expected_calibration_error(cases),
        brier=None if by_label else reliability.brier(cases),
        unjudged=dict(Counter(each.problem for each in every if each.severity is None).most_common()),
    )


def score(verdict: PastVerdict, by_label: bool) -> int:
    """The probability, or the label's severity spread over 0 to 100."""
    if not by_label and verdict.p_bounce is not None:
        return verdict.p_bounce
    return (verdict.severity or 0) * 100 // STEPS
