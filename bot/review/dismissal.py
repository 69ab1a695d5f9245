"""Findings that people turned down: ``/bouncer dismiss``, or a thumbs-down from someone who may triage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bot.core import events
from bot.core.actions import Decision
from bot.core.commands import may, read
from bot.core.events import Event
from bot.core.model import PullRequest, ReviewComment, Subject
from bot.forge.protocol import Forge
from bot.review.findings import Finding
from bot.review.history import PastFindings, finding_of, recall
from bot.services import Services

#: The verdict of a decision that takes findings back; it is no review.
DISMISSED = "dismissed"

# Comments of ours whose reactions are read before a review: one request each.
_REACTIONS_READ = 30


def dismiss(event: Event, services: Services) -> Decision | None:
    """Take back the finding in whose thread ``/bouncer dismiss`` was said, or all where it was said on the
    pull request; None where nobody said it who may.
    """
    if not isinstance(event, events.CommentCreated | events.ReviewCommentCreated) or event.sender.is_bot:
        return None
    if not any(command.word == "dismiss" for command in read(event.comment.body)):
        return None
    if isinstance(event, events.CommentCreated) and not event.issue.is_pull_request:
        return None
    if not may("dismiss", services.forge.permission(event.sender.login), is_author=False):
        return None
    memory = recall(services.history.decisions(event.subject.key, "review", "commands", "feedback"))
    meant = _meant(event, memory, services.forge)
    # The state of the code plays no part: what is turned down stays so on every later push.
    subject = Subject(repository=services.forge.repository, number=event.number, revision=event.subject.revision)
    if not meant:
        reason = "there is no finding of this app to dismiss here"
        return Decision(kind="review", subject=subject, abstained="skipped:no-finding", reason=reason)
    return Decision(
        kind="review",
        subject=subject,
        verdict=DISMISSED,
        reason=f"{event.sender.login} dismissed {len(meant)} of {len(memory.posted)} findings",
        evidence={"dismissed": [finding.fingerprint for finding in meant], "by": event.sender.login},
    )


def live(memory: PastFindings, pull: PullRequest, forge: Forge) -> PastFindings:
    """``memory`` held against what stands on the pull request.

    A finding whose comment is not there was never posted (a newer push overtook it); one with a thumbs-down
    from somebody with triage permission or more is dismissed.
    """
    if not any(finding.line is not None for finding in memory.posted):
        return memory
    standing = _standing(memory, pull.number, forge)
    present = tuple(each for each in memory.posted if each.line is None or each.fingerprint in standing)
    rejected = {
        print_
        for print_, comment in tuple(standing.items())[-_REACTIONS_READ:]
        if any(
            may("dismiss", forge.permission(actor.login), is_author=False)
            for actor in forge.reactions(comment.id, review=True).down
        )
    }
    return replace(
        memory,
        posted=tuple(each for each in present if each.fingerprint not in rejected),
        dismissed=(*memory.dismissed, *(each for each in present if each.fingerprint in rejected)),
    )


def _standing(memory: PastFindings, number: int, forge: Forge) -> Mapping[str, ReviewComment]:
    """Our comments on the pull request by the fingerprint of what they carry, oldest first."""
    us = forge.identity().id
    ours = [each for each in forge.review_comments(number) if each.author.id == us and each.in_reply_to is None]
    found = ((finding_of(comment, memory.posted), comment) for comment in ours)
    return {finding.fingerprint: comment for finding, comment in found if finding is not None}


def _meant(
    event: events.CommentCreated | events.ReviewCommentCreated, memory: PastFindings, forge: Forge
) -> tuple[Finding, ...]:
    findings = (*memory.posted, *memory.gone)
    if isinstance(event, events.CommentCreated):
        return findings
    root = event.comment.in_reply_to
    thread = next((each for each in forge.review_comments(event.number) if each.id == root), None)
    if thread is None or thread.author.id != forge.identity().id:
        return ()
    finding = finding_of(thread, findings)
    return (finding,) if finding is not None else ()
