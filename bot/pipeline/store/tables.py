"""The tables of deliveries and ledger, as the newest migration leaves them. Times are seconds since 1970, UTC."""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

METADATA = MetaData()

#: SQLite increments only INTEGER columns automatically.
_Serial = BigInteger().with_variant(Integer, "sqlite")

#: One row per delivery; ``event`` is the typed event as JSON, stored once for all its jobs.
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

#: Workers that live or have died; ``executor`` is their name in the engine.
WORKERS = Table(
    "workers",
    METADATA,
    Column("lease", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("executor", Text, nullable=False, server_default=""),
    Column("started_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
)

#: Issues and pull requests that deliveries reported as closed. What is open is never deleted.
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
    Index("model_calls_job", "job"),
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

#: What we posted on GitHub; ``key`` identifies what must not be posted twice.
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
    Index("postings_job", "job"),
)

#: Reactions of people to posts; ``key`` names a subject, or a finding on it.
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

#: Outcomes of subjects that a bouncer judged, beside its verdict; final from ``settled_at`` on.
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

#: The sum of spent and reserved amounts, in millionths of a US dollar and in model calls.
BUDGETS = Table(
    "budgets",
    METADATA,
    Column("day", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("micros", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)

#: Reservations that are not settled yet; ``scopes`` is a JSON array.
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

#: Models whose provider refuses requests until an operator acts. The next answer deletes the row.
MODEL_FAULTS = Table(
    "model_faults",
    METADATA,
    Column("model", Text, primary_key=True),
    Column("why", Text, nullable=False),
    Column("since_at", Float, nullable=False),
)

#: Installations of the app, with the newest delivery from each.
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

#: Pauses that operators set on the dashboard: a repository, or everything (empty).
PAUSES = Table(
    "pauses",
    METADATA,
    Column("repository", Text, primary_key=True),
    Column("by", Text, nullable=False),
    Column("since_at", Float, nullable=False),
)

#: Wrong passwords by address, and the time of the next attempt that is accepted from it.
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

#: Former names of repositories, the present ones, and the repository's id; NULL if its account was renamed.
RENAMES = Table(
    "renames",
    METADATA,
    Column("former", Text, primary_key=True),
    Column("id", BigInteger),
    Column("repository", Text, nullable=False),
    Column("installation", BigInteger),
)

#: Tables with data about repositories, by the column ``repository``. Pauses are the operator's.
ABOUT_REPOSITORIES = tuple(
    table for table in METADATA.sorted_tables if "repository" in table.c and table not in (INSTALLATIONS, PAUSES)
)

#: The full-text index of ``issue_texts``, which SQLAlchemy cannot declare.
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
