"""The tables of deliveries and ledger, which whichever process comes first makes or brings up to date.

They are declared as the newest migration leaves them. Times are seconds since 1970, UTC.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError

from bot.core.errors import DatabaseAway, OperatorError
from bot.pipeline.store.database import Database, open_database
from bot.pipeline.store.locks import held

METADATA = MetaData()

#: SQLite counts up by itself in INTEGER columns alone.
_Serial = BigInteger().with_variant(Integer, "sqlite")

#: One row a delivery; ``event`` is the typed event as JSON, stored once for all its jobs.
DELIVERIES = Table(
    "deliveries",
    METADATA,
    Column("seq", _Serial, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("number", BigInteger, nullable=False, server_default="0"),
    Column("event", Text, nullable=False),
    Column("received_at", Float, nullable=False),
    Column("dispatched_at", Float),
    Column("problem", Text),
    Index("deliveries_subject", "repository", "number", "seq"),
    Index("deliveries_received", "received_at"),
    Index(
        "deliveries_waiting",
        "seq",
        sqlite_where=text("dispatched_at IS NULL"),
        postgresql_where=text("dispatched_at IS NULL"),
    ),
    sqlite_autoincrement=True,
)

#: Workers that live, or died at their place; ``executor`` is the name under which the engine knows them.
WORKERS = Table(
    "workers",
    METADATA,
    Column("lease", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("executor", Text, nullable=False, server_default=""),
    Column("started_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
)

#: Issues and pull requests that are closed, as far as deliveries said so: what is open is never forgotten.
CLOSED = Table(
    "closed",
    METADATA,
    Column("repository", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("closed_at", Float, nullable=False),
)

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("job", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("revision", Text, nullable=False),
    Column("verdict", Text),
    Column("abstained", Text),
    Column("bounced", Boolean),
    Column("model", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("cost_usd", Float),
    Column("decision", Text, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("outcome", Text),
    Column("created_at", Float, nullable=False),
    UniqueConstraint("job", "position", name="decisions_once"),
    Index("decisions_subject", "repository", "number", "kind", "id"),
    Index("decisions_kind", "repository", "kind", "id"),
    # Holds all that the plots over time read, so that they do not read the decisions themselves.
    Index("decisions_time", "created_at", "kind", "verdict", "bounced", "repository"),
)

MODEL_CALLS = Table(
    "model_calls",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("job", Text, nullable=False),
    Column("prompt_hash", Text, nullable=False),
    Column("schema", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False, server_default="0"),
    Column("seconds", Float, nullable=False),
    Column("cost_usd", Float),
    Column("reply", Text),
    Column("error", Text),
    Column("created_at", Float, nullable=False),
    Index(
        "model_calls_once",
        "job",
        "prompt_hash",
        "schema",
        unique=True,
        sqlite_where=text("reply IS NOT NULL"),
        postgresql_where=text("reply IS NOT NULL"),
    ),
    Index(
        "model_calls_time",
        "created_at",
        "repository",
        "model",
        "calls",
        "input_tokens",
        "output_tokens",
        "cost_usd",
        "cached_tokens",
    ),
)

#: What stands on GitHub because of us; ``key`` says what must not be there twice.
POSTINGS = Table(
    "postings",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("job", Text, nullable=False),
    Column("github_id", BigInteger, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Index("postings_github", "repository", "github_id"),
    Index("postings_subject", "repository", "number"),
)

#: What people made of each thing that was posted; ``key`` is a subject's, or a finding's on it.
SIGNALS = Table(
    "signals",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("repository", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("updated_at", Float, nullable=False),
    Index("signals_repository", "repository", "category"),
)

#: What became of subjects that a bouncer judged, beside what it said; known for sure from ``settled_at`` on.
FATES = Table(
    "fates",
    METADATA,
    Column("repository", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("bouncer", Text, primary_key=True),
    Column("good", Boolean, nullable=False),
    Column("why", Text, nullable=False),
    Column("p_bounce", Integer),
    Column("bounced", Boolean, nullable=False),
    Column("harm", Integer),
    Column("settled_at", Float, nullable=False),
    Index("fates_bouncer", "repository", "bouncer", "settled_at"),
)

#: What was spent and what is reserved together, in millionths of a US dollar and in model calls.
BUDGETS = Table(
    "budgets",
    METADATA,
    Column("day", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("micros", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)

#: Reservations that were not settled yet; ``scopes`` is a JSON array.
RESERVATIONS = Table(
    "reservations",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("day", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("micros", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)

#: Browsers that are logged in to the dashboard; ``login`` is a GitHub account, or empty for the password.
SESSIONS = Table(
    "sessions",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("until", Float, nullable=False),
    Column("login", Text, nullable=False, server_default=""),
)

#: The GitHub id behind each name in BOUNCER_ADMINS, as it was at the first log-in: names are given out again.
ADMIN_IDS = Table(
    "admin_ids",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("id", BigInteger, nullable=False),
)

#: Models whose provider refuses requests until an operator acts. A row goes with the next answer.
MODEL_FAULTS = Table(
    "model_faults",
    METADATA,
    Column("model", Text, primary_key=True),
    Column("why", Text, nullable=False),
    Column("since_at", Float, nullable=False),
)

#: Where the app is installed, with the newest delivery from there.
INSTALLATIONS = Table(
    "installations",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("account", Text, nullable=False),
    Column("suspended", Boolean, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("seen_at", Float, nullable=False),
)

#: What operators paused on the dashboard: a repository, or everything (empty).
PAUSES = Table(
    "pauses",
    METADATA,
    Column("repository", Text, primary_key=True),
    Column("by", Text, nullable=False),
    Column("since_at", Float, nullable=False),
)

#: Wrong passwords by address, and when the next attempt from it is heard.
LOGIN_ATTEMPTS = Table(
    "login_attempts",
    METADATA,
    Column("address", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("failed_at", Float, nullable=False),
    Column("next_at", Float, nullable=False),
)

#: Counts for /metrics that no other table holds; ``labels`` is a JSON array of pairs, sorted.
COUNTERS = Table(
    "counters",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("labels", Text, primary_key=True),
    Column("value", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
)

#: Issues that a new one may repeat. ``root`` is the issue that maintainers say it repeats, or its own number if it
#: was closed as a duplicate and nothing names the other issue. ``questions`` are those that members of the project
#: asked on it.
ISSUE_TEXTS = Table(
    "issue_texts",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("repository", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("root", BigInteger),
    Column("closed_at", Float),
    Column("questions", Text, nullable=False, server_default=""),
    UniqueConstraint("repository", "number", name="issue_texts_once"),
)

#: Repositories whose issues are indexed. The first pass goes on at ``page`` of the list
#: ``listing`` of open issues, closed issues or comments.
ISSUE_INDEXES = Table(
    "issue_indexes",
    METADATA,
    Column("repository", Text, primary_key=True),
    Column("listing", Text, nullable=False),
    Column("page", Integer, nullable=False),
    Column("complete", Boolean, nullable=False),
)

#: How the words of ``issue_texts`` are searched: a part of each database that SQLAlchemy cannot declare.
_WORDS = {
    "sqlite": (
        "CREATE VIRTUAL TABLE issue_words USING"
        " fts5(title, body, content='issue_texts', content_rowid='id', tokenize='porter unicode61')",
        "CREATE TRIGGER issue_words_insert AFTER INSERT ON issue_texts BEGIN"
        " INSERT INTO issue_words (rowid, title, body) VALUES (new.id, new.title, new.body); END",
        "CREATE TRIGGER issue_words_delete AFTER DELETE ON issue_texts BEGIN INSERT INTO issue_words"
        " (issue_words, rowid, title, body) VALUES ('delete', old.id, old.title, old.body); END",
        "CREATE TRIGGER issue_words_update AFTER UPDATE OF title, body ON issue_texts BEGIN"
        " INSERT INTO issue_words (issue_words, rowid, title, body)"
        " VALUES ('delete', old.id, old.title, old.body);"
        " INSERT INTO issue_words (rowid, title, body) VALUES (new.id, new.title, new.body); END",
    ),
    "postgresql": (
        "CREATE INDEX issue_words ON issue_texts USING gin (to_tsvector('english', title || ' ' || body))",
    ),
}
for _dialect, _statements in _WORDS.items():
    for _statement in _statements:
        ddl = DDL(_statement).execute_if(dialect=_dialect)  # type: ignore[no-untyped-call]
        event.listen(ISSUE_TEXTS, "after_create", ddl)

#: The version of the tables, and the older ones that can be upgraded: 0001 is release 0.1, 0007 release 0.2.
HEAD = "0011"
UPGRADABLE = frozenset(f"{number:04}" for number in range(1, int(HEAD)))
VERSION = Table("bouncer_version", MetaData(), Column("version_num", String(32), primary_key=True))

#: How long one process waits for another's migration, seconds.
TIMEOUT = 120.0
#: The longest pause between two looks for a database that is away, seconds.
LONGEST_PAUSE_SECONDS = 10.0

_log = structlog.get_logger(__name__)


def version(database: Database) -> str | None:
    """Return the version of a database's tables, None if it is new. Raises DBAPIError."""
    with database.read() as connection:
        new = not inspect(connection).has_table(VERSION.name)
        return None if new else connection.scalar(select(VERSION.c.version_num))


def migrate(database: Database) -> None:
    """Make the tables, or bring them up to date; safe where several processes start at once.

    Raises OperatorError where a newer version of the program has been here.
    """
    if version(database) == HEAD:
        return
    with held(database.locks, "migrate", TIMEOUT):
        present = version(database)
        if present is None:
            _create(database)
        elif present != HEAD and present not in UPGRADABLE:
            raise OperatorError(
                f"the database is at version {present}, which only a newer Bouncer knows: upgrade it"
            )
        elif present != HEAD:
            # Imported late: most starts find nothing to do.
            from bot.pipeline.store.upgrade import upgrade

            with database.write() as connection:
                upgrade(connection)
                connection.execute(VERSION.update(), {"version_num": HEAD})


@contextmanager
def migrated(url: str, *, must_exist: bool = False) -> Iterator[Database]:
    """The database at ``url``, up to date, for a block. Raises what ``open_database`` and ``migrate`` raise."""
    database = open_database(url, must_exist=must_exist)
    try:
        migrate(database)
        yield database
    finally:
        database.close()


def await_database(url: str, stop: threading.Event) -> Database | None:
    """The migrated database, waited for as long as it cannot be reached; None where ``stop`` was set meanwhile.

    For a process that is started again during an outage: its settings were right before.
    """
    pause = 0.5
    while True:
        database = None
        try:
            database = open_database(url)
            migrate(database)
            return database
        except (DatabaseAway, DBAPIError, TimeoutError) as error:
            if database is not None:
                database.close()
            _log.warning("database_away", error=str(error).splitlines()[0], again_in=pause)
            if stop.wait(pause):
                return None
            pause = min(LONGEST_PAUSE_SECONDS, 2 * pause)


def _create(database: Database) -> None:
    with database.write() as connection:
        # A table that stands already is no new database's: better an error than a wrong version.
        METADATA.create_all(connection, checkfirst=False)
        VERSION.create(connection)
        connection.execute(VERSION.insert(), {"version_num": HEAD})
