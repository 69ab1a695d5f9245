"""The store keeps decisions once and whole, and features see the published ones only."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import date

import pytest
from sqlalchemy import create_engine, select, text, update

from bot.core.actions import Decision, Usage
from bot.core.errors import BudgetExceeded, ModelError
from bot.core.subjects import Subject
from bot.features.triage.judgement import InputReply
from bot.features.triage.record import TriageRecord
from bot.models.budget import Limit, Spent
from bot.models.protocol import Prompt
from bot.pipeline.store import Database, Ledger, Posting
from bot.pipeline.store.calls import AskOnce
from bot.pipeline.store.database import database_at
from bot.pipeline.store.overview import Filter, Overview
from bot.pipeline.store.tables import COUNTERS, DECISIONS
from tests.bot.pipeline.rig import REPLY
from tests.scripted import ScriptedModel

DAY = date(2026, 11, 1)


def decision(number: int = 7, kind="triage", **more) -> Decision:
    return Decision(kind=kind, subject=Subject(repository="acme/rocket", number=number, revision="text:1"), **more)


def test_connections_of_a_busy_moment_are_kept(postgres_uri):
    def sessions() -> set[int]:
        with ExitStack() as open_connections:
            connections = [open_connections.enter_context(database.read()) for _ in range(15)]
            return {connection.scalar(text("SELECT pg_backend_pid()")) for connection in connections}

    with closing(database_at(postgres_uri)) as database:
        assert sessions() == sessions()


def test_a_decision_is_recorded_once_for_its_job(ledger):
    first = decision(
        verdict="VAGUE", record=TriageRecord(questions=("Which?",)), usage=Usage(calls=1, input_tokens=9)
    )
    assert ledger.decisions.record("d:triage", [first], "c0ffee") == (first,)
    assert ledger.decisions.record("d:triage", [decision(verdict="WELL_SPECIFIED")], "c0ffee") == (first,)
    assert ledger.decisions.decisions("acme/rocket#7") == (first,)


def test_history_is_of_one_subject_of_the_kinds_asked_for_oldest_first(ledger):
    decisions = [
        decision(verdict="VAGUE"),
        decision(kind="commands", verdict="accept"),
        decision(8, verdict="VAGUE"),
    ]
    for number, item in enumerate(decisions):
        ledger.decisions.record(f"d{number}:x", [item], "")
    assert ledger.decisions.decisions("acme/rocket#7", "triage", "commands") == (decisions[0], decisions[1])
    assert ledger.decisions.decisions("acme/rocket#7", "commands") == (decisions[1],)
    assert ledger.decisions.decisions("acme/rocket#9") == ()


@pytest.mark.parametrize("outcome", ["moved", "stopped", "refused"])
def test_what_nobody_saw_is_no_history(ledger, outcome):
    ledger.decisions.record("d:triage", [decision(verdict="VAGUE")], "")
    ledger.decisions.settle("d:triage", 0, outcome)
    assert ledger.decisions.decisions("acme/rocket#7") == ()
    assert len(ledger.decisions.of_job("d:triage")) == 1


def test_a_decision_of_another_version_can_be_stopped(ledger):
    ledger.decisions.record("d:triage", [decision(verdict="VAGUE")], "")
    ledger.database.execute(update(DECISIONS).values(decision='{"kind": "of another time"}'))
    ledger.decisions.stop("d:triage")
    assert ledger.database.scalar(select(DECISIONS.c.outcome)) == "stopped"


def test_what_was_published_stays_history_whatever_is_stopped_later(ledger):
    ledger.decisions.record("d:triage", [decision(verdict="VAGUE")], "")
    ledger.decisions.settle("d:triage", 0, "posted")
    ledger.decisions.stop("d:triage")
    assert len(ledger.decisions.decisions("acme/rocket#7")) == 1


@pytest.mark.parametrize("odd", ["nul \0 here", "half a pair \ud800", "\U0001f600", "\u202e"])
def test_odd_text_from_a_model_can_be_stored(ledger, odd):
    recorded = ledger.decisions.record(
        "d:triage", [decision(verdict="VAGUE", record=TriageRecord(explanation=odd))], ""
    )
    assert recorded[0].record.explanation == odd.replace("\ud800", "?")


def test_a_job_asks_a_question_once_and_another_job_asks_for_itself(ledger):
    model = ScriptedModel(lambda prompt: REPLY)
    prompt = Prompt(purpose="triage", system="s", user="u", subject="acme/rocket#7")
    first, again, other = (AskOnce(model, ledger.calls, job) for job in ("d:triage", "d:triage", "e:triage"))
    reply = first.complete(prompt, InputReply)
    assert again.complete(prompt, InputReply) == reply
    assert len(model.asked) == 1
    other.complete(prompt, InputReply)
    again.complete(prompt.model_copy(update={"sample": 1}), InputReply)
    assert len(model.asked) == 3


def test_a_failure_is_recorded_and_asked_again(ledger):
    model = ScriptedModel([ModelError("I will not", "refused"), REPLY])
    prompt = Prompt(purpose="triage", system="s", user="u", subject="acme/rocket#7")
    remembered = AskOnce(model, ledger.calls, "d:triage")
    with pytest.raises(ModelError, match="I will not"):
        remembered.complete(prompt, InputReply)
    assert remembered.complete(prompt, InputReply).value.label == "VAGUE"


def test_a_posting_replaces_what_was_known_under_its_key(ledger):
    posting = Posting(
        key="comment:acme/rocket#7:triage",
        type="upsert_comment",
        task="triage",
        repository="acme/rocket",
        number=7,
        job="d:triage",
        github_id=5_000_000_000,
        content_hash="a",
    )
    assert ledger.postings.find(posting.key) is None
    ledger.postings.put(posting)
    changed = posting.model_copy(update={"content_hash": "b", "job": "e:triage"})
    ledger.postings.put(changed)
    assert ledger.postings.find(posting.key) == changed


LIMITS = (Limit(scope="repository:acme/rocket", calls=10), Limit(scope="all", usd=1.0))


def test_a_budget_is_reserved_in_every_scope_or_in_none(ledger):
    budgets = ledger.budgets
    reservation = budgets.reserve(DAY, LIMITS, Spent(micros=400_000, calls=3))
    assert budgets.spent(DAY, "all") == Spent(micros=400_000, calls=3)
    with pytest.raises(BudgetExceeded, match="all"):
        budgets.reserve(DAY, LIMITS, Spent(micros=700_000, calls=3))
    assert budgets.spent(DAY, "repository:acme/rocket").calls == 3
    budgets.settle(reservation, Spent(micros=100_000, calls=1))
    budgets.settle(reservation, Spent(micros=100_000, calls=1))
    assert budgets.spent(DAY, "all") == Spent(micros=100_000, calls=1)
    budgets.reserve(DAY, LIMITS, Spent(micros=700_000, calls=3))
    budgets.reserve(date(2026, 11, 2), LIMITS, Spent(micros=700_000, calls=3))


def test_many_workers_together_never_pass_a_budget(ledger):
    def reserve(_: int) -> bool:
        try:
            ledger.budgets.reserve(DAY, LIMITS, Spent(micros=1, calls=1))
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(reserve, range(30))) == 10
    assert ledger.budgets.spent(DAY, "all").calls == 10


def test_counts_of_all_processes_add_up(ledger):
    accepted = ("bouncer_deliveries", (("answer", "accepted"),))
    ledger.counters.add({accepted: 2})
    ledger.counters.add({accepted: 3})
    ledger.counters.set({("left", ()): 9})
    ledger.counters.set({("left", ()): 4})
    assert ledger.counters.all() == {accepted: 5, ("left", ()): 4}


def test_nothing_withheld_is_written_in_any_form(database: Database) -> None:
    database.withheld = lambda: ('two "lines"\nof a key', "short")
    texts = ('a two "lines"\nof a key b', json.dumps({"k": 'two "lines"\nof a key'}), "a short word")
    with database.write() as connection:
        for number, text in enumerate(texts):
            connection.execute(
                COUNTERS.insert(), {"name": text, "labels": str(number), "value": 1, "updated_at": 1}
            )
    labels = database.scalars(COUNTERS.select().order_by(COUNTERS.c.labels))
    assert labels == ["a REDACTED b", '{"k": "REDACTED"}', "a short word"]


def test_decisions_are_found_by_what_was_said(ledger: Ledger, database: Database) -> None:
    for number, reason in enumerate(('It says "Ünklar" here', "100% sure", "under_score"), start=1):
        ledger.decisions.record(f"d{number}:triage", (decision(number, verdict="VAGUE", reason=reason),), "c")

    def numbers(text: str) -> list[int]:
        return [line.number for line in Overview(database).decisions(Filter(text=text))]

    assert numbers('says "Ünklar"') == [1]
    assert numbers("SAYS") == [1]
    assert numbers("100%") == [2]
    assert numbers("r_s") == [3]
    assert numbers("#2") == [2]
    assert numbers("acme/rocket#3") == [3]
    assert numbers("acme/sled#3") == []


def test_an_old_sqlite_tells_parts_of_seconds_to_the_engine(tmp_path):
    # From Python 3.12 on, dbos asks on connections of its own; SQLite answers since 3.42.
    engine = create_engine(f"sqlite:///{tmp_path / 'engine.db'}")
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT unixepoch('subsec')")) == pytest.approx(time.time(), abs=60)
    engine.dispose()
