"""Commands and "Re-run": the permission and the limits of the person, and the answer; checks that end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from bot.core import events
from bot.core.actions import Decision, React, SetCheck, Task, UpsertComment
from bot.core.commands import AuthorLimit, Command
from bot.core.config import RepoConfig
from bot.core.errors import NotFound
from bot.core.events import Event
from bot.core.subjects import PullRequest
from bot.features.commands.record import CommandsRecord
from bot.features.services import Services
from bot.github.protocol import Forge

CommandEvent = events.CommentCreated | events.ReviewCommentCreated

#: Uses of one command by an author in a repository per day, since each costs the operator money.
PER_DAY = 6


def granted(event: CommandEvent, services: Services) -> tuple[Command, ...]:
    """Return the commands in a new comment that its author may use now."""
    commands = services.commands.read(event.comment.body)
    if not commands or event.sender.is_bot:
        return ()
    counts_as_author = event.by_author and services.history.counts_authors
    limits = {
        command.word: limit for command in commands if (limit := services.commands[command.word].author_limit)
    }
    if counts_as_author and limits:
        now = services.clock()
        recent = services.history.commands(event.repository.full_name, now - timedelta(days=1))
        is_limited = any(too_soon(recent, event, now, word, limit) for word, limit in limits.items())
        counts_as_author = not is_limited and not ("recheck" in limits and paused(event, services))
    may = services.commands.may
    needs_permission = not all(may(command.word, "none", counts_as_author) for command in commands)
    permission = services.forge.permission(event.sender.login) if needs_permission else "none"
    return tuple(command for command in commands if may(command.word, permission, counts_as_author))


def paused(event: CommandEvent, services: Services) -> bool:
    """Return True if a maintainer paused the subject: then only a maintainer's recheck counts."""
    return is_paused(services.history.decisions(event.subject.key, "commands"))


def is_paused(past: Sequence[Decision]) -> bool:
    """Return True if the newest of ``pause`` and ``resume`` was ``pause``; deliveries arrive in any order."""
    records = sorted((decision.record_of(CommandsRecord) for decision in past), key=lambda record: record.at)
    words = [word for record in records for word in record.done]
    return next((word == "pause" for word in reversed(words) if word in ("pause", "resume")), False)


def answer(event: CommandEvent, text: str, part: str = "") -> UpsertComment:
    """Return the answer to one comment's commands: below that comment, addressed by login without a mention.

    ``part`` tells the answers of several handlers to one comment apart.
    """
    about = f"{event.comment.id}-{part}" if part else str(event.comment.id)
    body = f"{event.sender.login}: {text}"
    return UpsertComment(task="commands", number=event.number, body=body, about=about, thread=thread_of(event))


def react(event: CommandEvent, content: Literal["+1", "confused"]) -> React:
    """Return the reaction that acknowledges a comment."""
    on: Literal["issue", "review"] = "review" if isinstance(event, events.ReviewCommentCreated) else "issue"
    return React(comment_id=event.comment.id, on=on, content=content)


def thread_of(event: CommandEvent) -> int | None:
    """Return the first comment of the review thread that a comment stands in; None outside of one."""
    if not isinstance(event, events.ReviewCommentCreated):
        return None
    return event.comment.in_reply_to or event.comment.id


def asked_for(word: str, event: Event, services: Services) -> Command | None:
    """Return the command in a new comment if the commenter may use it; None for every other event."""
    commands = granted(event, services) if isinstance(event, CommandEvent) else ()
    return next((command for command in commands if command.word == word), None)


def is_request(event: Event, services: Services) -> bool:
    """Return True if a person asks for work: by a command, by a label, or with a button."""
    if event.sender.is_bot:
        return False
    if isinstance(event, CommandEvent):
        return bool(services.commands.read(event.comment.body))
    return isinstance(event, events.CheckRerequested | events.RecheckRequested | events.IssueLabeled)


def pull_of_check(event: events.CheckRerequested, forge: Forge) -> PullRequest | None:
    """Return the open pull request whose head a check is on that is to run again; None if there is none."""
    try:
        pulls = tuple(forge.pull_request(number) for number in event.numbers)
        if not pulls:
            # Events about a fork's commit name no pull request.
            pulls = forge.pulls_for_commit(event.head_sha)
    except NotFound:
        return None
    return next((pull for pull in pulls if pull.head_sha == event.head_sha and pull.state == "open"), None)


def too_soon(
    recent: Sequence[Decision], event: CommandEvent, now: datetime, word: str, limit: AuthorLimit
) -> bool:
    """Return True if the author reached the limit of ``word``; ``recent``: the commands of the last day. Pure."""
    # By time: comments on issues and comments in reviews have ids of their own.
    own = (event.comment.created_at or now).timestamp(), event.comment.id
    by_sender = [
        (decision.subject.key, record)
        for decision in recent
        if isinstance(record := decision.record, CommandsRecord)
        and word in record.done
        and record.by == event.sender.login
        # Not this very comment, which may be on record already.
        and record.comment not in (None, event.comment.id)
        and (record.at, record.comment) < own
    ]
    since = (now - limit.period).timestamp()
    all_comments = {record.comment for _, record in by_sender}
    on_subject = {record.comment for key, record in by_sender if key == event.subject.key and record.at > since}
    return len(all_comments) >= PER_DAY or len(on_subject) >= limit.uses


def by_maintainer(event: Event, services: Services) -> bool:
    """Return True if the event asks for work that only people with rights in the repository may ask for.

    Only commands that are granted count: an author may write any word beside ``recheck``.
    """
    if isinstance(event, events.CheckRerequested | events.RecheckRequested):
        return True
    if not isinstance(event, CommandEvent):
        return False
    words = {command.word for command in granted(event, services)} - {"help"}
    if event.by_author:
        return any(services.commands[word].author_limit is None for word in words)
    return bool(words)


def explains(event: CommandEvent, config: RepoConfig) -> bool:
    """Return True if ``/bouncer why`` is answered here: in shadow mode nothing was posted to ask about."""
    if isinstance(event, events.ReviewCommentCreated):
        return config.review.mode == "comment"
    return config.verify.mode == "check" if event.issue.is_pull_request else config.triage.mode == "comment"


def no_run_reason(pull: PullRequest, command: Command | None, word: str) -> str | None:
    """Return why a fork's head is not executed, empty if it was not asked for; None if it may be executed.

    A maintainer names the commit that they read by its whole id: a short id is easy to forge, and a commit that
    was pushed later is another one.
    """
    run = command.run if command else None
    if not pull.from_fork or run == pull.head_sha:
        return None
    if run is None:
        return ""
    return (
        f"Not executed, this is a fork's code: read commit {pull.head_sha[:7]}, "
        f"then comment `/bouncer {word} --run {pull.head_sha}`."
    )


#: ``Decision.abstained`` if a feature that was switched off ends its check. It is published in shadow mode too.
OFF = "skipped:off"


def off_reason(kind: Task, services: Services) -> str:
    """Return how the maintainers took a feature out of use, as a clause; empty if they did not.

    A mistake in bouncer.yml means shadow mode too, but must not open a required check.
    """
    mode = services.config.mode(kind)
    if mode == "off":
        return "switched off"
    is_mistake = any(kind in problem.shadowed for problem in services.config_problems)
    return "in shadow mode" if mode == "shadow" and not is_mistake else ""


def with_old_check(kind: Task, event: events.Event, services: Services) -> PullRequest | None:
    """Return the pull request of an event that ends the check of a feature which is off or in shadow mode.

    That is a change of the configuration, or "Re-run". None for other events, and if no check stands on its head.
    """
    if not off_reason(kind, services):
        return None
    pull: PullRequest | None = None
    if isinstance(event, events.LinkedIssueChanged):
        pull = services.forge.pull_request(event.number)
    elif isinstance(event, events.CheckRerequested):
        pull = pull_of_check(event, services.forge)
    if pull is None:
        return None
    past = services.history.decisions(f"{services.forge.repository}#{pull.number}", kind)
    actions = (action for decision in past for action in decision.actions)
    stands = any(isinstance(action, SetCheck) and action.head_sha == pull.head_sha for action in actions)
    return pull if stands and pull.state == "open" else None
