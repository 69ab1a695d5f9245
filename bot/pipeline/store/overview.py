"""Read-only queries for people: pages of decisions and their export, counts by day, costs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, Integer, Row, Select, and_, case, cast, func, or_, select

from bot import router
from bot.core.actions import Decision, Task
from bot.core.frozen import Frozen
from bot.core.redaction import redact
from bot.core.subjects import Subject
from bot.core.text import csv_line
from bot.models.budget import Spent
from bot.pipeline.store.database import Part
from bot.pipeline.store.decisions import Posting, is_outage, read_stored
from bot.pipeline.store.tables import BUDGETS, DECISIONS, MODEL_CALLS, POSTINGS

#: What a bouncer or the reviewer made of its subject. A review with defects counts as bounced.
DecisionResult = Literal["bounced", "passed", "abstained"]
PAGE = 50
#: Decisions that an alarm compares: the newest ones with those before.
_RECENT, _BEFORE = 10, 200
_DAY = 86_400

_COLUMNS = [
    column for column in DECISIONS.c if column.name not in ("decision", "position", "revision", "config_hash")
]
_FULL_COLUMNS = [*_COLUMNS, DECISIONS.c.decision]


class DecisionRow(Frozen):
    """A decision in a list."""

    id: int
    job: str
    kind: Task
    repository: str
    number: int
    verdict: str | None
    abstained: str | None
    bounced: bool | None
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    cost_usd: float | None
    outcome: str | None = Field(description="what publishing came to; None while it is under way")
    created_at: datetime

    def url(self, web_url: str) -> str:
        """Return the address of its subject on GitHub; empty for a decision about a whole repository."""
        # GitHub redirects the address of an issue to the pull request of that number.
        return f"{web_url}/{self.repository}/issues/{self.number}" if self.number else ""


class Filter(Frozen):
    """The decisions to list."""

    repository: str = ""
    kind: str = ""
    result: DecisionResult | None = Field(None, serialization_alias="came", description="came in URLs")
    job: str = ""
    outcome: str = Field("", description="what publishing came to")
    text: str = Field("", description="``#12``, ``owner/name#12``, or words of what was decided and written")


class Call(Frozen):
    """A model call of a job."""

    purpose: str
    model: str
    prompt_hash: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = Field(description="of the input: read from the provider's prompt cache")
    seconds: float
    cost_usd: float | None
    error: str | None
    created_at: datetime


class Day(Frozen):
    """Counts of the outcomes of one day (UTC)."""

    day: date
    bounced: int = 0
    passed: int = 0
    abstained: int = 0


class Cost(Frozen):
    """The spending on a repository, on a model or on one day."""

    name: str
    calls: int
    tokens: int
    cached: int = Field(description="of the tokens: read from a provider's prompt cache")
    cost_usd: float | None = Field(description="None if no call of it has a known price")
    unpriced: int = Field(description="calls of models whose price is not known; their cost is in no sum")


class Overview(Part):
    """Read-only questions to the ledger. Days are UTC."""

    def repositories(self) -> tuple[str, ...]:
        query = select(DECISIONS.c.repository).distinct().order_by(DECISIONS.c.repository).limit(1000)
        return tuple(self._database.scalars(query))

    def decisions(self, filters: Filter, before: int | None = None, limit: int = PAGE) -> tuple[DecisionRow, ...]:
        """Return the newest decisions that pass the filter and have an id below ``before``."""
        rows = self._database.rows(_newest(_COLUMNS, filters, before, limit))
        return tuple(DecisionRow(**row._asdict()) for row in rows)

    def full_decisions(
        self, filters: Filter, before: int | None = None, limit: int = PAGE
    ) -> tuple[tuple[DecisionRow, Decision], ...]:
        """Return the same rows, each with its whole decision."""
        rows = self._database.rows(_newest(_FULL_COLUMNS, filters, before, limit))
        return tuple(map(_full_decision, rows))

    def decision(self, number: int) -> tuple[DecisionRow, Decision] | None:
        row = self._database.row(select(*_FULL_COLUMNS).where(DECISIONS.c.id == number))
        return None if row is None else _full_decision(row)

    def wrong_configurations(self) -> tuple[DecisionRow, ...]:
        """Return each repository whose newest check of the default branch's ``bouncer.yml`` failed."""
        newest = (
            select(func.max(DECISIONS.c.id))
            .where(DECISIONS.c.kind == "config", DECISIONS.c.number == 0)
            .group_by(DECISIONS.c.repository)
        )
        query = (
            select(*_COLUMNS)
            .where(DECISIONS.c.id.in_(newest), DECISIONS.c.verdict == "wrong")
            .order_by(DECISIONS.c.repository)
            .limit(PAGE)
        )
        return tuple(DecisionRow(**row._asdict()) for row in self._database.rows(query))

    def calls(self, job: str) -> tuple[Call, ...]:
        columns = [MODEL_CALLS.c[name] for name in Call.model_fields]
        query = select(*columns).where(MODEL_CALLS.c.job == job).order_by(MODEL_CALLS.c.id).limit(200)
        return tuple(Call(**row._asdict()) for row in self._database.rows(query))

    def postings(self, job: str) -> tuple[Posting, ...]:
        columns = [POSTINGS.c[name] for name in Posting.model_fields]
        query = select(*columns).where(POSTINGS.c.job == job).order_by(POSTINGS.c.id).limit(200)
        return tuple(Posting(**row._asdict()) for row in self._database.rows(query))

    def days(self, today: date, count: int, repository: str = "") -> tuple[Day, ...]:
        """Count the outcomes of bouncers and the reviewer on each of the last ``count`` days."""
        start = datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(days=count - 1)
        day = cast(func.floor((DECISIONS.c.created_at - start.timestamp()) / _DAY), Integer)
        query = (
            select(day, *(func.sum(case((condition, 1), else_=0)) for condition in _RESULTS.values()))
            .where(DECISIONS.c.created_at >= start.timestamp(), DECISIONS.c.kind.in_(router.JUDGES))
            .group_by(day)
        )
        if repository:
            query = query.where(DECISIONS.c.repository == repository)
        rows = self._database.rows(query)
        counts: dict[int, dict[str, int]] = {row[0]: dict(zip(_RESULTS, row[1:], strict=True)) for row in rows}
        return tuple(
            Day(day=start.date() + timedelta(days=number), **counts.get(number, {})) for number in range(count)
        )

    def abstention_alarm(self) -> str:
        """Return a sentence if abstentions because of outages jumped; else an empty text.

        They jumped if they are half of the newest decisions, within a week, and twice as frequent as before.
        """
        last_week = (datetime.now(UTC) - timedelta(days=7)).timestamp()
        query = (
            select(DECISIONS.c.created_at, DECISIONS.c.abstained, case((is_outage(), 1), else_=0).label("outage"))
            .where(DECISIONS.c.kind.in_(router.JUDGES))
            .order_by(DECISIONS.c.id.desc())
            .limit(_RECENT + _BEFORE)
        )
        rows = self._database.rows(query)
        recent, before = rows[:_RECENT], rows[_RECENT:]
        failures = [row for row in recent if row.outage and row.created_at >= last_week]
        share, share_before = len(failures) / _RECENT, 0.0
        if before:
            share_before = sum(row.outage for row in before) / len(before)
        if len(recent) < _RECENT or share < 0.5 or share < 2 * share_before:
            return ""
        cause = Counter(row.abstained for row in failures).most_common(1)[0][0]
        return f"{len(failures)} of the last {_RECENT} decisions have no verdict, most often because of {cause}"

    def mean_cost(self, since: datetime) -> float | None:
        """Return the mean cost in US dollars of a decision that called a model; None if no price is known."""
        query = select(func.avg(DECISIONS.c.cost_usd)).where(DECISIONS.c.created_at >= since.timestamp())
        mean = self._database.scalar(query.where(DECISIONS.c.calls > 0))
        return None if mean is None else float(mean)

    def spent(self, today: date) -> Mapping[str, Spent]:
        """Return calls and their price on a day, settled and reserved, by budget scope."""
        query = select(BUDGETS).where(BUDGETS.c.day == today.isoformat()).order_by(BUDGETS.c.scope)
        rows = self._database.rows(query)
        return {row.scope: Spent(calls=row.calls, micros=row.micros) for row in rows}

    def costs(self, since: datetime, by: Literal["repository", "model", "day"]) -> tuple[Cost, ...]:
        """Return the costs of model calls since a moment, the highest first, or in order of days."""
        if by == "day":
            column: Any = cast(func.floor(MODEL_CALLS.c.created_at / _DAY), Integer)
        else:
            column = MODEL_CALLS.c[by]
        query: Select[Any] = (
            select(
                column.label("name"),
                func.sum(MODEL_CALLS.c.calls).label("calls"),
                func.sum(MODEL_CALLS.c.input_tokens + MODEL_CALLS.c.output_tokens).label("tokens"),
                func.sum(MODEL_CALLS.c.cached_tokens).label("cached"),
                func.sum(MODEL_CALLS.c.cost_usd).label("cost_usd"),
                func.sum(case((MODEL_CALLS.c.cost_usd.is_(None), MODEL_CALLS.c.calls), else_=0)).label("unpriced"),
            )
            .where(MODEL_CALLS.c.created_at >= since.timestamp())
            .group_by(column)
        )
        sums = [row._asdict() for row in self._database.rows(query)]
        rows = [Cost(**{**values, "name": _name(values["name"], by)}) for values in sums]
        if by == "day":
            return tuple(sorted(rows, key=lambda row: row.name))
        return tuple(sorted(rows, key=lambda row: (-(row.cost_usd or 0.0), -row.tokens, row.name)))


_ABSTAINED = DECISIONS.c.verdict.is_(None)
_RESULTS: dict[DecisionResult, ColumnElement[bool]] = {
    "bounced": or_(DECISIONS.c.bounced.is_(True), DECISIONS.c.verdict == "defects"),
    "passed": and_(~_ABSTAINED, DECISIONS.c.bounced.isnot(True), DECISIONS.c.verdict != "defects"),
    "abstained": _ABSTAINED,
}


def _conditions(filters: Filter) -> list[ColumnElement[bool]]:
    equalities = (
        (DECISIONS.c.repository, filters.repository),
        (DECISIONS.c.kind, filters.kind),
        (DECISIONS.c.job, filters.job),
        (DECISIONS.c.outcome, filters.outcome),
    )
    conditions = [column == value for column, value in equalities if value]
    if filters.result:
        conditions.append(_RESULTS[filters.result])
    if filters.text:
        conditions.append(_mentions(filters.text))
    return conditions


_REFERENCE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)?#(?P<number>[0-9]{1,18})")


def _mentions(text: str) -> ColumnElement[bool]:
    """Return the condition for ``#12``, ``owner/name#12``, or words in the repository's name or the decision."""
    if reference := _REFERENCE.fullmatch(text.strip()):
        has_number = DECISIONS.c.number == int(reference["number"])
        repository = reference["repository"]
        return and_(has_number, DECISIONS.c.repository == repository) if repository else has_number
    # Escaped as in the stored JSON.
    words = json.dumps(text.strip(), ensure_ascii=False)[1:-1]
    columns = (DECISIONS.c.repository, DECISIONS.c.decision)
    return or_(*(column.icontains(words, autoescape=True) for column in columns))


def _newest(columns: Iterable[ColumnElement[Any]], filters: Filter, before: int | None, limit: int) -> Select[Any]:
    query = select(*columns).where(*_conditions(filters)).order_by(DECISIONS.c.id.desc()).limit(limit)
    return query if before is None else query.where(DECISIONS.c.id < before)


def _full_decision(row: Row[Any]) -> tuple[DecisionRow, Decision]:
    values = row._asdict()
    if (decision := read_stored(values.pop("decision"))) is None:
        subject = Subject(repository=row.repository, number=row.number, revision="")
        decision = Decision(kind=row.kind, subject=subject, reason="another version of Bouncer wrote this")
    return DecisionRow(**values), decision


def _name(value: Any, by: str) -> str:
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat() if by == "day" else value or "unknown"


#: Decisions that are held at once.
EXPORTED = 200

COLUMNS = (
    "id", "created_at", "repository", "number", "kind", "verdict", "abstained", "bounced", "outcome", "reason",
    "actions", "model", "calls", "input_tokens", "output_tokens", "seconds", "cost_usd", "job", "url",
)  # fmt: skip


def as_csv(overview: Overview, filters: Filter, web_url: str) -> Iterator[str]:
    """Yield the lines of a CSV file with a header; an unknown cost is an empty cell."""
    yield csv_line(COLUMNS)
    for values in _rows(overview, filters, web_url):
        yield csv_line(values[name] for name in COLUMNS)


def as_json(overview: Overview, filters: Filter, web_url: str) -> Iterator[str]:
    """Yield the lines of a JSON array with one object per line; an unknown cost is null."""
    before = "[\n"
    for values in _rows(overview, filters, web_url):
        yield before + json.dumps(values, ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _rows(overview: Overview, filters: Filter, web_url: str) -> Iterator[dict[str, Any]]:
    before: int | None = None
    while page := overview.full_decisions(filters, before, EXPORTED):
        yield from (export_row(row, decision, web_url) for row, decision in page)
        before = page[-1][0].id
        if len(page) < EXPORTED:
            return


def export_row(row: DecisionRow, decision: Decision, web_url: str) -> dict[str, Any]:
    """Return a decision as a row with the fields COLUMNS."""
    values = row.model_dump(mode="json")
    values["reason"] = redact(decision.reason)
    values["actions"] = " ".join(action.type for action in decision.actions)
    values["url"] = row.url(web_url)
    return {name: values[name] for name in COLUMNS}
