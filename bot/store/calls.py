"""Model calls: what was asked, what it cost, and the reply, so that a job that runs again pays nothing twice."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import select

from bot.core.actions import Usage
from bot.models.protocol import Prompt
from bot.store.counters import Counted, Counters, counted
from bot.store.database import Database
from bot.store.tables import MODEL_CALLS


class Calls:
    """The log of model calls."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._counters = Counters(database)

    def reply(self, job: str, prompt_hash: str, schema: str) -> str | None:
        """The reply (as JSON) that this job got to this prompt before; None where it never got one."""
        with self._database.read() as connection:
            found = connection.scalar(
                select(MODEL_CALLS.c.reply).where(
                    MODEL_CALLS.c.job == job,
                    MODEL_CALLS.c.prompt_hash == prompt_hash,
                    MODEL_CALLS.c.schema == schema,
                    MODEL_CALLS.c.reply.is_not(None),
                )
            )
        return None if found is None else str(found)

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
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "seconds": usage.seconds,
            "cost_usd": usage.cost_usd,
            "reply": reply,
            "error": error.replace("\0", "")[:2000] or None,
            "created_at": self._clock(),
        }
        insert = self._database.insert(MODEL_CALLS).on_conflict_do_nothing().returning(MODEL_CALLS.c.id)
        with self._database.write() as connection:
            if connection.execute(insert, row).first() is not None:
                self._counters.add(_counts(model, usage, answered=reply is not None), connection)


def _counts(model: str, usage: Usage, *, answered: bool) -> dict[Counted, float]:
    return {
        counted("bouncer_model_calls", model=model, result="answered" if answered else "failed"): 1,
        counted("bouncer_model_tokens", model=model, direction="in"): usage.input_tokens,
        counted("bouncer_model_tokens", model=model, direction="out"): usage.output_tokens,
        counted("bouncer_model_seconds", model=model): usage.seconds,
        counted("bouncer_model_cost_usd", model=model): usage.cost_usd or 0.0,
    }
