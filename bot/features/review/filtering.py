"""Which findings are worth a person's time: the rules that keep a reviewer from being switched off. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pydantic import Field

from bot.core.frozen import Frozen
from bot.features.review.record import Reason, Suppressed
from bot.features.shared.findings import Finding, same_defect
from bot.features.shared.taxonomy import Impact, Severity

#: What a further look that saw the same is worth, in percent of confidence; the confidence where none is given.
AGREEMENT, UNSAID = 15, 50
#: The confidence from which on a finding is worth a second question.
DOUBTED = 25

#: Functional, performance, reliability and security defects are in scope; code that is hard to change is not.
OUT_OF_SCOPE = frozenset({Impact.MAINTAINABILITY})


class Policy(Frozen):
    """What a repository wants to hear of."""

    min_severity: Severity = Severity.MEDIUM
    max_findings: int = Field(5, ge=0, description="new findings per push at most")
    likely: int = Field(50, description="the confidence that it takes, percent; for those that give one")
    muted: frozenset[str] = Field(frozenset(), description="categories that its people dismissed too often")


def select(
    findings: Iterable[Finding],
    policy: Policy,
    posted: Sequence[Finding] = (),
    dismissed: Sequence[Finding] = (),
    doubted: Collection[str] = (),
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """Split into what to post and what to hold back: proven first, then likely and seen by many looks, then worst.

    ``posted`` are findings that stand on the pull request already, ``dismissed`` those that people rejected,
    ``doubted`` the fingerprints of those that did not stand the second question.
    """
    chosen: list[Finding] = []
    held: list[Suppressed] = []
    ordered = sorted(
        findings, key=lambda each: (not each.proven, -_weight(each), -each.severity.rank, each.line is None)
    )
    for finding in ordered:
        reason = _why_held(finding, policy, chosen, posted, dismissed, doubted)
        if reason is None:
            chosen.append(finding)
        else:
            held.append(Suppressed(finding=finding, reason=reason))
    return tuple(chosen), tuple(held)


def _weight(finding: Finding) -> int:
    """How much speaks for a finding: what is said of it, and how many looks agree."""
    said = UNSAID if finding.confidence is None else finding.confidence
    return said + AGREEMENT * (finding.looks - 1)


def _why_held(
    finding: Finding,
    policy: Policy,
    chosen: Sequence[Finding],
    posted: Sequence[Finding],
    dismissed: Sequence[Finding],
    doubted: Collection[str],
) -> Reason | None:
    if any(same_defect(finding, each) for each in chosen):
        return "duplicate"
    if finding.impact in OUT_OF_SCOPE:
        return "out_of_scope"
    if any(same_defect(finding, each) for each in dismissed):
        return "dismissed"
    if any(same_defect(finding, each) for each in posted):
        return "already_posted"
    if finding.category in policy.muted:
        return "muted"
    if finding.severity.rank < policy.min_severity.rank:
        return "below_severity"
    if finding.fingerprint in doubted:
        return "doubted"
    if finding.confidence is not None and not finding.proven and _weight(finding) < policy.likely:
        return "unlikely"
    return "over_limit" if len(chosen) >= policy.max_findings else None
