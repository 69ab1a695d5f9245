"""Results of calibration: everything that the page and the command show, and a first ``bouncer.yml``. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from bot.calibration import risk
from bot.calibration.risk import Bin, Judged, OperatingPoint, Promise, SuggestionPromise
from bot.core.config import VAGUE_FROM
from bot.core.frozen import Frozen
from bot.core.subjects import KnownFate
from bot.core.text import amount

#: A bouncer, named like its section of bouncer.yml.
Bouncer = Literal["triage", "verify"]

#: If replies carry no probability, the severity of their label (0 to 3) is scaled to 0 to 100.
STEPS = 3


class PastVerdict(Frozen):
    """The verdict on one past subject, with its outcome."""

    subject: str = Field(description="owner/name#number")
    number: int
    title: str
    url: str
    good: bool
    why: str = Field(description="reason for the outcome, in words")
    label: str | None = Field(None, description="None: it was not judged")
    severity: int | None = Field(None, ge=0, le=STEPS, description="of the label")
    p_bounce: int | None = Field(None, ge=0, le=100, description="percent; None if the reply has none")
    explanation: str = ""
    problem: str = Field("", description="why it was not judged")


class Findings(Frozen):
    """Results of one bouncer on one repository's history."""

    bouncer: Bouncer
    by_label: bool = Field(description="replies carry no probability: the threshold is a label")
    verdicts: tuple[PastVerdict, ...]
    cases: tuple[Judged, ...]
    promise: Promise
    curve: tuple[OperatingPoint, ...] = Field(description="every threshold that separates cases, highest first")
    reliability: tuple[Bin, ...]
    calibration_error: float | None
    brier: float | None
    unjudged: dict[str, int] = Field(description="how many were not judged, by reason")

    @property
    def bounced(self) -> int | None:
        """Number of cases that the promised threshold bounces; None without a promise."""
        line = self.promise.line
        return None if line is None else line.harmed + line.caught

    @property
    def level(self) -> int | None:
        """Lowest severity that the promised threshold bounces, 1 to 3; None without a promise or for percents."""
        line = self.promise.line
        return max(1, -(-line.bounce_above * STEPS // 100)) if line is not None and self.by_label else None

    def mistakes(self) -> tuple[PastVerdict, ...]:
        """Return the most instructive mistakes at the promised threshold, or the usual one without a promise."""
        line = self.promise.line
        usual = VAGUE_FROM if self.bouncer == "triage" and not self.by_label else 50
        wrong = risk.instructive(self.cases, usual if line is None else line.bounce_above)
        verdicts = {case.subject: case for case in self.verdicts}
        return tuple(verdicts[case.subject] for case in wrong)


def draw_line(bouncer: Bouncer, verdicts: Iterable[PastVerdict], harm: float) -> Findings:
    """Find the threshold for a share of harm. Raises ValueError if ``harm`` is not between 0 and 1."""
    all_verdicts = tuple(verdicts)
    scored = [verdict for verdict in all_verdicts if verdict.severity is not None]
    by_label = any(verdict.p_bounce is None for verdict in scored)
    cases = tuple(
        Judged(
            subject=verdict.subject,
            p_bounce=(verdict.severity or 0) * 100 // STEPS
            if by_label or verdict.p_bounce is None
            else verdict.p_bounce,
            good=verdict.good,
        )
        for verdict in scored
    )
    return Findings(
        bouncer=bouncer,
        by_label=by_label,
        verdicts=all_verdicts,
        cases=cases,
        promise=risk.promise(cases, harm),
        curve=risk.curve(cases),
        reliability=() if by_label else risk.bins(cases),
        calibration_error=None if by_label else risk.expected_calibration_error(cases),
        brier=None if by_label else risk.brier(cases),
        unjudged=dict(
            Counter(verdict.problem for verdict in all_verdicts if verdict.severity is None).most_common()
        ),
    )


class PastSuggestion(Frozen):
    """A suggestion that would have been made on a past issue."""

    number: int
    title: str
    root: int = Field(description="the issue that would have been named")
    p: int = Field(description="percent")
    repeats: int | None = Field(description="the issue that it was closed as a duplicate of; None: it was not")

    @property
    def right(self) -> bool:
        """True if the named issue is the one that maintainers named."""
        return self.root == self.repeats


class DuplicateFindings(Frozen):
    """The suggestions on a repository's closed issues."""

    issues: int = Field(description="closed issues that were compared with earlier ones")
    duplicates: int = Field(description="of these, closed as a duplicate of a named issue")
    suggestions: tuple[PastSuggestion, ...]
    promise: SuggestionPromise

    @property
    def title(self) -> str:
        return f"Duplicates: {self.issues} closed issues, {self.duplicates} of them duplicates"

    @property
    def settings(self) -> str:
        above = self.promise.suggest_above
        if above is None:
            return "duplicates:\n  mode: shadow"
        return f"duplicates:\n  mode: comment\n  suggest_above: {above}"

    @property
    def mistakes(self) -> tuple[PastSuggestion, ...]:
        """The wrong suggestions at the threshold, or all without one, most confident first."""
        above = self.promise.suggest_above or 0
        wrong = [row for row in self.suggestions if not row.right and row.p >= above]
        return tuple(sorted(wrong, key=lambda row: (-row.p, row.number)))

    def sentences(self) -> list[str]:
        promise = self.promise
        share = f"{100 * promise.harm:g} %"
        if promise.suggest_above is None:
            why = (
                f"there are {promise.suggestions}, and it takes at least {promise.needed}"
                if promise.suggestions < promise.needed
                else f"{promise.wrong} of {promise.suggestions} are wrong"
            )
            return [
                f"No promise can be given that at most {share} of the suggestions are wrong: {why}.",
                "Stay in shadow mode: suggestions are recorded, nothing is written; then calibrate again.",
            ]
        right = sum(row.right and row.p >= promise.suggest_above for row in self.suggestions)
        return [
            f"Promise: at or above {promise.suggest_above} %, at most {share} of the suggestions are wrong (95 % "
            "sure, as long as the future resembles this past).",
            f"Here {promise.wrong} of {promise.suggestions} suggestions are wrong (at most "
            f"{100 * promise.bound:.1f} % in truth), and {right} of {self.duplicates} duplicates are named.",
            f"Such a promise takes at least {amount(promise.needed, 'suggestion')}.",
        ]


#: Largest share of good subjects to bounce.
HARM = 0.05
_GOOD: Mapping[Bouncer, str] = {"triage": "actionable issues", "verify": "good patches"}


class SuggestedConfig(NamedTuple):
    """The text of the file, and why it is so."""

    config: str
    explanation: str


def suggest(fates: Mapping[Bouncer, Sequence[KnownFate]], schema_url: str = "") -> SuggestedConfig:
    """Return thresholds that keep the promise of ``bouncer calibrate``, and shadow mode if there is none."""
    lines = [f"# yaml-language-server: $schema={schema_url}"] if schema_url else []
    reasons = []
    for bouncer, known_fates in fates.items():
        cases = risk.judged(known_fates)
        promise, good = risk.promise(cases, HARM), sum(case.good for case in cases)
        if line := promise.line:
            lines += [f"{bouncer}:", f"  bounce_above: {line.bounce_above}", f"  harm: {HARM * 100:.0f}"]
            reasons.append(
                f"`{bouncer}` bounces at or above {line.bounce_above} %. In this repository's history that "
                f"bounced {line.harmed} of {line.good} {_GOOD[bouncer]}; at most {HARM:.0%} are promised."
            )
        else:
            lines += [f"{bouncer}:", "  mode: shadow"]
            reasons.append(
                f"`{bouncer}` stays in shadow mode, which posts nothing: the outcome of {good} {_GOOD[bouncer]} "
                f"is known, and a promise takes at least {promise.needed}. `bouncer calibrate` reads older ones."
            )
    points = "\n".join(f"- {reason}" for reason in reasons)
    explanation = (
        f"This adds a configuration for Bouncer:\n\n{points}\n\nChange what you like before you merge it, or "
        "close this pull request to keep the defaults."
    )
    return SuggestedConfig("\n".join(lines) + "\n", explanation)
