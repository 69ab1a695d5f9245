"""Installations, pauses and the search over decisions, on both databases."""

from __future__ import annotations

from bot.core import events
from bot.core.actions import Decision
from bot.core.subjects import Actor, Repository, Subject
from bot.pipeline.store import Database, Ledger
from bot.pipeline.store.overview import Filter, Overview

ANN = Actor(id=1, login="ann")


def heard(ledger: Ledger, delivery: str, event: events.Event, at: float) -> None:
    with ledger.database.write() as connection:
        ledger.installations.note(connection, delivery, event, at)


def test_an_installation_has_its_newest_delivery_until_it_is_removed(ledger: Ledger) -> None:
    rocket = Repository(id=1, owner="acme", name="rocket")
    changed = {"installation": 7, "sender": ANN, "account": "acme"}
    heard(ledger, "d-1", events.InstallationChanged(action="created", **changed), 100.0)
    heard(ledger, "d-2", events.BranchPushed(installation=7, sender=ANN, repository=rocket), 200.0)
    heard(ledger, "d-3", events.BranchPushed(sender=ANN, repository=rocket), 300.0)
    (installation,) = ledger.installations.all()
    assert (installation.account, installation.delivery, installation.repository) == ("acme", "d-2", "acme/rocket")
    heard(ledger, "d-4", events.InstallationChanged(action="suspend", **changed), 400.0)
    heard(ledger, "d-5", events.InstallationChanged(action="new_permissions_accepted", **changed), 500.0)
    assert [row.suspended for row in ledger.installations.all()] == [True]
    heard(ledger, "d-6", events.InstallationChanged(action="deleted", **changed), 600.0)
    assert ledger.installations.all() == ()


def test_a_pause_holds_for_its_repository_or_for_everything(ledger: Ledger) -> None:
    installations = ledger.installations
    installations.pause("acme/rocket", "ann")
    installations.pause("acme/rocket", "bob")
    assert (installations.paused("acme/rocket"), installations.paused("acme/sled")) == (True, False)
    assert installations.pauses()["acme/rocket"].by == "ann"
    installations.pause("", "ann")
    assert installations.paused("acme/sled")
    installations.resume("")
    installations.resume("acme/rocket")
    assert not installations.paused("acme/rocket")


def test_decisions_are_found_by_what_was_said(ledger: Ledger, database: Database) -> None:
    for number, reason in enumerate(('It says "Ünklar" here', "100% sure", "under_score"), start=1):
        subject = Subject(repository="acme/rocket", number=number, revision="text:1")
        decision = Decision(kind="triage", subject=subject, verdict="VAGUE", reason=reason)
        ledger.decisions.record(f"d{number}:triage", (decision,), "c")

    def numbers(text: str) -> list[int]:
        return [decision.number for decision in Overview(database).decisions(Filter(text=text))]

    assert numbers('says "Ünklar"') == [1]
    assert numbers("SAYS") == [1]
    assert numbers("100%") == [2]
    assert numbers("r_s") == [3]
    assert numbers("#2") == [2]
    assert numbers("acme/rocket#3") == [3]
    assert numbers("acme/sled#3") == []
