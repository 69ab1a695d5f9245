"""Why: ``/bouncer why`` is answered from what was recorded with a verdict or a finding."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import get_args

from bot.core.actions import Decision
from bot.core.commands import AuthorLimit, SlashCommand
from bot.features.feature import Feature
from bot.features.shared.posts import Posts
from bot.features.shared.rights import CommandEvent
from bot.features.why.explained import verdict_of
from bot.features.why.handler import WhyRecord, concerns, handle


def standing(posts: Posts) -> Iterator[Decision]:
    """Yield the earlier answers to ``/bouncer why``, except to this event."""
    comment = getattr(posts.event, "comment", None)
    for about in posts.answers("why"):
        if comment is None or about != str(comment.id):
            yield Decision(kind="why", subject=posts.subject(), verdict="answered")


FEATURE = Feature(
    name="why",
    handle=partial(handle, verdict_of=verdict_of),
    record=WhyRecord,
    standing=standing,
    concerns=concerns,
    events=get_args(CommandEvent),
    commands=(
        SlashCommand(
            "why",
            help="explain what the verdict rests on, or in a finding's thread, that finding",
            author_limit=AuthorLimit(3, timedelta(days=1), text="three times a day"),
        ),
    ),
    checks_staleness=False,
    permissions={"issues": "write", "pull_requests": "write"},
)
