"""Decisions, each recorded once for its job; the history that handlers read."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

from pydantic_core import PydanticSerializationError
from sqlalchemy import or_, select, update

from bot.actions import Decision, Task
from bot.ledger.database import Database
from bot.ledger.signals import Signals
from bot.ledger.tables import DECISIONS

#: Decisions that say, or imply, what people made of an earlier one.
_SIGNS: tuple[Task, ...] = ("triage", "review", "commands", "feedback")


#: posted: all that was to be written stands; nothing: there was nothing to write; moved: the subject changed
#: meanwhile; stopped: superseded or cancelled; refused: GitHub or our own rules would not have it; taken up
#: again: it was an abstention for want of budget, and a later day decided.
Outcome = Literal["posted", "nothing", "moved", "stopped", "refused", "taken up again"]


class Decisions:
    """Implements ``bot.services.History``."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._signals = Signals(database, clock)

    def record(self, job: str, decisions: Sequence[Decision], config_hash: str) -> tuple[Decision, ...]:
        """Record what a job decided, and return what is recorded: an earlier run of the job came first."""
        rows = [self._row(job, position, each, config_hash) for position, each in enumerate(decisions)]
        with self._database.write() as connection:
            if rows:
                insert = self._database.insert(DECISIONS)
                connection.execute(insert.on_conflict_do_nothing(index_elements=["job", "position"]), rows)
        for subject in {each.subject.key: each.subject for each in decisions if each.kind in _SIGNS}.values():
            self._signals.refresh(subject.repository, self.decisions(subject.key, *_SIGNS))
        return self.of_job(job)

    def of_job(self, job: str) -> tuple[Decision, ...]:
        """What a job decided, in its order; empty where it has not (or had nothing to decide)."""
        here = DECISIONS.c.job == job, DECISIONS.c.position >= 0
        return self._read(select(DECISIONS.c.decision).where(*here).order_by(DECISIONS.c.position))

    def take_up(self, job: str, words: Collection[str]) -> None:
        """Let a job decide anew where it abstained with one of ``words``; the abstention stays on record."""
        with self._database.write() as connection:
            connection.execute(
                update(DECISIONS)
                .where(DECISIONS.c.job == job, DECISIONS.c.position >= 0, DECISIONS.c.abstained.in_(words))
                .values(position=-DECISIONS.c.id, outcome="taken up again")
            )

    def settle(self, job: str, position: int, outcome: Outcome) -> None:
        """Note what publishing came to."""
        with self._database.write() as connection:
            connection.execute(
                update(DECISIONS)
                .where(DECISIONS.c.job == job, DECISIONS.c.position == position)
                .values(outcome=outcome)
            )

    def stop(self, job: str) -> None:
        """Note that what a job decided, and has not published yet, will not be."""
        with self._database.write() as connection:
            connection.execute(
                update(DECISIONS)
                .where(DECISIONS.c.job == job, DECISIONS.c.outcome.is_(None))
                .values(outcome="stopped")
            )

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        """Decisions on ``owner/name#number`` of these kinds (all where none is named), oldest first.

        Those that nobody ever saw, because the world had moved on or GitHub refused them, are left out: a
        question that was not posted was not asked.
        """
        repository, _, number = subject.rpartition("#")
        query = select(DECISIONS.c.decision).where(
            DECISIONS.c.repository == repository,
            DECISIONS.c.number == int(number),
            or_(DECISIONS.c.outcome.is_(None), DECISIONS.c.outcome.in_(("posted", "nothing"))),
        )
        if kinds:
            query = query.where(DECISIONS.c.kind.in_(kinds))
        return self._read(query.order_by(DECISIONS.c.id))

    def muted(self, repository: str) -> frozenset[str]:
        """Review categories that this repository's people dismissed too often."""
        return self._signals.muted(repository)

    def _read(self, query: Any) -> tuple[Decision, ...]:
        with self._database.read() as connection:
            texts = connection.scalars(query).all()
        return tuple(Decision.model_validate_json(text) for text in texts)

    def _row(self, job: str, position: int, decision: Decision, config_hash: str) -> dict[str, object]:
        usage = decision.usage
        return {
            "job": job,
            "position": position,
            "kind": decision.kind,
            "repository": decision.subject.repository,
            "number": decision.subject.number,
            "revision": decision.subject.revision,
            "verdict": decision.verdict,
            "abstained": decision.abstained,
            "bounced": _bounced(decision),
            "model": decision.model,
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "seconds": usage.seconds,
            "cost_usd": usage.cost_usd,
            "decision": _stored(decision),
            "config_hash": config_hash,
            "created_at": self._clock(),
        }


def _bounced(decision: Decision) -> bool | None:
    """Whether a bouncer turned its subject back; None for decisions that are about something else."""
    return bool(decision.evidence["bounced"]) if decision.verdict and "bounced" in decision.evidence else None


def _stored(decision: Decision) -> str:
    try:
        return decision.model_dump_json()
    except PydanticSerializationError:
        # Half of a surrogate pair, as models and strangers send them, has no place in UTF-8.
        return Decision.model_validate(_whole(decision.model_dump())).model_dump_json()


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(each) for each in value]
    return value
