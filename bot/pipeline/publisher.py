"""Publishes decisions: each action becomes a GitHub call, with harmless text, if its subject did not change."""

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
from bot.pipeline.writes import Stop, Writes, unpaced

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


class OneWrite:
    """Allow one write. Stop with PACED before the second: the job's next attempt makes it."""

    def __init__(self) -> None:
        self._used = False

    def __call__(self) -> None:
        if self._used:
            raise Stop(PublishOutcome.PACED)
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
    it stops with PACED, publishing again goes on with the rest. ``marker_key`` signs our markers where other
    programs share our account (``shares_account``); without it no comment of the account that was there before is
    edited, because any of these programs could have written its marker.
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
        writes = Writes(
            postings=self.postings,
            marker_key=self.marker_key,
            may_edit=bool(self.marker_key) or not self.shares_account,
            first_try=self.first_try,
            on_request=self.on_request,
            before_write=self.before_write,
            rules=Rules(host=services.repository.host, secrets=tuple(self.secrets), about_url=services.about_url),
            decision=decision,
            job=job,
            services=services,
            writer=writer,
        )
        refused: ForgeError | None = None
        try:
            for action in decision.actions:
                try:
                    writes.carry_out(action)
                except ForgeError as error:
                    # A refused write does not count as this attempt's: the next one would stop here again.
                    writes.before_write = unpaced
                    if error.status == 403 and any(words in str(error) for words in READ_ONLY):
                        # The project takes no more of it: nothing that an operator could repair.
                        writes.notes.append(f"not written: {error}")
                        continue
                    refused = refused or error
                    if isinstance(action, SetDraft):
                        break  # The comment after it would say that it was done.
        except Stop as stop:
            return Published(stop.outcome, tuple(writes.notes))
        if refused is not None and (writes.done or isinstance(refused, NotFound | NotInstalled)):
            raise refused
        if refused is not None:
            raise Refused(str(refused), refused.status)
        return Published(PublishOutcome.POSTED if writes.done else PublishOutcome.REFUSED, tuple(writes.notes))
