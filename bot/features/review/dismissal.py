"""``/bouncer dismiss``: a finding that a maintainer turns down is not posted on that pull request again."""

from __future__ import annotations

from bot.core import events
from bot.core.actions import Decision, Minimize, UpsertComment
from bot.core.markdown import clean_line
from bot.core.subjects import ReviewComment, Subject
from bot.features.review.record import ReviewRecord
from bot.features.services import Services
from bot.features.shared.findings import Finding
from bot.features.shared.review_history import finding_of, in_thread, our_comments, recall
from bot.features.shared.rights import CommandEvent, answer, asked_for, react, thread_of

#: Characters of a maintainer's reason.
MAX_REASON = 240

NOT_A_FINDING = "This thread is not about an open finding of mine."
NO_FINDING = "I have no open finding here to dismiss."
WHICH = "I have {count} open findings here. Reply below the finding that you mean."


def dismiss(event: CommandEvent, services: Services) -> Decision | None:
    """Dismiss the finding of the thread, or outside of a thread the only open finding.

    None if the event has no such command, or its author may not use it.
    """
    command = asked_for("dismiss", event, services)
    if command is None or (isinstance(event, events.CommentCreated) and not event.issue.is_pull_request):
        return None
    memory = recall(services.history.decisions(event.subject.key, "review", "commands", "feedback"))
    if isinstance(event, events.ReviewCommentCreated):
        finding = in_thread(event, (*memory.posted, *memory.gone), services.forge)
        candidates: tuple[Finding, ...] = () if finding is None else (finding,)
    else:
        candidates = memory.open
    # The revision is empty: a dismissal holds for all later commits.
    subject = Subject(repository=services.forge.repository, number=event.number, revision="")
    if len(candidates) != 1:
        nothing = NOT_A_FINDING if isinstance(event, events.ReviewCommentCreated) else NO_FINDING
        text = WHICH.format(count=len(candidates)) if candidates else nothing
        return Decision(
            kind="review",
            subject=subject,
            actions=(react(event, "confused"), answer(event, text, "review")),
            abstained="skipped:which-finding" if candidates else "skipped:no-finding",
            reason=f"{event.sender.login} asked to dismiss one of {len(candidates)} findings",
        )
    (finding,) = candidates
    comment = _comment(event.number, finding, services)
    minimized = () if comment is None else (Minimize(node_id=comment.node_id, why="RESOLVED"),)
    return Decision(
        kind="review",
        subject=subject,
        verdict="dismissed",
        actions=(react(event, "+1"), _note(event, comment, command.reason), *minimized),
        reason=f"{event.sender.login} dismissed 1 of {len(memory.posted)} findings",
        record=ReviewRecord(dismissed=(finding.fingerprint,), by=event.sender.login, why=command.reason),
    )


def _comment(number: int, finding: Finding, services: Services) -> ReviewComment | None:
    """Return the comment of ours that a finding stands in."""
    comments = our_comments(number, services.forge)
    return next((comment for comment in comments if finding_of(comment, (finding,))), None)


def _note(event: CommandEvent, comment: ReviewComment | None, reason: str) -> UpsertComment:
    """Return the note below the finding that says who dismissed it, and why."""
    return UpsertComment(
        task="commands",
        number=event.number,
        body=note(event.sender.login, reason),
        about=f"{event.comment.id}-review",
        thread=thread_of(event) or (comment and comment.id),
    )


def note(login: str, reason: str) -> str:
    """Return the note below a dismissed finding."""
    why = f": {clean_line(reason, limit=MAX_REASON).rstrip('.')}" if reason else ""
    return f"Dismissed by {login}{why}. I won't post it here again."
