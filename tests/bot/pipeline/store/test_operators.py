"""Installations, pauses and login attempts, on both databases."""

from __future__ import annotations

from bot.core import events
from bot.core.subjects import Actor, Repository
from bot.pipeline.store import Database, Ledger
from bot.pipeline.store.logins import LONGEST_ALL_SECONDS, LONGEST_WAIT_SECONDS, Logins
from tests.bot.pipeline.conftest import Clock

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


def guess(logins: Logins, clock: Clock, address: str) -> float:
    """One wrong password, sent as soon as the turn comes; how long that took."""
    wait = logins.turn(address)
    clock.now += wait
    logins.failed(address)
    return wait


def test_each_guess_after_the_fifth_waits_longer_in_all_processes(database: Database, clock: Clock) -> None:
    first, second = Logins(database), Logins(database)
    waits = [guess((first, second)[count % 2], clock, "a") for count in range(12)]
    assert waits == [0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 8, 8]
    assert first.turn("b") == 0
    clock.now += 901
    assert first.turn("a") == 0


def test_the_right_password_ends_the_waiting(database: Database, clock: Clock) -> None:
    logins = Logins(database)
    for _ in range(9):
        guess(logins, clock, "a")
    logins.succeeded("a")
    assert logins.turn("a") == logins.turn("a") == 0


def test_turns_that_are_too_far_off_are_not_taken(database: Database, clock: Clock) -> None:
    logins = Logins(database)
    for _ in range(9):
        guess(logins, clock, "a")
    waits = [logins.turn("a") for _ in range(6)]
    assert waits[:2] == [8, 16]
    assert set(waits[1:]) == {16}, "the queue does not grow"
    assert LONGEST_WAIT_SECONDS < 16


def test_guesses_from_many_addresses_delay_logins_and_refuse_none(database: Database, clock: Clock) -> None:
    logins = Logins(database)
    for number in range(200):
        logins.turn(str(number))
        logins.failed(str(number))
    waits = [logins.turn(f"new-{number}") for number in range(30)]
    assert waits[0] > 0
    assert max(waits) <= LONGEST_ALL_SECONDS < LONGEST_WAIT_SECONDS
