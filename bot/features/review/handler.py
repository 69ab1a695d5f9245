"""Reviewer: does this change introduce a defect?

Findings are posted as one review with inline comments, and what no line can carry as a sticky summary. If there
is nothing to say, only the check run says what was looked at. A commit is reviewed once per base branch. After a
later push, and on another base, only what changed is reviewed, and only new findings are posted (see ``rounds``).
The findings themselves are those of ``reviewing``. A finding that a maintainer turns down with ``/bouncer
dismiss`` is not posted on that pull request again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.core import events
from bot.core.actions import Decision, Minimize, SetCheck, UpsertComment
from bot.core.commands import Command
from bot.core.markdown import clean_line
from bot.core.subjects import PullRequest, Subject
from bot.features.review.record import CHECK, ReviewRecord
from bot.features.services import Services
from bot.features.shared import pull_requests
from bot.features.shared.pull_requests import JudgementRequest, Trigger
from bot.features.shared.review_history import (
    VERDICTS,
    finding_of,
    in_thread,
    last_on,
    our_comments,
    recall,
    submitted,
)
from bot.features.shared.rights import (
    OFF,
    CommandEvent,
    answer,
    asked_for,
    off_reason,
    react,
    thread_of,
    with_old_check,
)

#: The end of the answer where a push is not followed by a review.
AGAIN = "Ask again after the next commit."
#: Characters of a maintainer's reason.
MAX_REASON = 240

NOT_A_FINDING = "This thread is not about an open finding of mine."
NO_FINDING = "I have no open finding here to dismiss."
WHICH = "I have {count} open findings here. Reply below the finding that you mean."


#: Reviews a pull request after earlier decisions on it.
Review = Callable[[JudgementRequest, Sequence[Decision], Services], Decision]


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the event can ask for a review or dismiss a finding."""
    return pull_requests.concerns(event, commands, frozenset({"review", "recheck", "dismiss"}), CHECK)


def handle(event: Trigger, services: Services, review: Review) -> Decision | None:
    """Review the pull request of an event, or dismiss a finding; None if the event asks for neither."""
    if old := with_old_check("review", event, services):
        return _switched_off(old, services)
    if services.config.review.mode == "off":
        return None
    request = pull_requests.read_request(event, services, "review")
    if request is None:
        return _dismiss(event, services) if isinstance(event, CommandEvent) else None
    pull = request.pull_request
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    past = services.history.decisions(subject.key, "review", "commands", "feedback")
    if request.is_explicit:
        skip = pull_requests.LOCKED if pull.locked else None
    else:
        skip = _skip_reason(pull, services, past)
    if skip is not None:
        return _abstain(subject, *skip)
    earlier = last_on(past, pull)
    if earlier is not None and not request.is_explicit:
        return None
    if submitted(earlier):
        decision = _abstain(subject, "skipped:reviewed", "this commit was reviewed already")
        if isinstance(event, CommandEvent) and request.command and request.command.word == "review":
            later = "A new commit gets a new review." if services.config.review.when == "push" else AGAIN
            text = f"I have reviewed {pull.head_sha[:7]} already. {later}"
            decision = decision.model_copy(update={"actions": (answer(event, text, "review"),)})
        return decision
    present = services.forge.pull_request(pull.number)
    if (present.head_sha, present.base_ref) != (pull.head_sha, pull.base_ref):
        return _abstain(subject, "superseded", "newer commits or another base came before the review began")
    return review(request, past, services)


def _switched_off(pull: PullRequest, services: Services) -> Decision:
    """Return the end of a check that is run again."""
    why = f"review is {off_reason('review', services)}"
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    title = f"Not reviewed: {why}"
    check = SetCheck(name=CHECK, head_sha=pull.head_sha, conclusion="skipped", title=title, summary=f"{title}.")
    return _abstain(subject, OFF, why).model_copy(update={"actions": (check,)})


def _abstain(subject: Subject, word: str, why: str) -> Decision:
    """Return a decision that posts nothing."""
    return Decision(kind="review", subject=subject, abstained=word, reason=why)


def _skip_reason(pull: PullRequest, services: Services, past: Sequence[Decision]) -> tuple[str, str] | None:
    """Return why a pull request is not reviewed without being asked for it; None if it is."""
    when = services.config.review.when
    if when == "command":
        return "skipped:when", "review.when is command"
    if when == "open" and any(decision.kind == "review" and decision.verdict in VERDICTS for decision in past):
        return "skipped:when", "review.when is open, and it was reviewed before"
    return pull_requests.skip_reason(pull, services, past)


def _dismiss(event: CommandEvent, services: Services) -> Decision | None:
    """Dismiss the finding of the thread, or outside of a thread the only open finding.

    None if the event has no such command, or its author may not use it.
    """
    command = asked_for("dismiss", event, services)
    if command is None or (isinstance(event, events.CommentCreated) and not event.issue.is_pull_request):
        return None
    memory = recall(services.history.decisions(event.subject.key, "review", "commands", "feedback"))
    candidates, nothing = memory.open, NO_FINDING
    if isinstance(event, events.ReviewCommentCreated):
        in_this_thread = in_thread(event, (*memory.posted, *memory.outdated), services.forge)
        candidates, nothing = () if in_this_thread is None else (in_this_thread,), NOT_A_FINDING
    # The revision is empty: a dismissal holds for all later commits.
    subject = Subject(repository=services.forge.repository, number=event.number, revision="")
    if len(candidates) != 1:
        text = WHICH.format(count=len(candidates)) if candidates else nothing
        return Decision(
            kind="review",
            subject=subject,
            actions=(react(event, "confused"), answer(event, text, "review")),
            abstained="skipped:which-finding" if candidates else "skipped:no-finding",
            reason=f"{event.sender.login} asked to dismiss one of {len(candidates)} findings",
        )
    (finding,) = candidates
    comments = our_comments(event.number, services.forge)
    comment = next((comment for comment in comments if finding_of(comment, (finding,))), None)
    minimized = () if comment is None else (Minimize(node_id=comment.node_id, why="RESOLVED"),)
    note_below = UpsertComment(
        task="commands",
        number=event.number,
        body=note(event.sender.login, command.reason),
        about=f"{event.comment.id}-review",
        thread=thread_of(event) or (comment and comment.id),
    )
    return Decision(
        kind="review",
        subject=subject,
        verdict="dismissed",
        actions=(react(event, "+1"), note_below, *minimized),
        reason=f"{event.sender.login} dismissed 1 of {len(memory.posted)} findings",
        record=ReviewRecord(dismissed=(finding.fingerprint,), by=event.sender.login, why=command.reason),
    )


def note(login: str, reason: str) -> str:
    """Return the note below a dismissed finding."""
    why = f": {clean_line(reason, limit=MAX_REASON).rstrip('.')}" if reason else ""
    return f"Dismissed by {login}{why}. I won't post it here again."
