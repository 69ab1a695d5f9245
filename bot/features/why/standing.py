"""Earlier answers to ``/bouncer why``."""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.actions import Decision
from bot.features.shared.posts import Posts


def standing(posts: Posts) -> Iterator[Decision]:
    """Yield the answers, except to this event."""
    comment = getattr(posts.event, "comment", None)
    for about in posts.answers("why"):
        if comment is None or about != str(comment.id):
            yield Decision(kind="why", subject=posts.subject(), verdict="answered")
