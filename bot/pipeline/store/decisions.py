"""Decisions, each recorded once for its job: the history that features read. And the register of our writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import structlog
from pydantic import Field, ValidationError
from pydantic_core import PydanticSerializationError
from sqlalchemy import ColumnElement, Connection, and_, case, exists, func, or_, select, update

from bot import router
from bot.core.actions import Decision, Task
from bot.core.errors import UNREACHABLE
from bot.core.frozen import Frozen
from bot.features.feedback.signals import SOURCES
from bot.features.shared.labels import BouncerRecord
from bot.pipeline.store.counters import CounterKey, Counters, counter_key
from bot.pipeline.store.database import Part
from bot.pipeline.store.feedback import Fates, Signals
from bot.pipeline.store.tables import CLOSED, DECISIONS, POSTINGS

#: Most commands that the rate limit of commands looks at.
_MAX_COMMANDS = 500
#: Most open subjects that a new one is compared with, the newest ones.
_MAX_SUBJECTS = 200


class PublishOutcome(StrEnum):
    """The outcome of publishing a decision."""

    POSTED = "posted"
    #: There was nothing to write.
    NOTHING = "nothing"
    #: Shadow mode kept it back.
    WITHHELD = "withheld"
    #: The subject changed meanwhile.
    MOVED = "moved"
    #: Superseded or cancelled.
    STOPPED = "stopped"
    #: Moved or stopped after a part was written, which stands.
    PARTLY_POSTED = "partly posted"
    #: GitHub or our own rules did not allow it.
    REFUSED = "refused"
    #: An abstention for lack of budget; a later day decided.
    TAKEN_UP = "taken up again"
    #: The rest waits for its turn to be written; never recorded.
    PACED = "paced"


def is_outage() -> ColumnElement[bool]:
    """Return the condition for abstentions because of a model, GitHub or the sandbox, not of the subject."""
    word = DECISIONS.c.abstained
    return or_(word.in_(("model", "sandbox")), word.like("model:%"), word.like("forge:%"))


#: Outcomes whose results people can see.
_VISIBLE = (
    PublishOutcome.POSTED, PublishOutcome.NOTHING, PublishOutcome.WITHHELD, PublishOutcome.PARTLY_POSTED,
)  # fmt: skip

_log = structlog.get_logger(__name__)


class Decisions(Part):
    """Implements ``bot.features.services.History``."""

    counts_authors = True

    def record(self, job: str, decisions: Sequence[Decision], config_hash: str) -> tuple[Decision, ...]:
        """Record the decisions of a job, and return the recorded ones: those of an earlier run are kept."""
        rows = [self._row(job, position, decision, config_hash) for position, decision in enumerate(decisions)]
        with self._database.write() as connection:
            insert = self._database.insert(DECISIONS).on_conflict_do_nothing(index_elements=["job", "position"])
            for row, decision in zip(rows, decisions, strict=True):
                if connection.execute(insert.returning(DECISIONS.c.id), row).first() is not None:
                    Counters(self._database).add({_count(decision): 1}, connection)
        subjects = {decision.subject.key: decision.subject for decision in decisions if decision.kind in SOURCES}
        for subject in subjects.values():
            Signals(self._database).refresh(subject.repository, self.decisions(subject.key, *SOURCES))
        Fates(self._database).record(decisions)
        return self.of_job(job)

    def of_job(self, job: str) -> tuple[Decision, ...]:
        """Return the decisions of a job in their order; empty if there are none."""
        query = select(DECISIONS.c.decision).where(DECISIONS.c.job == job, DECISIONS.c.position >= 0)
        return self._read(query.order_by(DECISIONS.c.position))

    def reopen(self, job: str, words: Collection[str]) -> None:
        """Let a job decide anew if it abstained with one of ``words``, or if its subject had changed.

        The old decisions stay on record, at negative positions.
        """
        abstained = DECISIONS.c.abstained.in_(words)
        is_reopened = or_(abstained, DECISIONS.c.outcome == PublishOutcome.MOVED)
        outcome = case((abstained, PublishOutcome.TAKEN_UP), else_=DECISIONS.c.outcome)
        self._database.execute(
            update(DECISIONS)
            .where(DECISIONS.c.job == job, DECISIONS.c.position >= 0, is_reopened)
            .values(position=-DECISIONS.c.id, outcome=outcome)
        )

    def abstentions(self, word: str, since: float) -> dict[str, frozenset[str]]:
        """Return the jobs that abstained with ``word`` since then, oldest first, and the word that each recorded.

        ``model:unavailable`` also means what verify records as ``model``, with the word in its reason.
        """
        general, _, detail = word.partition(":")
        phrases = [f"({detail})"]
        if detail == "unavailable":
            phrases.append(UNREACHABLE)
        query = select(DECISIONS.c.job, DECISIONS.c.abstained, DECISIONS.c.decision).where(
            DECISIONS.c.created_at >= since,
            DECISIONS.c.position >= 0,
            DECISIONS.c.abstained.in_((word, general)),
        )

        def matches(row: Any) -> bool:
            decision = read_stored(row.decision)
            reason = "" if decision is None else decision.reason
            return row.abstained == word or any(phrase in reason for phrase in phrases)

        return _words_by_job(filter(matches, self._database.rows(query.order_by(DECISIONS.c.id))))

    def outages(self, since: float) -> dict[str, frozenset[str]]:
        """Return the jobs that an outage kept from a verdict since then, oldest first, and the recorded words."""
        query = select(DECISIONS.c.job, DECISIONS.c.abstained).where(
            DECISIONS.c.created_at >= since, DECISIONS.c.position >= 0, is_outage()
        )
        return _words_by_job(self._database.rows(query.order_by(DECISIONS.c.id)))

    def settle(self, job: str, position: int, outcome: PublishOutcome) -> PublishOutcome:
        """Record the outcome of publishing, and return it: PARTLY_POSTED if a part was written before."""
        with self._database.write() as connection:
            return self._settle(connection, job, position, outcome)

    def stop(self, job: str) -> None:
        """Record that the unpublished decisions of a job will not be published."""
        query = select(DECISIONS.c.position).where(DECISIONS.c.job == job, DECISIONS.c.outcome.is_(None))
        with self._database.write() as connection:
            for position in connection.scalars(query).all():
                self._settle(connection, job, position, PublishOutcome.STOPPED)

    def unpublished(self, subject: str, *kinds: Task) -> Sequence[str]:
        """Return the jobs whose decisions of these kinds (all if empty) on a subject are not published yet."""
        query = select(DECISIONS.c.job).where(_is_about(subject), DECISIONS.c.outcome.is_(None))
        return self._database.scalars(query.where(DECISIONS.c.kind.in_(kinds)) if kinds else query)

    def was_stopped(self, decision: Decision) -> bool:
        """Return True if an earlier decision on the same revision was stopped: a write of it may stand."""
        query = select(DECISIONS.c.id).where(
            _is_about(decision.subject.key),
            DECISIONS.c.kind == decision.kind,
            DECISIONS.c.revision == decision.subject.revision,
            DECISIONS.c.outcome == PublishOutcome.STOPPED,
        )
        return self._database.scalar(query.limit(1)) is not None

    def is_overtaken(self, job: str, decision: Decision) -> bool:
        """Return True if a later decision of its feature, or about a command, was posted on its subject."""
        checks_staleness = router.feature_named(decision.kind).checks_staleness
        if not (decision.actions and decision.subject.number and checks_staleness):
            return False
        own = select(func.max(DECISIONS.c.id)).where(DECISIONS.c.job == job, DECISIONS.c.kind == decision.kind)
        query = select(DECISIONS.c.id).where(
            _is_about(decision.subject.key),
            DECISIONS.c.id > own.scalar_subquery(),
            DECISIONS.c.kind.in_((decision.kind, "commands")),
            DECISIONS.c.verdict.is_not(None),
            DECISIONS.c.outcome.in_((PublishOutcome.POSTED, PublishOutcome.PARTLY_POSTED)),
        )
        return self._database.scalar(query.limit(1)) is not None

    def _settle(self, connection: Connection, job: str, position: int, outcome: PublishOutcome) -> PublishOutcome:
        is_row = and_(DECISIONS.c.job == job, DECISIONS.c.position == position)
        values: dict[str, str] = {"outcome": outcome}
        text = connection.scalar(select(DECISIONS.c.decision).where(is_row))
        is_dropped = outcome in (PublishOutcome.MOVED, PublishOutcome.STOPPED)
        if is_dropped and text is not None and (decision := read_stored(text)) is not None:
            posted = (POSTINGS.c.job == job, POSTINGS.c.task == decision.kind)
            types = set(connection.scalars(select(POSTINGS.c.type).where(*posted)))
            if posted_actions := tuple(action for action in decision.actions if action.type in types):
                # Later decisions go by what people see, so the rest is removed from the record.
                outcome = PublishOutcome.PARTLY_POSTED
                narrowed = decision.model_copy(update={"actions": posted_actions})
                values = {"outcome": outcome, "decision": narrowed.model_dump_json()}
        connection.execute(update(DECISIONS).where(is_row).values(**values))
        return outcome

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        """Return the decisions on ``owner/name#number`` of these kinds (all if empty), oldest first.

        Those that will never be seen are left out, because their subject changed or GitHub refused them: a
        question that was not posted was not asked.
        """
        is_seen = or_(DECISIONS.c.outcome.is_(None), DECISIONS.c.outcome.in_(_VISIBLE))
        query = select(DECISIONS.c.decision).where(_is_about(subject), is_seen)
        if kinds:
            query = query.where(DECISIONS.c.kind.in_(kinds))
        return self._read(query.order_by(DECISIONS.c.id))

    def commands(self, repository: str, since: datetime) -> tuple[Decision, ...]:
        """Return the newest decisions about commands in a repository, on any subject."""
        query = select(DECISIONS.c.decision).where(
            DECISIONS.c.repository == repository,
            DECISIONS.c.kind == "commands",
            DECISIONS.c.created_at >= since.timestamp(),
        )
        return self._read(query.order_by(DECISIONS.c.id.desc()).limit(_MAX_COMMANDS))

    def newest(self, repository: str, kind: Task) -> tuple[Decision, ...]:
        """Return the newest decision of a kind on each open subject, of the newest subjects."""
        last = (
            select(func.max(DECISIONS.c.id))
            .where(
                DECISIONS.c.repository == repository,
                DECISIONS.c.kind == kind,
                or_(DECISIONS.c.outcome.is_(None), DECISIONS.c.outcome.in_(_VISIBLE)),
                ~exists().where(CLOSED.c.repository == repository, CLOSED.c.number == DECISIONS.c.number),
            )
            .group_by(DECISIONS.c.number)
            .order_by(DECISIONS.c.number.desc())
            .limit(_MAX_SUBJECTS)
        )
        return self._read(select(DECISIONS.c.decision).where(DECISIONS.c.id.in_(last)).order_by(DECISIONS.c.id))

    def muted(self, repository: str) -> frozenset[str]:
        """Return the review categories that people of this repository dismissed too often."""
        return Signals(self._database).muted(repository)

    def _read(self, query: Any) -> tuple[Decision, ...]:
        texts = self._database.scalars(query)
        return tuple(decision for text in texts if (decision := read_stored(text)) is not None)

    def _row(self, job: str, position: int, decision: Decision, config_hash: str) -> dict[str, object]:
        return {
            **decision.usage.model_dump(exclude={"cached_tokens"}),
            "job": job,
            "position": position,
            "kind": decision.kind,
            "repository": decision.subject.repository,
            "number": decision.subject.number,
            "revision": decision.subject.revision,
            "verdict": decision.verdict,
            "abstained": decision.abstained,
            "bounced": _bounced(decision),
            "model": decision.model,
            "decision": _stored(decision),
            "config_hash": config_hash,
            "created_at": self._database.clock(),
        }


def _is_about(subject: str) -> ColumnElement[bool]:
    """Return the condition for decisions on ``owner/name#number``."""
    repository, _, number = subject.rpartition("#")
    return and_(DECISIONS.c.repository == repository, DECISIONS.c.number == int(number))


def read_stored(text: str) -> Decision | None:
    """Return a stored decision; None if another version of the program wrote it, so that no later job stops."""
    try:
        return router.read_decision(json.loads(text))
    except ValidationError:
        _log.warning("decision_unreadable")
        return None


def _words_by_job(rows: Iterable[Any]) -> dict[str, frozenset[str]]:
    words: dict[str, frozenset[str]] = {}
    for row in rows:
        words[row.job] = words.get(row.job, frozenset()) | {row.abstained}
    return words


def _count(decision: Decision) -> CounterKey:
    # Only the verdicts of judges are a closed set; that of a command is text that a user typed.
    verdict = decision.verdict if router.feature_named(decision.kind).judges else ""
    return counter_key(
        "bouncer_decisions", kind=decision.kind, verdict=verdict or "", abstained=decision.abstained or ""
    )


def _bounced(decision: Decision) -> bool | None:
    """Return True if a bouncer bounced its subject; None for decisions of other features."""
    record = decision.record
    return record.bounced if decision.verdict and isinstance(record, BouncerRecord) else None


def _stored(decision: Decision) -> str:
    try:
        return decision.model_dump_json()
    except PydanticSerializationError:
        # Half of a surrogate pair, which models and users send, cannot be encoded as UTF-8.
        return router.read_decision(_encodable(decision.model_dump(mode="json"))).model_dump_json()


def _encodable(value: Any) -> Any:
    """Replace what cannot be encoded as UTF-8 in all texts of a JSON value."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


class Posting(Frozen):
    """One of our writes to GitHub."""

    key: str = Field(description="repository, number, task and (where it changes identity) the revision")
    type: str = Field(description="the action's type")
    task: Task
    repository: str
    number: int
    job: str
    github_id: int = Field(description="id of the comment, review, check run or pull request (its number)")
    content_hash: str = Field(description="of the text as it was sent")

    def url(self, web_url: str) -> str:
        """Return its address; empty if it has none of its own."""
        base = f"{web_url}/{self.repository}"
        match self.type:
            case "upsert_comment":
                return f"{base}/issues/{self.number}#issuecomment-{self.github_id}"
            case "submit_review":
                return f"{base}/pull/{self.number}#pullrequestreview-{self.github_id}"
            case "set_check":
                return f"{base}/runs/{self.github_id}"
            case "open_draft_pull":
                return f"{base}/pull/{self.github_id}"
        return ""


def content_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Postings(Part):
    """The register of our writes."""

    def find(self, key: str) -> Posting | None:
        columns = [POSTINGS.c[name] for name in Posting.model_fields]
        row = self._database.row(select(*columns).where(POSTINGS.c.key == key))
        return None if row is None else Posting(**row._mapping)

    def put(self, posting: Posting) -> None:
        """Store a posting; it replaces the one with its key."""
        now = self._database.clock()
        insert = self._database.insert(POSTINGS).values(**posting.model_dump(), created_at=now, updated_at=now)
        changed = {
            name: insert.excluded[name] for name in ("job", "number", "github_id", "content_hash", "updated_at")
        }
        with self._database.write() as connection:
            previous = connection.execute(select(POSTINGS.c.id).where(POSTINGS.c.key == posting.key)).first()
            connection.execute(insert.on_conflict_do_update(index_elements=["key"], set_=changed))
            if previous is None:
                Counters(self._database).add({counter_key("bouncer_postings", type=posting.type): 1}, connection)
