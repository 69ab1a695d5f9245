"""Review: does this change introduce a defect?"""

import re
from collections.abc import Iterator
from functools import partial
from typing import get_args

from bot.core import events
from bot.core.actions import Decision, SubmitReview
from bot.core.commands import SlashCommand
from bot.core.subjects import ReviewComment
from bot.core.text import squeeze
from bot.features.feature import Feature, same_text
from bot.features.review.handler import concerns, handle
from bot.features.review.record import ReviewRecord
from bot.features.review.reviewing import review
from bot.features.shared.findings import Category, Finding, Impact, Severity
from bot.features.shared.posts import Posts
from bot.features.shared.pull_requests import Trigger

_SEVERITY = re.compile(r"^Severity: (low|medium|high)\.", re.MULTILINE)


def standing(posts: Posts) -> Iterator[Decision]:
    """Yield the posted reviews, each with all findings that stand."""
    findings = tuple(
        _finding(comment, mark.about) for comment, mark in posts.ours_on_lines("review") if mark.about
    )
    for _, mark in posts.our_reviews("review"):
        commit_id = mark.about.partition("-")[0]
        yield Decision(
            kind="review",
            subject=posts.subject(f"sha:{commit_id}"),
            verdict="defects",
            actions=(SubmitReview(number=posts.event.number, commit_id=commit_id, comments=()),),
            record=ReviewRecord(posted=findings),
        )


def _finding(comment: ReviewComment, fingerprint: str) -> Finding:
    """Return the finding of one of our comments: its code is the last line, its defect class is not known.

    It has no code if that line is blank, or the server sent no hunk.
    """
    line = squeeze(comment.diff_hunk.rpartition("\n")[2][1:])
    severity = _SEVERITY.search(comment.body)
    return Finding(
        path=comment.path,
        line=comment.line or comment.original_line,
        side=comment.side,
        code=(line,) if line else (),
        fingerprint=fingerprint,
        comment=comment.body.partition("\n\n")[0],
        category=Category.CODING,
        impact=Impact.FUNCTIONAL_SUITABILITY,
        severity=Severity(severity[1]) if severity else Severity.MEDIUM,
    )


FEATURE = Feature(
    name="review",
    handle=partial(handle, review=review),
    record=ReviewRecord,
    standing=standing,
    concerns=concerns,
    events=get_args(Trigger),
    commands=(
        SlashCommand(
            "review",
            help="review the pull request now; `--run <commit>` also tries to prove findings by running that "
            "commit of a fork (its whole id)",
            on_issues=False,
            takes_run=True,
            sections=("review",),
        ),
        SlashCommand(
            "dismiss",
            help="below a finding, or below the pull request if there is only one: it is wrong or unwanted, and "
            "is not posted here again",
            on_issues=False,
            sections=("review",),
        ),
    ),
    after=("commands",),
    # A new title is no reason to review again.
    supersedes=same_text(*get_args(events.HeadShown)),
    judges=True,
    permissions={"pull_requests": "write", "checks": "write"},
)
