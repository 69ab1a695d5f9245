"""The page about the line: what it did, what another one would have done, and a promise that is broken."""

from __future__ import annotations

import time

from flask import Flask

from bot.calibration.fates import GRACE
from bot.core.actions import Decision
from bot.core.subjects import KnownFate, Subject
from bot.features.feedback.record import FeedbackRecord
from bot.pipeline.store.decisions import Fates
from bot.web.app import Backend
from tests.bot.web.dashboard.test_access import log_in


def tell(backend: Backend, number: int, *, good: bool, chance: int | None, bouncer: str = "triage") -> None:
    """A subject that was judged under a promise of 5 %, with the line at 60, and what became of it."""
    fate = KnownFate(
        subject=f"acme/rocket#{number}",
        bouncer=bouncer,  # type: ignore[arg-type]
        good=good,
        why="closed",
        p_bounce=chance,
        bounced=chance is not None and chance >= 60,
        harm=5,
    )
    subject = Subject(repository="acme/rocket", number=number, revision="")
    decision = Decision(
        kind="feedback",
        subject=subject,
        record=FeedbackRecord.model_validate({"fates": [fate.model_dump(mode="json")]}),
    )
    backend.ledger().decisions.record(f"end{bouncer}{number}", (decision,), "c0ffee")


def page(app: Flask, backend: Backend) -> str:
    client = app.test_client()
    log_in(client)
    return client.get("/line?repository=acme/rocket").text


def test_a_promise_that_holds_is_shown_beside_other_thresholds(app: Flask, backend: Backend) -> None:
    for number in range(40):
        tell(backend, number, good=True, chance=number % 50)
    for number in range(40, 50):
        tell(backend, number, good=False, chance=70)
    text = page(app, backend)
    assert "The promise holds so far" in text
    assert "Your setting bounced 0 of 40 issues that a merged pull request closed, and 10 of 10" in text
    assert text.count("<svg") == 3
    assert "at or above 30 %" in text


def test_a_broken_promise_is_a_warning(app: Flask, backend: Backend) -> None:
    for number in range(40):
        tell(backend, number, good=True, chance=80 if number % 4 == 0 else 5)
    assert "The promise is broken: at most 5 %" in page(app, backend)


def test_a_merge_counts_once_nothing_has_undone_it_for_thirty_days(backend: Backend) -> None:
    tell(backend, 1, good=True, chance=10, bouncer="verify")
    tell(backend, 2, good=False, chance=10, bouncer="verify")
    now = Fates(backend.ledger().database)
    assert [fate.subject for fate in now.of("acme/rocket", "verify")] == ["acme/rocket#2"]
    later = Fates(backend.ledger().database, lambda: time.time() + GRACE.total_seconds() + 60)
    assert [fate.good for fate in later.of("acme/rocket", "verify")] == [False, True]
    tell(backend, 1, good=False, chance=10, bouncer="verify")
    assert [fate.good for fate in now.of("acme/rocket", "verify")] == [False, False]
