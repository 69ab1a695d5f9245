"""Reviewer: does this change introduce a defect?

Findings are posted as one review with inline comments, and what no line can carry as a sticky summary. If there
is nothing to say, only the check run says what was looked at. A commit is never reviewed twice. After a later push
only what changed is reviewed, and only new findings are posted (see ``rounds``). The findings themselves are
those of ``reviewing``. A finding that a maintainer turns down with ``/bouncer dismiss`` is not posted on that pull
request again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.core import events
from bot.core.actions import Decision, Minimize, UpsertComment
from bot.core.commands import Command
from bot.core.events import Event
from bot.core.markdown import clean_line
from bot.core.subjects import PullRequest, ReviewComment, Subject
from bot.features.review import texts
from bot.features.review.record import ReviewOutcome, ReviewRecord
from bot.features.review.texts import CHECK, Page
from bot.features.services import Services
from bot.features.shared import pull_requests
from bot.features.shared.findings import Finding
from bot.features.shared.pull_requests import ChangedPaths, JudgementRequest
from bot.features.shared.review_history import (
    VERDICTS,
    finding_of,
    in_thread,
    last_on,
    our_comments,
    recall,
    submitted,
)
from bot.features.shared.rights import CommandEvent, answer, asked_for, no_run_reason, react, thread_of

#: The end of the answer where a push is not followed by a review.
AGAIN = "Ask again after the next commit."
#: Characters of a maintainer's reason.
MAX_REASON = 240

NOT_A_FINDING = "This thread is not about an open finding of mine."
NO_FINDING = "I have no open finding here to dismiss."
WHICH = "I have {count} open findings here. Reply below the finding that you mean."


@dataclass(frozen=True, slots=True)
class ReviewTools:
    """Functions that read the change, ask the model and run tests; the declaration gives them to the handler."""

    changed_paths: ChangedPaths
    review: Callable[[PullRequest, Sequence[Decision], Services, bool], ReviewOutcome | None]
    """Reviews a pull request after earlier decisions on it. True: its head may be executed. None: it is empty."""


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if the event can ask for a review or dismiss a finding."""
    return pull_requests.concerns(event, commands, frozenset({"review", "recheck", "dismiss"}), CHECK)


def handle(event: Event, services: Services, tools: ReviewTools) -> Decision | None:
    """Review the pull request of an event, or dismiss a finding; None if the event asks for neither."""
    if services.config.review.mode == "off":
        return None
    request = pull_requests.read_request(event, services, "review")
    if request is None:
        return _dismiss(event, services) if isinstance(event, CommandEvent) else None
    pull = request.pull_request
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    past = services.history.decisions(subject.key, "review", "commands", "feedback")
    skip = None if request.is_explicit else _skip_reason(pull, services, past, tools)
    if skip is not None:
        return _abstain(subject, *skip)
    earlier = last_on(past, subject.revision)
    if earlier is not None and not request.is_explicit:
        return None
    if submitted(earlier):
        decision = _abstain(subject, "skipped:reviewed", "this commit was reviewed already")
        if isinstance(event, CommandEvent) and request.command and request.command.word == "review":
            later = "A new commit gets a new review." if services.config.review.when == "push" else AGAIN
            text = f"I have reviewed {pull.head_sha[:7]} already. {later}"
            decision = decision.model_copy(update={"actions": (answer(event, text, "review"),)})
        return decision
    if services.forge.pull_request(pull.number).head_sha != pull.head_sha:
        return _abstain(subject, "superseded", "newer commits were pushed before the review began")
    may_run = no_run_reason(pull, request.command, "review") is None
    outcome = tools.review(pull, past, services, may_run)
    if outcome is None:
        return _abstain(subject, "empty", "the change is empty")
    return _decision(subject, request, outcome, services)


def _abstain(subject: Subject, word: str, why: str) -> Decision:
    """Return a decision that posts nothing."""
    return Decision(kind="review", subject=subject, abstained=word, reason=why)


def _decision(subject: Subject, request: JudgementRequest, outcome: ReviewOutcome, services: Services) -> Decision:
    """Return the decision to post a review, a summary and the check, as far as there is something to say."""
    pull, strategy = request.pull_request, services.config.review.strategy
    page = Page(services.repository, pull, outcome.since)
    actions = texts.actions(outcome, page, is_explicit=request.is_explicit)
    more = {
        "strategy": strategy,
        "prompt": services.prompts.hash(f"review.{strategy}"),
        "config": services.config.hash,
    }
    return Decision(
        kind="review",
        subject=subject,
        verdict=outcome.verdict,
        actions=(*actions, *_minimized(pull, outcome.outdated, services), texts.check(outcome, page)),
        reason=outcome.reason,
        record=outcome.record.model_copy(update=more),
        usage=outcome.usage,
        model=outcome.model,
    )


def _minimized(pull: PullRequest, outdated: Sequence[Finding], services: Services) -> tuple[Minimize, ...]:
    """Return what hides the comments whose code is no longer in the change."""
    if not any(finding.line is not None for finding in outdated):
        return ()
    comments = our_comments(pull.number, services.forge)
    return tuple(
        Minimize(node_id=comment.node_id, why="OUTDATED") for comment in comments if finding_of(comment, outdated)
    )


def _skip_reason(
    pull: PullRequest, services: Services, past: Sequence[Decision], tools: ReviewTools
) -> tuple[str, str] | None:
    """Return why a pull request is not reviewed without being asked for it; None if it is."""
    when = services.config.review.when
    if when == "command":
        return "skipped:when", "review.when is command"
    if when == "open" and any(decision.kind == "review" and decision.verdict in VERDICTS for decision in past):
        return "skipped:when", "review.when is open, and it was reviewed before"
    return pull_requests.skip_reason(pull, services, past, tools.changed_paths)


def _dismiss(event: CommandEvent, services: Services) -> Decision | None:
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
        actions=(react(event, "+1"), _note_below(event, comment, command.reason), *minimized),
        reason=f"{event.sender.login} dismissed 1 of {len(memory.posted)} findings",
        record=ReviewRecord(dismissed=(finding.fingerprint,), by=event.sender.login, why=command.reason),
    )


def _comment(number: int, finding: Finding, services: Services) -> ReviewComment | None:
    """Return the comment of ours that a finding stands in."""
    comments = our_comments(number, services.forge)
    return next((comment for comment in comments if finding_of(comment, (finding,))), None)


def _note_below(event: CommandEvent, comment: ReviewComment | None, reason: str) -> UpsertComment:
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
