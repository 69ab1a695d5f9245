"""Earlier reviews of a pull request, read back from their comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.core.actions import Decision, SubmitReview
from bot.core.subjects import ReviewComment
from bot.features.review.record import ReviewRecord
from bot.features.shared.findings import Finding
from bot.features.shared.posts import Posts
from bot.features.shared.taxonomy import Category, Impact, Severity

_SEVERITY = re.compile(r"^Severity: (low|medium|high)\.", re.MULTILINE)


def standing(posts: Posts) -> Iterator[Decision]:
    """Yield the posted reviews, each with all findings that stand."""
    findings = tuple(
        _finding(comment, mark.about) for comment, mark in posts.ours_on_lines("review") if mark.about
    )
    for _, mark in posts.our_reviews("review"):
        yield Decision(
            kind="review",
            subject=posts.subject(f"sha:{mark.about}"),
            verdict="defects",
            actions=(SubmitReview(number=posts.event.number, commit_id=mark.about, comments=()),),
            record=ReviewRecord(posted=findings),
        )


def _finding(comment: ReviewComment, fingerprint: str) -> Finding:
    """Return the finding of one of our comments, without its line and its defect class: these are not known."""
    severity = _SEVERITY.search(comment.body)
    return Finding(
        path=comment.path,
        line=None,
        code=(),
        fingerprint=fingerprint,
        comment=comment.body.partition("\n\n")[0],
        category=Category.CODING,
        impact=Impact.FUNCTIONAL_SUITABILITY,
        severity=Severity(severity[1]) if severity else Severity.MEDIUM,
    )
