"""Choose the findings to post. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from pydantic import Field

from bot.core.frozen import Frozen
from bot.features.review.record import Reason, RepairFlaw, Suppressed
from bot.features.shared.findings import Finding, same_defect
from bot.features.shared.taxonomy import Impact, Severity

#: Percent of confidence for each further model that reports the same finding; one model repeats itself.
AGREEMENT = 15
#: The confidence of a finding without one, percent.
DEFAULT_CONFIDENCE = 50
#: A finding at or above this confidence gets a second question.
SECOND_QUESTION = 25

#: Functional, performance, reliability and security defects are in scope; code that is hard to change is not.
OUT_OF_SCOPE = frozenset({Impact.MAINTAINABILITY})


class Policy(Frozen):
    """The findings that a repository wants to see."""

    min_severity: Severity = Severity.MEDIUM
    max_findings: int = Field(5, ge=0, description="new findings per push at most")
    min_confidence: int = Field(50, description="percent; findings without a confidence always pass")
    doubts: bool = Field(False, description="every finding gets a second question, whose answer counts")
    muted: frozenset[str] = Field(frozenset(), description="categories that its people dismissed too often")


def select(
    findings: Iterable[Finding],
    policy: Policy,
    posted: Sequence[Finding] = (),
    dismissed: Sequence[Finding] = (),
    doubted: Collection[str] = (),
    flaw_of_repair: Callable[[Finding], RepairFlaw | None] = lambda finding: None,
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """Split findings into those to post and those to suppress: proven first, then by confidence, then by severity.

    ``posted`` are findings on the pull request already, ``dismissed`` those that people rejected, ``doubted`` the
    fingerprints of those that the second question refuted. ``flaw_of_repair`` is asked about what would be posted.
    """
    selected: list[Finding] = []
    suppressed: list[Suppressed] = []

    def order(finding: Finding) -> tuple[bool, int, int, bool]:
        return not finding.proven, -_weight(finding), -finding.severity.rank, finding.line is None

    for finding in sorted(findings, key=order):
        reason = _suppression(finding, policy, selected, posted, dismissed, doubted) or flaw_of_repair(finding)
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
    finding: Finding,
    policy: Policy,
    selected: Sequence[Finding],
    posted: Sequence[Finding],
    dismissed: Sequence[Finding],
    doubted: Collection[str],
) -> Reason | None:
    """Return why a finding is not posted; None if it is."""
    if any(same_defect(finding, other) for other in selected):
        return "duplicate"
    if finding.impact in OUT_OF_SCOPE:
        return "out_of_scope"
    if any(same_defect(finding, other) for other in dismissed):
        return "dismissed"
    if any(same_defect(finding, other) for other in posted):
        return "already_posted"
    if finding.category in policy.muted:
        return "muted"
    if finding.severity.rank < policy.min_severity.rank:
        return "below_severity"
    if finding.fingerprint in doubted:
        return "doubted"
    is_asked = policy.doubts or bool(finding.depends_on)
    minimum = min(SECOND_QUESTION, policy.min_confidence) if is_asked else policy.min_confidence
    if finding.confidence is not None and not finding.proven and _weight(finding) < minimum:
        return "unlikely"
    return "over_limit" if len(selected) >= policy.max_findings else None
