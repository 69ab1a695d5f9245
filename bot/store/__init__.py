"""What is remembered: deliveries, jobs, decisions, model calls, postings, budgets. One database, by URL."""

from __future__ import annotations

from dataclasses import dataclass

from bot.store.calls import Budgets, Calls
from bot.store.counters import Counters
from bot.store.database import Database, database_at, open_database, withhold
from bot.store.decisions import Decisions, Fates, Signals
from bot.store.installations import Installations
from bot.store.logins import Logins
from bot.store.migrate import await_database, migrate
from bot.store.postings import Paces, Posting, Postings

__all__ = [
    "Database",
    "Ledger",
    "Posting",
    "await_database",
    "database_at",
    "migrate",
    "open_database",
    "open_ledger",
    "withhold",
]


@dataclass(frozen=True)
class Ledger:
    """The parts of the memory; each is a few statements on tables of its own."""

    database: Database
    decisions: Decisions
    signals: Signals
    fates: Fates
    calls: Calls
    postings: Postings
    budgets: Budgets
    paces: Paces
    counters: Counters
    logins: Logins
    installations: Installations


def open_ledger(database: Database) -> Ledger:
    """The ledger in a database that is up to date (see ``migrate``)."""
    return Ledger(
        database=database,
        decisions=Decisions(database),
        signals=Signals(database),
        fates=Fates(database),
        calls=Calls(database),
        postings=Postings(database),
        budgets=Budgets(database),
        paces=Paces(database),
        counters=Counters(database),
        logins=Logins(database),
        installations=Installations(database),
    )
