"""What a number describes: the facts of a run, and what it cost. The same for every benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from evaluation.report.page import Cell, Section, Table
from evaluation.run.folder import RunFacts, RunFolder


def facts_section(runs: Sequence[tuple[str, RunFolder]], notes: Sequence[str] = ()) -> Section:
    """One column a run: model, prompts, version, config, seed, tasks, dates, totals."""
    facts = [(name, run.facts) for name, run in runs]
    rows: list[tuple[Cell, ...]] = [
        ("benchmark", *(each.benchmark for _, each in facts)),
        ("model", *(each.model for _, each in facts)),
        ("prompts", *(_pairs(each.prompts) for _, each in facts)),
        ("config", *(_config(each) for _, each in facts)),
        ("tasks", *(_tasks(each) for _, each in facts)),
        ("seed", *(each.seed for _, each in facts)),
        ("version", *(each.version for _, each in facts)),
        ("started", *(_moment(each, each.started_at) for _, each in facts)),
        ("finished", *(_finished(each) for _, each in facts)),
        ("tasks recorded", *(each.totals.records for _, each in facts)),
        ("without a usable answer", *(each.totals.failed for _, each in facts)),
    ]
    table = Table(("", *(name for name, _ in facts)), tuple(rows), prose=True)
    data = {"runs": [run.facts.model_dump(mode="json", exclude=_untold(run.facts)) for _, run in runs]}
    return Section("Runs", tuple(notes), (table,), data=data)


def cost_section(runs: Sequence[tuple[str, RunFolder]], published: Sequence[tuple[Cell, ...]] = ()) -> Section:
    """Calls, tokens, dollars and seconds, in all and per task; ``published`` rows are quoted below."""
    header = ("run", "tasks", "calls", "input tokens", "output tokens", "USD", "USD per task", "s per task")
    rows = [_costs(name, run.facts) for name, run in runs]
    note = "Seconds are wall time per task; with several workers tasks overlap. Unknown prices give a dash."
    table = Table(header, (*rows, *published), quoted_from=len(rows) if published else None, note=note)
    return Section("Cost", tables=(table,))


def _costs(name: str, facts: RunFacts) -> tuple[Cell, ...]:
    totals, usage = facts.totals, facts.totals.usage
    count = totals.records
    dollars = usage.cost_usd
    each = dollars / count if dollars is not None and count else None
    return (
        name,
        count,
        usage.calls,
        usage.input_tokens,
        usage.output_tokens,
        None if dollars is None else f"{dollars:.2f}",
        None if each is None else f"{each:.5f}",
        f"{totals.seconds / count:.3f}" if count else None,
    )


def _config(facts: RunFacts) -> str:
    """The keys that differ between runs more often than not, in one line."""
    parts = {part: _pairs(keys) for part, keys in facts.config.items() if isinstance(keys, dict)}
    return "; ".join(f"{part}: {text}" for part, text in parts.items() if text)


def _pairs(values: dict[str, Any]) -> str | None:
    pairs = [f"{key} {value}" for key, value in values.items() if value not in (None, [], "", False)]
    return ", ".join(pairs) or None


def _tasks(facts: RunFacts) -> str:
    limit = "" if facts.tasks.limit is None else f", {facts.tasks.limit} of them"
    digest = f" (sha256 {facts.tasks.sha256[:12]})" if facts.tasks.sha256 else ""
    return f"{facts.tasks.source.rpartition('/')[2]}{digest}{limit}"


def is_timeless(facts: RunFacts) -> bool:
    """Whether all replies were recorded ones: when they were read again says nothing, so no date is shown."""
    return all(model.strip().startswith("recorded:") for model in facts.model.split(","))


def _finished(facts: RunFacts) -> str:
    return "not complete" if facts.finished_at is None else _moment(facts, facts.finished_at)


def _moment(facts: RunFacts, moment: datetime) -> str:
    return "recorded replies" if is_timeless(facts) else f"{moment:%Y-%m-%d %H:%M} UTC"


def _untold(facts: RunFacts) -> set[str]:
    return {"started_at", "finished_at"} if is_timeless(facts) else set()
