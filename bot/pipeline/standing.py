"""Earlier decisions, read back from our comments and labels on GitHub: the history of a run without a database."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bot.core import events
from bot.core.actions import Decision, Task
from bot.features.commands.feature import FEATURE as COMMANDS
from bot.features.commands.record import CommandsRecord
from bot.features.services import NoHistory, Services
from bot.features.shared.posts import Mark, Posts
from bot.pipeline.body import Seal, without_marker
from bot.router import FEATURES


class StandingHistory(NoHistory):
    """Implements ``bot.features.services.History`` for one issue or pull request, as the features read it back.

    Our own comments and reviews count, by account and signed marker, and commands of people with rights. Authors
    give no commands: they could delete the comments by which their commands are counted.
    """

    def __init__(self, event: events.RepositoryEvent, services: Services, marker_key: bytes) -> None:
        seal = Seal(repository=services.forge.repository, number=event.number or 0, key=marker_key)

        def read_mark(body: str) -> Mark | None:
            # Without a key to sign with, no marker counts.
            sign = seal.read(body) if seal.key else None
            return None if sign is None else Mark(*sign)

        self._posts = Posts(event, replace(services, history=NoHistory()), read_mark, without_marker)

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        event = self._posts.event
        if subject != event.subject.key or not event.number:
            return ()
        # Verdicts first: a command answers what stood before it.
        return tuple(
            decision
            for feature in sorted(FEATURES, key=lambda feature: not feature.judges)
            if feature.standing is not None and (not kinds or feature.name in kinds)
            for decision in feature.standing(self._posts)
        )

    def commands(self, repository: str, since: datetime) -> tuple[Decision, ...]:
        return tuple(
            decision
            for decision in self.decisions(self._posts.event.subject.key, COMMANDS.name)
            if isinstance(decision.record, CommandsRecord) and decision.record.at >= since.timestamp()
        )
