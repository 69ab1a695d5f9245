"""Storage of deliveries, decisions, model calls, postings and budgets in one database, by URL."""

from __future__ import annotations

from bot.pipeline.store.calls import Budgets, Calls, Faults
from bot.pipeline.store.counters import Counters
from bot.pipeline.store.database import Database, database_at, open_database
from bot.pipeline.store.decisions import Decisions, Posting, Postings
from bot.pipeline.store.feedback import Fates, Signals
from bot.pipeline.store.installations import Installations, Renames
from bot.pipeline.store.issues import Issues
from bot.pipeline.store.logins import Logins
from bot.pipeline.store.migration import await_database, migrate, migrated
from bot.pipeline.store.overview import Overview

__all__ = [
    "Database",
    "Ledger",
    "Posting",
    "await_database",
    "database_at",
    "migrate",
    "migrated",
    "open_database",
]


class Ledger:
    """All parts of the storage; the database has to be migrated."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.decisions = Decisions(database)
        self.signals = Signals(database)
        self.fates = Fates(database)
        self.calls = Calls(database)
        self.postings = Postings(database)
        self.faults = Faults(database)
        self.budgets = Budgets(database)
        self.counters = Counters(database)
        self.logins = Logins(database)
        self.installations = Installations(database)
        self.renames = Renames(database)
        self.issues = Issues(database)
        self.overview = Overview(database)
