"""Choose the findings to post. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from bot.core.config import ReviewConfig
from bot.features.review.record import Reason, RepairFlaw, Suppressed
from bot.features.shared.findings import (
    Finding,
    Impact,
    Severity,
    apart,
    plain_fingerprint,
    same_defect,
    same_subject,
)

#: Percent of confidence for each further model that reports the same finding; one model repeats itself.
AGREEMENT = 15
#: The confidence of a finding without one, percent.
DEFAULT_CONFIDENCE = 50
#: A finding at or above this confidence gets a second question.
SECOND_QUESTION = 25

#: Functional, performance, reliability and security defects are in scope; code that is hard to change is not.
OUT_OF_SCOPE = frozenset({Impact.MAINTAINABILITY})


class Situation(NamedTuple):
    """Earlier findings, results of questions about new ones, and what this round may still post."""

    posted: Sequence[Finding] = ()
    """Findings that stand on the pull request."""
    settled: Sequence[Finding] = ()
    """Findings that were answered or resolved, or whose code is gone."""
    dismissed: Sequence[Finding] = ()
    unmoved: Collection[str] = ()
    """Fingerprints of those of them whose code still stands between the same lines."""
    doubted: Collection[str] = ()
    """Fingerprints of findings that the second question refuted."""
    unchanged: Collection[str] = ()
    """Fingerprints of findings on lines that an earlier round reviewed."""
    remaining: int = 1_000
    """Findings that may still be posted on the pull request."""
    late: bool = False
    """Only high severity or proven findings are wanted."""
    proves: bool = False
    """Selected findings get a test that tries to prove them."""
    muted: frozenset[str] = frozenset()
    """Categories that the people of the repository dismissed too often."""


def select(
    findings: Iterable[Finding],
    config: ReviewConfig,
    situation: Situation = Situation(),  # noqa: B008 -- an immutable tuple
    flaw_of_repair: Callable[[Finding], RepairFlaw | None] = lambda finding: None,
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """Split findings into those to post and those to suppress: proven first, then by confidence, then by severity.

    ``flaw_of_repair`` is asked about what would be posted.
    """
    selected: list[Finding] = []
    suppressed: list[Suppressed] = []

    def order(finding: Finding) -> tuple[bool, int, int, bool]:
        return not finding.proven, -_weight(finding), -finding.severity.rank, finding.line is None

    for finding in sorted(findings, key=order):
        reason = _suppression(finding, config, selected, situation) or flaw_of_repair(finding)
        if reason is None:
            selected.append(finding)
        else:
            suppressed.append(Suppressed(finding=finding, reason=reason))
    return tuple(selected), tuple(suppressed)


def _weight(finding: Finding) -> int:
    """Return the confidence, increased by each further model that agrees."""
    confidence = DEFAULT_CONFIDENCE if finding.confidence is None else finding.confidence
    return confidence + AGREEMENT * max(len(finding.models) - 1, 0)


def _suppression(
    finding: Finding, config: ReviewConfig, selected: Sequence[Finding], situation: Situation
) -> Reason | None:
    """Return why a finding is not posted; None if it is."""
    if any(same_defect(finding, other) and not apart(finding, other) for other in selected):
        return "duplicate"
    if finding.impact in OUT_OF_SCOPE:
        return "out_of_scope"
    if reason := _earlier_reason(finding, situation):
        return reason
    if finding.category in situation.muted:
        return "muted"
    if finding.severity.rank < Severity(config.min_severity).rank:
        return "below_severity"
    if situation.late and not _is_wanted_late(finding, situation):
        return "late"
    if finding.fingerprint in situation.doubted:
        return "doubted"
    if _is_unlikely(finding, config):
        return "unlikely"
    if len(selected) >= situation.remaining:
        return "over_total"
    return "over_limit" if len(selected) >= config.max_findings else None


def _is_wanted_late(finding: Finding, situation: Situation) -> bool:
    can_be_proven = finding.proven or (situation.proves and finding.proof is None)
    return finding.severity == Severity.HIGH or can_be_proven


def _is_unlikely(finding: Finding, config: ReviewConfig) -> bool:
    """Return True if the confidence is too low. A finding that gets the second question is left to that."""
    if finding.confidence is None or finding.proven:
        return False
    has_second_question = config.doubts or finding.depends_on
    minimum = min(SECOND_QUESTION, config.min_confidence) if has_second_question else config.min_confidence
    return _weight(finding) < minimum


def _earlier_reason(finding: Finding, earlier: Situation) -> Reason | None:
    """Return why a finding is not new: it was posted before, or repeats one that people have dealt with."""
    if any(_repeats(finding, other, earlier) for other in earlier.dismissed):
        return "dismissed"
    if any(_repeats(finding, other, earlier) for other in (*earlier.posted, *earlier.settled)):
        return "already_posted"
    if any(same_subject(finding, other) for other in earlier.dismissed):
        return "dismissed"
    if any(same_subject(finding, other) for other in earlier.settled):
        return "already_posted"
    return "unchanged" if finding.fingerprint in earlier.unchanged else None


def _repeats(finding: Finding, other: Finding, earlier: Situation) -> bool:
    """Return True if a finding is an earlier one, or has its code while the lines around that changed."""
    if same_defect(finding, other):
        return True
    return other.fingerprint not in earlier.unmoved and plain_fingerprint(finding) == plain_fingerprint(other)
