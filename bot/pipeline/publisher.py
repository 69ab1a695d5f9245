"""Publishes decisions: each action becomes a GitHub call, with harmless text, if its subject did not change.

Three things keep a write from being made twice: the register of our postings, the hidden marker that is looked for
before anything is created, and calls that change nothing when they are repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from bot.core.actions import Decision, SetDraft
from bot.core.errors import ForgeError, NotFound, NotInstalled
from bot.features.services import Services
from bot.github.writer import GitHubWriter
from bot.pipeline.body import Rules
from bot.pipeline.store.decisions import Postings, PublishOutcome
from bot.pipeline.write_context import Moved, Unwanted, WriteContext, unpaced
from bot.pipeline.writes import carry_out

#: Seconds between two writes through one installation (GitHub's best practices for integrators).
APART_SECONDS = 1.0
#: What GitHub says if a locked conversation or an archived repository takes no more writes.
READ_ONLY = ("issue is locked", "Repository was archived")


class Refused(ForgeError):
    """GitHub refused all actions of a decision for good, and nothing of it was posted."""


@dataclass(frozen=True)
class Published:
    """The outcome of publishing a decision; ``notes`` say what was left out, and why."""

    outcome: PublishOutcome
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((self.outcome, *self.notes))


class Paced(Exception):
    """Raised if the next write has to wait."""


class OneWrite:
    """Allow one write. Raise Paced before the second: the job's next attempt makes it."""

    def __init__(self) -> None:
        self._used = False

    def __call__(self) -> None:
        if self._used:
            raise Paced
        self._used = True


class Spaced:
    """Sleep until the last write is a second ago. For commands, which have no queue."""

    def __init__(self) -> None:
        self._last = -APART_SECONDS

    def __call__(self) -> None:
        time.sleep(max(0.0, self._last + APART_SECONDS - time.monotonic()))
        self._last = time.monotonic()


@dataclass(frozen=True)
class Publisher:
    """Publishes decisions. Publishing one again writes what is missing and nothing else.

    ``secrets`` are never written. ``before_write`` is called before each write that creates or changes content. If
    it raises Paced, the outcome is PACED, and publishing again goes on with the rest. ``marker_key`` signs our
    markers where other programs share our account (``shares_account``); without it no comment of the account that
    was there before is edited, because any of these programs could have written its marker.
    """

    postings: Postings
    secrets: Collection[str] = field(default=(), repr=False)
    before_write: Callable[[], None] = unpaced
    marker_key: bytes = field(default=b"", repr=False)
    shares_account: bool = False
    first_try: bool = False
    """No earlier attempt or job can have written, so a post that is not in the register does not exist."""
    on_request: bool = False
    """A person asked for the decision, so a comment that was deleted is written again."""

    def publish(self, decision: Decision, job: str, services: Services, writer: GitHubWriter) -> Published:
        """Carry out a decision's actions.

        Raises TransientError if a write may or may not have been applied; publishing again finds out. After all
        other actions were carried out, raises ForgeError if GitHub refused one for good, or Refused if it refused
        all of them.
        """
        if not decision.actions:
            return Published(PublishOutcome.WITHHELD if decision.withheld else PublishOutcome.NOTHING)
        rules = Rules(host=services.repository.host, secrets=tuple(self.secrets), about_url=services.about_url)
        context = WriteContext(decision, job, services, writer, self, rules, self.before_write)
        notes: list[str] = []
        refused: ForgeError | None = None
        try:
            for action in decision.actions:
                try:
                    notes += carry_out(action, context)
                except ForgeError as error:
                    # A refused write does not count as this attempt's: the next one would stop here again.
                    context.before_write = unpaced
                    if error.status == 403 and any(words in str(error) for words in READ_ONLY):
                        # The project takes no more of it: nothing that an operator could repair.
                        notes.append(f"not written: {error}")
                        continue
                    refused = refused or error
                    if isinstance(action, SetDraft):
                        break  # The comment after it would say that it was done.
        except Moved:
            return Published(PublishOutcome.MOVED, tuple(notes))
        except Unwanted:
            return Published(PublishOutcome.REFUSED, (*notes, "my comment was deleted, and is not written again"))
        except Paced:
            return Published(PublishOutcome.PACED)
        if refused is not None and (context.done or isinstance(refused, NotFound | NotInstalled)):
            raise refused
        if refused is not None:
            raise Refused(str(refused), refused.status)
        return Published(PublishOutcome.POSTED if context.done else PublishOutcome.REFUSED, tuple(notes))

    @property
    def may_edit(self) -> bool:
        """True if a comment with our marker that is not in the register is ours, so it may be edited."""
        return bool(self.marker_key) or not self.shares_account
