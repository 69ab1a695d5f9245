"""The ledger as a file: one row a decision, newest first, made while it is read so that memory stays flat.

What strangers and models wrote is redacted once more, and no cell of it starts a formula in a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from bot.core.actions import Decision
from bot.core.redaction import redact
from bot.store.overview import Filter, Line, Overview

#: Decisions that are held at once.
BATCH = 200

COLUMNS = (
    "id", "created_at", "repository", "number", "kind", "verdict", "abstained", "bounced", "outcome", "reason",
    "actions", "model", "calls", "input_tokens", "output_tokens", "seconds", "cost_usd", "job", "url",
)  # fmt: skip

#: What makes a spreadsheet calculate, in the wide forms of these characters too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def as_csv(overview: Overview, chosen: Filter, web_url: str) -> Iterator[str]:
    """Lines of a CSV file with a head; an unknown cost is an empty cell."""
    yield _csv(COLUMNS)
    for each in _rows(overview, chosen, web_url):
        yield _csv(_cell(each[name]) for name in COLUMNS)


def as_json(overview: Overview, chosen: Filter, web_url: str) -> Iterator[str]:
    """A JSON array with one object a line; an unknown cost is null."""
    before = "[\n"
    for each in _rows(overview, chosen, web_url):
        yield before + json.dumps(each, ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _rows(overview: Overview, chosen: Filter, web_url: str) -> Iterator[dict[str, Any]]:
    before: int | None = None
    while page := overview.whole(chosen, before, BATCH):
        yield from (row(line, decision, web_url) for line, decision in page)
        before = page[-1][0].id
        if len(page) < BATCH:
            return


def row(line: Line, decision: Decision, web_url: str) -> dict[str, Any]:
    """A decision as COLUMNS tell it."""
    values = line.model_dump(mode="json")
    values["reason"] = redact(decision.reason)
    values["actions"] = " ".join(action.type for action in decision.actions)
    values["url"] = f"{web_url}/{line.repository}/issues/{line.number}" if line.number else ""
    return {name: values[name] for name in COLUMNS}


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _csv(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()
