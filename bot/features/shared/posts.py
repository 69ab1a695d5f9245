"""Our own posts on an issue or pull request, by which features recognise earlier decisions without a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from bot.core import events
from bot.core.actions import Task
from bot.core.subjects import Comment, Issue, ReviewComment, Subject
from bot.features.services import Services
from bot.github.protocol import PostedReview

Post = TypeVar("Post", Comment, ReviewComment, PostedReview)


class Mark(NamedTuple):
    """The hidden marker at the end of a post: the feature that wrote it, and what tells its posts apart."""

    task: Task
    about: str


@dataclass(frozen=True)
class Posts:
    """The conversation on the subject of an event. Only posts of our account with a signed marker are ours."""

    event: events.RepositoryEvent
    services: Services
    """Without a history."""
    read_mark: Callable[[str], Mark | None]
    """Return the marker of a body; None if it has none that counts."""
    without_mark: Callable[[str], str]
    """Return a body as it was before its marker was added."""

    def subject(self, revision: str = "") -> Subject:
        """Return the subject of the event at a revision."""
        return Subject(repository=self.services.forge.repository, number=self.event.number, revision=revision)

    def issue(self) -> Issue:
        """Return the issue, or the pull request as an issue."""
        own = self.event.issue if isinstance(self.event, events.CommentCreated) else None
        return own or self.services.forge.issue(self.event.number)

    @property
    def on_pull(self) -> bool:
        """True if the subject is a pull request."""
        if isinstance(self.event, events.CommentCreated):
            return self.event.issue.is_pull_request
        return not isinstance(self.event, events.IssueEvent)

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments in the conversation, oldest first."""
        return self.services.forge.comments(self.event.number)

    def ours(self, task: Task) -> Iterator[tuple[Comment, Mark]]:
        """Yield the comments of a feature in the conversation."""
        yield from self._marked(self.comments(), task)

    def ours_on_lines(self, task: Task) -> Iterator[tuple[ReviewComment, Mark]]:
        """Yield the comments of a feature on lines of a pull request."""
        if self.on_pull:
            yield from self._marked(self.services.forge.review_comments(self.event.number), task)

    def our_reviews(self, task: Task) -> Iterator[tuple[PostedReview, Mark]]:
        """Yield the reviews of a feature."""
        if self.on_pull:
            yield from self._marked(self.services.forge.reviews(self.event.number), task)

    def answers(self, task: Task) -> tuple[str, ...]:
        """Return the ids of the comments that a feature answered, which may be deleted since."""
        marks = (mark for posts in (self.ours(task), self.ours_on_lines(task)) for _, mark in posts)
        return tuple(dict.fromkeys(mark.about for mark in marks))

    def _marked(self, posts: tuple[Post, ...], task: Task) -> Iterator[tuple[Post, Mark]]:
        ours = self.services.forge.identity().id
        for post in posts:
            mark = self.read_mark(post.body) if post.author.id == ours else None
            if mark is not None and mark.task == task:
                yield post, mark
