"""The index of issues that a new one may repeat: SQLite's FTS5, or PostgreSQL's text search.

``bouncer index`` begins it; from then on the deliveries of its repository keep it up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, delete, func, select, text, update

from bot.core import events
from bot.core.events import Event
from bot.core.frozen import Frozen
from bot.core.subjects import INSIDERS, Comment, Issue
from bot.features.services import IndexedIssue
from bot.pipeline.store.database import Part
from bot.pipeline.store.tables import DELIVERIES, ISSUE_INDEXES, ISSUE_TEXTS

#: Closed issues are forgotten after a year, seconds.
KEEP_SECONDS = 365 * 86_400.0
#: Characters of a text that are stored, and words of a new issue that are looked up.
MAX_BODY, MAX_WORDS = 6_000, 100
#: Questions of one issue that are stored, the newest ones, and characters of the shortest.
MAX_QUESTIONS, MIN_QUESTION = 5, 12
#: Longest chain of duplicates that is followed.
MAX_CHAIN = 20

_DUPLICATE = re.compile(
    r"\bduplicate of (?:#|https?://[^\s/]+/(?P<repository>[^\s/]+/[^\s/]+)/issues/)(?P<number>\d{1,9})\b", re.I
)
_CODE_AND_LINKS = re.compile(r"```.*?(?:```|\Z)|<!--.*?(?:-->|\Z)|https?://\S+", re.DOTALL)
_QUESTION = re.compile(r"[^.!?\n]{1,240}\?")
_WORD = re.compile(r"\w{2,40}")

#: The rarer a word in the repository, the more it counts; long texts have more words by chance.
_IN_SQLITE = text(
    "SELECT t.number FROM issue_words JOIN issue_texts t ON t.id = issue_words.rowid"
    " WHERE issue_words MATCH :query AND t.repository = :repository AND t.number < :number"
    " ORDER BY bm25(issue_words, 3.0, 1.0), t.number LIMIT :most"
)
_IN_POSTGRESQL = text("""
    WITH words AS (
      SELECT DISTINCT plainto_tsquery('english', word) AS query FROM unnest(CAST(:words AS text[])) AS word
    ), hits AS (
      SELECT words.query, t.number, length(t.title) + length(t.body) AS size,
        CASE WHEN to_tsvector('english', t.title) @@ words.query THEN 3 ELSE 1 END AS place
      FROM words JOIN issue_texts t ON to_tsvector('english', t.title || ' ' || t.body) @@ words.query
      WHERE t.repository = :repository AND t.number < :number
    ), weights AS (
      SELECT query, ln(1 + (SELECT count(*) FROM issue_texts WHERE repository = :repository)::float / count(*))
        AS weight FROM hits GROUP BY query
    )
    SELECT number FROM hits JOIN weights USING (query)
    GROUP BY number, size ORDER BY sum(weight * place) / ln(10 + size) DESC, number LIMIT :most
""")


class FirstPass(Frozen):
    """Progress of reading a repository's issues."""

    listing: Literal["open", "closed", "comments"] = "open"
    page: int = 1
    complete: bool = False


class Issues(Part):
    """An ``IssueIndex`` in the database."""

    def similar(self, repository: str, issue: Issue, most: int) -> tuple[IndexedIssue, ...] | None:
        """Return the earlier issues with the most telling words of one, best first; None without an index."""
        words = list(dict.fromkeys(_WORD.findall(f"{issue.title} {issue.body[:MAX_BODY]}".lower())))[:MAX_WORDS]
        values: dict[str, Any] = {"repository": repository, "number": issue.number, "most": most}
        with self._database.read() as connection:
            complete = select(ISSUE_INDEXES.c.complete).where(ISSUE_INDEXES.c.repository == repository)
            if not connection.scalar(complete):
                return None
            if not words:
                return ()
            if self._database.is_sqlite:
                query = " OR ".join(f'"{word}"' for word in words)
                numbers = connection.scalars(_IN_SQLITE, {**values, "query": query}).all()
            else:
                numbers = connection.scalars(_IN_POSTGRESQL, {**values, "words": words}).all()
            return tuple(self._read(connection, repository, number) for number in numbers)

    def progress(self, repository: str) -> FirstPass | None:
        """Return how far the first pass came; None if none was begun."""
        columns = [ISSUE_INDEXES.c[name] for name in FirstPass.model_fields]
        row = self._database.row(select(*columns).where(ISSUE_INDEXES.c.repository == repository))
        return None if row is None else FirstPass(**row._asdict())

    def begin(self, repository: str) -> FirstPass:
        """Delete the index of a repository, and start anew."""
        start = FirstPass()
        with self._database.write() as connection:
            for table in (ISSUE_TEXTS, ISSUE_INDEXES):
                connection.execute(delete(table).where(table.c.repository == repository))
            connection.execute(self._database.insert(ISSUE_INDEXES).values(repository=repository, **dict(start)))
        return start

    def add(self, repository: str, issues: Iterable[Issue], roots: dict[int, int], progress: FirstPass) -> None:
        """Store a page of the first pass. What a delivery brought meanwhile is newer, and stays.

        ``roots``: the issue that a duplicate repeats, or its own number if nothing names that issue.
        """
        with self._database.write() as connection:
            for issue in issues:
                row = _row(repository, issue, 0.0) | {"root": roots.get(issue.number)}
                connection.execute(self._database.insert(ISSUE_TEXTS).values(**row).on_conflict_do_nothing())
            _save(connection, repository, progress)

    def add_questions(self, repository: str, comments: Iterable[tuple[int, Comment]], progress: FirstPass) -> None:
        """Store what members of the project asked in a page of comments, with the numbers of their issues."""
        with self._database.write() as connection:
            for number, comment in comments:
                _add_questions(connection, repository, number, comment)
            _save(connection, repository, progress)

    def count(self, repository: str) -> int:
        query = select(func.count()).select_from(ISSUE_TEXTS).where(ISSUE_TEXTS.c.repository == repository)
        return int(self._database.scalar(query))

    def history(self, repository: str) -> tuple[IndexedIssue, ...] | None:
        """Return all indexed issues, newest first; None without a complete index."""
        of_repository = ISSUE_INDEXES.c.repository == repository
        query = select(ISSUE_TEXTS.c.number).where(ISSUE_TEXTS.c.repository == repository)
        with self._database.read() as connection:
            if not connection.scalar(select(ISSUE_INDEXES.c.complete).where(of_repository)):
                return None
            numbers = connection.scalars(query.order_by(ISSUE_TEXTS.c.number.desc())).all()
            return tuple(self._read(connection, repository, number) for number in numbers)

    def update(self, connection: Connection, event: Event, now: float) -> None:
        """Keep the index of an event's repository up to date, if it has one."""
        event_types = events.IssueShown | events.IssueClosed | events.IssueRemoved | events.CommentCreated
        if not isinstance(event, event_types) or event.issue.is_pull_request:
            return
        repository = event.repository.full_name
        begun = select(ISSUE_INDEXES.c.page).where(ISSUE_INDEXES.c.repository == repository)
        if connection.scalar(begun) is None:
            return
        if isinstance(event, events.IssueRemoved):
            _remove(connection, repository, event.number)
            return
        subject = DELIVERIES.c.repository == repository, DELIVERIES.c.number == event.number
        removal = select(DELIVERIES.c.seq).where(*subject, DELIVERIES.c.kind == "issue_removed")
        if connection.scalar(removal.limit(1)) is not None:
            return  # A delivery that came late.
        row = _row(repository, event.issue, now)
        changed = {name: row[name] for name in ("title", "body", "state", "closed_at")}
        insert = self._database.insert(ISSUE_TEXTS).values(**row)
        connection.execute(insert.on_conflict_do_update(index_elements=["repository", "number"], set_=changed))
        _update_root(connection, repository, event)

    def _read(self, connection: Connection, repository: str, number: int) -> IndexedIssue:
        row = connection.execute(select(ISSUE_TEXTS).where(_at(repository, number))).one()
        chain, next_root = [row.number], row.root
        while next_root is not None and next_root not in chain and len(chain) < MAX_CHAIN:
            chain.append(next_root)
            next_root = connection.scalar(select(ISSUE_TEXTS.c.root).where(_at(repository, next_root)))
        return IndexedIssue(
            number=row.number,
            title=row.title,
            body=row.body,
            state=row.state,
            questions=row.questions,
            root=chain[-1],
            unnamed=row.root == row.number,
        )


def duplicate_of(repository: str, comment: Comment) -> int | None:
    """Return the issue of which a member of the project says, in a comment, that another one repeats it."""
    if comment.author_association not in INSIDERS:
        return None
    match = _DUPLICATE.search(comment.body)
    if match is None or (match["repository"] or repository).lower() != repository.lower():
        return None
    return int(match["number"])


def says_duplicate(text: str) -> bool:
    """Return True if a text says of which issue it is a duplicate."""
    return _DUPLICATE.search(text) is not None


def is_duplicate(issue: Issue) -> bool:
    """Return True if an issue was closed as a duplicate, or has the label of that name that GitHub sets up."""
    return issue.state_reason == "duplicate" or (
        issue.state == "closed" and "duplicate" in map(str.lower, issue.labels)
    )


def questions_in(comment: Comment) -> tuple[str, ...]:
    """Return the questions in a comment of a member of the project; quotes and code do not count."""
    if comment.author_association not in INSIDERS or comment.author.is_bot:
        return ()
    lines = [line for line in comment.body.splitlines() if not line.lstrip().startswith((">", "/", "    "))]
    text = _CODE_AND_LINKS.sub(" ", "\n".join(lines)[:MAX_BODY])
    questions = (" ".join(match.split()) for match in _QUESTION.findall(text))
    return tuple(question for question in questions if len(question) >= MIN_QUESTION)


def _remove(connection: Connection, repository: str, number: int) -> None:
    """Remove an issue. Those that repeat it stay duplicates of an issue that nothing names."""
    connection.execute(delete(ISSUE_TEXTS).where(_at(repository, number)))
    repeats = and_(ISSUE_TEXTS.c.repository == repository, ISSUE_TEXTS.c.root == number)
    connection.execute(update(ISSUE_TEXTS).where(repeats).values(root=ISSUE_TEXTS.c.number))


def _update_root(
    connection: Connection, repository: str, event: events.IssueShown | events.IssueClosed | events.CommentCreated
) -> None:
    """Store the questions of a comment, and which issue an issue repeats, if an event says so."""
    is_row, root = _at(repository, event.number), None
    if isinstance(event, events.CommentCreated):
        _add_questions(connection, repository, event.number, event.comment)
        root = duplicate_of(repository, event.comment)
        if root in (None, event.number):
            return
    elif isinstance(event, events.IssueClosed) and is_duplicate(event.issue):
        is_row, root = and_(is_row, ISSUE_TEXTS.c.root.is_(None)), event.number
    elif not isinstance(event, events.IssueReopened):
        return
    # A reopened issue is no duplicate any more: its root is None.
    connection.execute(update(ISSUE_TEXTS).where(is_row).values(root=root))


def _save(connection: Connection, repository: str, progress: FirstPass) -> None:
    is_row = ISSUE_INDEXES.c.repository == repository
    connection.execute(update(ISSUE_INDEXES).where(is_row).values(**dict(progress)))


def _add_questions(connection: Connection, repository: str, number: int, comment: Comment) -> None:
    questions = questions_in(comment)
    if not questions:
        return
    earlier = connection.scalar(select(ISSUE_TEXTS.c.questions).where(_at(repository, number))) or ""
    lines = list(dict.fromkeys((*earlier.splitlines(), *questions)))[-MAX_QUESTIONS:]
    row = update(ISSUE_TEXTS).where(_at(repository, number))
    connection.execute(row.values(questions="\n".join(lines)))


def _at(repository: str, number: int) -> ColumnElement[bool]:
    return and_(ISSUE_TEXTS.c.repository == repository, ISSUE_TEXTS.c.number == number)


def _row(repository: str, issue: Issue, now: float) -> dict[str, Any]:
    closed_at = issue.closed_at.timestamp() if issue.closed_at else now
    return {
        "repository": repository,
        "number": issue.number,
        "title": issue.title,
        "body": issue.body[:MAX_BODY],
        "state": issue.state,
        "closed_at": closed_at if issue.state == "closed" else None,
    }
