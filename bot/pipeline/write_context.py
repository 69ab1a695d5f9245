"""The context of the writes of one decision: its subject, our earlier posts, the register and the pace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot import router
from bot.core.actions import Action, Decision
from bot.core.subjects import Comment, Issue, PullRequest, ReviewComment
from bot.features.services import Services
from bot.github.protocol import PostedReview
from bot.github.writer import GitHubWriter
from bot.pipeline.body import Rules, Seal
from bot.pipeline.store.decisions import Posting, Postings, content_hash

if TYPE_CHECKING:
    from bot.pipeline.publisher import Publisher


class Moved(Exception):
    """Raised if the subject changed, or was closed or locked, or its feature switched off, since the decision."""


class Unwanted(Exception):
    """Raised if a person deleted the comment that a decision would change."""


def unpaced() -> None:
    """Allow every write at once."""


@dataclass
class WriteContext:
    """The writes of one decision for a job; ``done`` counts the actions whose result stands on GitHub."""

    decision: Decision
    job: str
    services: Services
    writer: GitHubWriter
    publisher: Publisher
    rules: Rules
    before_write: Callable[[], None]
    done: int = 0
    fresh: Issue | PullRequest | None = None
    """The subject, as ``check_staleness`` read it."""

    @property
    def repository(self) -> str:
        return self.services.forge.repository

    @property
    def postings(self) -> Postings:
        return self.publisher.postings

    def check_staleness(self) -> None:
        """Read the subject again. Raises Moved if it changed, or if the feature was switched off."""
        subject, feature = self.decision.subject, router.feature_named(self.decision.kind)
        if not subject.number:
            return
        if not feature.is_wanted(self.decision, self.services.config):
            raise Moved
        if not feature.checks_staleness:
            return
        if subject.revision.startswith("sha:"):
            self.fresh = self.services.forge.pull_request(subject.number)
        elif subject.revision.startswith("text:"):
            self.fresh = self.services.forge.issue(subject.number)
        if self.fresh is None:
            return
        is_over = self.fresh.state == "closed" or self.fresh.locked
        if isinstance(self.fresh, PullRequest):
            is_over |= self.fresh.draft and not self.services.config.pulls.drafts
        if self.fresh.revision != subject.revision or (self.decision.only_open and is_over):
            raise Moved

    def issue(self, number: int) -> Issue:
        """Return an issue, without a request if it was read already."""
        issue = self.fresh
        return issue if isinstance(issue, Issue) and issue.number == number else self.services.forge.issue(number)

    def seal(self, number: int) -> Seal:
        return Seal(repository=self.repository, number=number, key=self.publisher.marker_key)

    def own_post(
        self, posts: Iterable[Comment | ReviewComment | PostedReview], number: int, marker: tuple[str, str]
    ) -> int | None:
        """Return the id of the first of these posts that is ours and has this marker; None if there is none."""
        me, seal = self.services.forge.identity().id, self.seal(number)
        return next((post.id for post in posts if post.author.id == me and seal.read(post.body) == marker), None)

    def register(self, key: str, action: Action, number: int, github_id: int, content: str) -> None:
        """Put a write into the register, and count the action as done."""
        self.postings.put(
            Posting(
                key=key,
                type=action.type,
                task=self.decision.kind,
                repository=self.repository,
                number=number,
                job=self.job,
                github_id=github_id,
                content_hash=content_hash(content),
            )
        )
        self.done += 1
