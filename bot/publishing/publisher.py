"""The only writer: actions become GitHub calls, each at most once, on the state that was judged, harmless.

Three layers keep a write from being made twice: our own register of what stands, the hidden marker looked for
before anything is created, and GitHub calls that change nothing when they are repeated. See ``executor``.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from bot.core.actions import Decision
from bot.core.markdown import host_of
from bot.errors import ForgeError, NotFound
from bot.forge.protocol import ForgeWriter
from bot.publishing.body import Rules
from bot.publishing.executor import Executor, Moved
from bot.services import Services
from bot.store.decisions import PublishOutcome
from bot.store.postings import Paces, Postings

#: Seconds between two creations through one installation (GitHub's best practices for integrators).
APART_SECONDS = 1.0


class Refused(ForgeError):
    """GitHub refused, for good, all that a decision asked for: nothing of it stands, and nobody saw it."""


@dataclass(frozen=True)
class Published:
    """What became of a decision's actions; ``notes`` say what was left out, and why."""

    outcome: PublishOutcome
    notes: tuple[str, ...] = ()


class Publisher:
    """Publishes decisions. Publishing one again writes what is missing and nothing else."""

    def __init__(
        self,
        postings: Postings,
        paces: Paces,
        *,
        apart: float = APART_SECONDS,
        secrets: Collection[str] = (),
    ) -> None:
        """``apart``: seconds between two creations through one installation; ``secrets`` are never written."""
        self._postings = postings
        self._paces = paces
        self._apart = apart
        self._secrets = tuple(secrets)

    def publish(
        self,
        decision: Decision,
        job: str,
        installation: int,
        services: Services,
        writer: ForgeWriter,
        *,
        unseen: bool = False,
    ) -> Published:
        """Carry out a decision's actions.

        ``unseen``: nothing was ever begun on this head, so no check of ours is looked for on it.

        Raises TransientError where a write may or may not have been applied (publishing again finds out), and
        ForgeError, after the other actions had their turn, where GitHub refused one for good; Refused where
        nothing is left that stands.
        """
        if not decision.actions:
            return Published("withheld" if decision.withheld else "nothing")
        rules = Rules(host=host_of(services.repository.html_url), secrets=self._secrets)
        pause = partial(self._pause, installation)
        executor = Executor(decision, job, services, writer, self._postings, pause, rules, unseen)
        notes: list[str] = []
        refused: ForgeError | None = None
        try:
            for action in decision.actions:
                try:
                    notes += executor.carry_out(action)
                except ForgeError as error:
                    refused = refused or error
        except Moved:
            return Published("moved", tuple(notes))
        if refused is not None:
            raise (
                refused
                if executor.done or isinstance(refused, NotFound)
                else Refused(str(refused), refused.status)
            )
        return Published("posted" if executor.done else "refused", tuple(notes))

    def _pause(self, installation: int) -> None:
        wait = self._paces.reserve(installation, self._apart)
        if wait > 0:
            time.sleep(wait)
