"""Model calls: what was asked, what it cost, the reply, and what may be spent today.

A reply is remembered so that a job that runs again pays nothing twice. ``Budgets`` implements
``bot.models.budget.BudgetStore``.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection
from datetime import date, datetime
from typing import TypeVar

import structlog
from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection, delete, select, update

from bot.core.actions import Usage
from bot.core.errors import ModelError, TransientError
from bot.core.frozen import Frozen
from bot.models.budget import Limit, Spent, over
from bot.models.protocol import Model, Prompt, Reply, Wrapper
from bot.pipeline.store.counters import CounterKey, Counters, counter_key
from bot.pipeline.store.database import Database, Part
from bot.pipeline.store.tables import BUDGETS, MODEL_CALLS, MODEL_FAULTS, RESERVATIONS


class Calls(Part):
    """The log of model calls."""

    def reply(self, job: str, prompt_hash: str, schema: str) -> str | None:
        """Return the reply (JSON) that this job got to this prompt before; None if it got none."""
        text: str | None = self._database.scalar(
            select(MODEL_CALLS.c.reply).where(
                MODEL_CALLS.c.job == job,
                MODEL_CALLS.c.prompt_hash == prompt_hash,
                MODEL_CALLS.c.schema == schema,
                MODEL_CALLS.c.reply.is_not(None),
            )
        )
        return text

    def record(
        self,
        job: str,
        prompt: Prompt,
        schema: str,
        model: str,
        usage: Usage,
        *,
        reply: str | None,
        error: str = "",
    ) -> None:
        """Record a call that was answered (``reply``, JSON) or failed (``error``)."""
        row = {
            "job": job,
            "prompt_hash": prompt.hash,
            "schema": schema,
            "purpose": prompt.purpose,
            "repository": prompt.subject.rpartition("#")[0],
            "subject": prompt.subject,
            "model": model,
            **usage.model_dump(),
            "reply": reply,
            "error": error.replace("\0", "")[:2000] or None,
            "created_at": self._database.clock(),
        }
        insert = self._database.insert(MODEL_CALLS).on_conflict_do_nothing().returning(MODEL_CALLS.c.id)
        with self._database.write() as connection:
            if connection.execute(insert, row).first() is not None:
                Counters(self._database).add(_counts(model, usage, has_reply=reply is not None), connection)

    def forget(self, job: str) -> None:
        """Delete the calls of a job."""
        self._database.execute(delete(MODEL_CALLS).where(MODEL_CALLS.c.job == job))


def _counts(model: str, usage: Usage, *, has_reply: bool) -> dict[CounterKey, float]:
    return {
        counter_key("bouncer_model_calls", model=model, result="answered" if has_reply else "failed"): 1,
        counter_key("bouncer_model_tokens", model=model, direction="in"): usage.input_tokens,
        counter_key("bouncer_model_tokens", model=model, direction="out"): usage.output_tokens,
        counter_key("bouncer_model_seconds", model=model): usage.seconds,
        counter_key("bouncer_model_cost_usd", model=model): usage.cost_usd or 0.0,
    }


class ModelFault(Frozen):
    """A model whose provider refuses requests until an operator acts."""

    model: str
    why: str
    since_at: datetime


class Faults(Part):
    """The faults of models, which every process can read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._answered: dict[str, float] = {}

    def refused(self, model: str, why: str) -> None:
        """Record a refusal; the moment of the first one is kept."""
        self._answered.pop(model, None)
        row = {"model": model, "why": why.replace("\0", "")[:1000], "since_at": self._database.clock()}
        insert = self._database.insert(MODEL_FAULTS)
        insert = insert.on_conflict_do_update(index_elements=["model"], set_={"why": row["why"]})
        self._database.execute(insert, row)

    def answered(self, model: str) -> None:
        """Forget a fault. Asks the database about a model once a minute at most."""
        now = self._database.clock()
        if now - self._answered.get(model, 0.0) < 60.0:
            return
        self._answered[model] = now
        self._database.execute(delete(MODEL_FAULTS).where(MODEL_FAULTS.c.model == model))

    def keep_only(self, models: Collection[str]) -> None:
        """Forget the faults of models that are not asked any more."""
        self._database.execute(delete(MODEL_FAULTS).where(MODEL_FAULTS.c.model.not_in(models)))

    def all(self) -> tuple[ModelFault, ...]:
        """Return the present faults, the oldest first."""
        rows = self._database.rows(select(MODEL_FAULTS).order_by(MODEL_FAULTS.c.since_at))
        return tuple(ModelFault(**row._asdict()) for row in rows)


class Budgets(Part):
    """Daily budgets. The reservations of a killed worker stay: a call too few is better than one too many."""

    def spent(self, day: date, scope: str) -> Spent:
        """Return the sum of settled and reserved spending."""
        with self._database.read() as connection:
            return self._spent(connection, day, scope)

    def reserve(self, day: date, limits: tuple[Limit, ...], worst: Spent) -> str:
        """Book ``worst`` on every scope. If ``over`` returns an error for a scope, book nothing and raise it."""
        # All workers use the same order, so that no deadlock can occur.
        scopes = sorted({limit.scope for limit in limits})
        reservation = uuid.uuid4().hex
        with self._database.write() as connection:
            for scope in scopes:
                fresh = {"day": day.isoformat(), "scope": scope, "micros": 0, "calls": 0}
                connection.execute(self._database.insert(BUDGETS).on_conflict_do_nothing(), fresh)
                self._add(connection, day.isoformat(), scope, worst.micros, worst.calls)
            for limit in limits:
                spent = self._spent(connection, day, limit.scope)
                before = Spent(micros=spent.micros - worst.micros, calls=spent.calls - worst.calls)
                if error := over(limit, day, before, worst):
                    raise error
            connection.execute(
                RESERVATIONS.insert(),
                {
                    "id": reservation,
                    "day": day.isoformat(),
                    "scopes": json.dumps(scopes),
                    "micros": worst.micros,
                    "calls": worst.calls,
                },
            )
        return reservation

    def settle(self, reservation: str, spent: Spent) -> None:
        """Replace what was reserved by what was really spent; settling again changes nothing."""
        with self._database.write() as connection:
            deletion = delete(RESERVATIONS).where(RESERVATIONS.c.id == reservation).returning(RESERVATIONS)
            row = connection.execute(deletion).one_or_none()
            if row is not None:
                for scope in json.loads(row.scopes):
                    self._add(connection, row.day, scope, spent.micros - row.micros, spent.calls - row.calls)

    @staticmethod
    def _add(connection: Connection, day: str, scope: str, micros: int, calls: int) -> None:
        connection.execute(
            update(BUDGETS)
            .where(BUDGETS.c.day == day, BUDGETS.c.scope == scope)
            .values(micros=BUDGETS.c.micros + micros, calls=BUDGETS.c.calls + calls)
        )

    @staticmethod
    def _spent(connection: Connection, day: date, scope: str) -> Spent:
        row = connection.execute(
            select(BUDGETS.c.micros, BUDGETS.c.calls).where(
                BUDGETS.c.day == day.isoformat(), BUDGETS.c.scope == scope
            )
        ).one_or_none()
        return Spent() if row is None else Spent(micros=max(0, row.micros), calls=max(0, row.calls))


T = TypeVar("T", bound=BaseModel)

_log = structlog.get_logger(__name__)


class AskOnce(Wrapper):
    """A Model that asks ``model`` only for replies that this job does not have yet. Thread-safe."""

    def __init__(self, model: Model, calls: Calls, job: str) -> None:
        super().__init__(model)
        self._calls = calls
        self._job = job

    def stored(self, prompt: Prompt, schema: type[BaseModel]) -> str | None:
        """Return the reply (JSON) that this job has; None if the model would be asked."""
        return self._calls.reply(self._job, prompt.hash, schema.__name__)

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        """Return a remembered reply, with its original usage, or ask the model."""
        if (stored_reply := self.stored(prompt, schema)) is not None:
            try:
                return Reply[schema].model_validate_json(stored_reply)  # type: ignore[valid-type]
            except ValidationError:
                # Written by another version of the program, with another schema.
                _log.warning("reply_unreadable", job=self._job, purpose=prompt.purpose)
        try:
            reply = self._model.complete(prompt, schema)
        except (ModelError, TransientError) as error:
            failure = f"{error.reason if isinstance(error, ModelError) else 'transient'}: {error}"
            spent = error.usage or Usage()
            self._calls.record(
                self._job, prompt, schema.__name__, self._model.id, spent, reply=None, error=failure
            )
            raise
        self._calls.record(
            self._job, prompt, schema.__name__, reply.model, reply.usage, reply=reply.model_dump_json()
        )
        return reply
