"""Login attempts: slower after wrong guesses, in all processes, and never blocked for all."""

from __future__ import annotations

from bot.pipeline.store import Database
from bot.pipeline.store.operators import LONGEST_ALL_SECONDS, LONGEST_WAIT_SECONDS, Logins
from tests.bot.pipeline.conftest import Clock


def guess(logins: Logins, clock: Clock, address: str) -> float:
    """One wrong password, sent as soon as the turn comes; how long that took."""
    wait = logins.turn(address)
    clock.now += wait
    logins.failed(address)
    return wait


def test_each_guess_after_the_fifth_waits_longer_in_all_processes(database: Database, clock: Clock) -> None:
    first, second = Logins(database, clock), Logins(database, clock)
    waits = [guess((first, second)[count % 2], clock, "a") for count in range(12)]
    assert waits == [0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 8, 8]
    assert first.turn("b") == 0
    clock.now += 901
    assert first.turn("a") == 0


def test_the_right_password_ends_the_waiting(database: Database, clock: Clock) -> None:
    logins = Logins(database, clock)
    for _ in range(9):
        guess(logins, clock, "a")
    logins.succeeded("a")
    assert logins.turn("a") == logins.turn("a") == 0


def test_turns_that_are_too_far_off_are_not_taken(database: Database, clock: Clock) -> None:
    logins = Logins(database, clock)
    for _ in range(9):
        guess(logins, clock, "a")
    waits = [logins.turn("a") for _ in range(6)]
    assert waits[:2] == [8, 16]
    assert set(waits[1:]) == {16}, "the queue does not grow"
    assert LONGEST_WAIT_SECONDS < 16


def test_guesses_from_many_addresses_delay_logins_and_refuse_none(database: Database, clock: Clock) -> None:
    logins = Logins(database, clock)
    for number in range(200):
        logins.turn(str(number))
        logins.failed(str(number))
    waits = [logins.turn(f"new-{number}") for number in range(30)]
    assert waits[0] > 0
    assert max(waits) <= LONGEST_ALL_SECONDS < LONGEST_WAIT_SECONDS
