"""Earlier commands, read back from people's comments and our answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from bot.core.actions import Decision, UpsertComment
from bot.core.events import CommentCreated
from bot.core.subjects import Comment
from bot.features.commands.handler import handle
from bot.features.commands.record import CommandsRecord
from bot.features.services import Services
from bot.features.shared.posts import Posts


def standing(posts: Posts) -> Iterator[Decision]:
    """Yield the commands in the conversation, of people with rights, and the answers to deleted ones."""
    services, issue = posts.services, None
    for comment in posts.comments():
        if comment.author.is_bot or not services.commands.read(comment.body):
            continue
        issue = issue or posts.issue()
        event = CommentCreated(sender=comment.author, repository=services.repository, issue=issue, comment=comment)
        decision = handle(event, replace(services, clock=partial(_when, comment, services)))
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


def _when(comment: Comment, services: Services) -> datetime:
    return comment.created_at or services.clock()
