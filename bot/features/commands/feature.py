"""Commands: acknowledge or refuse ``/bouncer ...`` and remember what was accepted, paused or resumed."""

from collections.abc import Iterator
from datetime import timedelta
from typing import get_args

from bot.core import events
from bot.core.actions import Decision, UpsertComment
from bot.core.commands import AuthorLimit, SlashCommand
from bot.features.commands.handler import Trigger, concerns, handle
from bot.features.commands.record import CommandsRecord
from bot.features.feature import Feature
from bot.features.shared.posts import Posts


def standing(posts: Posts) -> Iterator[Decision]:
    """Yield the commands in the conversation, of people with rights, and the answers to deleted ones."""
    services, issue = posts.services, None
    for comment in posts.comments():
        if comment.author.is_bot or not services.commands.read(comment.body):
            continue
        issue = issue or posts.issue()
        event = events.CommentCreated(
            sender=comment.author, repository=services.repository, issue=issue, comment=comment
        )
        decision = handle(event, services)
        if decision is not None:
            yield decision
    # An author can delete a command, but not our answer to it.
    comment_ids = {str(comment.id) for comment in posts.comments()}
    for about in posts.answers("commands"):
        comment_id = about.partition("-")[0]
        if comment_id not in comment_ids:
            answer = UpsertComment(task="commands", number=posts.event.number, body="", about=about)
            yield Decision(
                kind="commands",
                subject=posts.subject(),
                actions=(answer,),
                abstained="deleted",
                record=CommandsRecord(comment=int(comment_id or 0)),
            )


FEATURE = Feature(
    name="commands",
    handle=handle,
    record=CommandsRecord,
    standing=standing,
    concerns=concerns,
    events=get_args(Trigger),
    commands=(
        SlashCommand("help", help="show this list", open_to_all=True),
        SlashCommand(
            "recheck",
            help="read the issue or pull request again",
            author_limit=AuthorLimit(1, timedelta(minutes=10), text="every ten minutes, six times a day"),
            sections=("verify", "review", "gate"),
        ),
        SlashCommand("accept", help="this issue is fine as is; it is not bounced again", on_pull_requests=False),
        SlashCommand("pause", help="leave this issue or pull request alone"),
        SlashCommand("resume", help="look at it again from now on"),
    ),
    checks_staleness=False,
    permissions={"issues": "write", "pull_requests": "write"},
)
