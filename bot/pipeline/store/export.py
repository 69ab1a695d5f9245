"""Decisions as a file, made while it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bot.core.actions import Decision
from bot.core.redaction import redact
from bot.core.text import csv_line
from bot.pipeline.store.overview import DecisionRow, Filter, Overview

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
