"""The verdict or finding that ``/bouncer why`` is about: its record, and the text or code that was judged."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bot.code.change.diff import parse
from bot.core import events
from bot.core.actions import Record
from bot.core.errors import ForgeError
from bot.core.text import without_middle
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.finding_code import around
from bot.features.shared.review_history import in_thread, recall
from bot.features.shared.rights import CommandEvent
from bot.features.triage.record import TriageRecord
from bot.features.verify.record import VerifyRecord
from bot.features.why.handler import Verdict
from bot.github.protocol import text_at

#: Characters of issue, diff or code that the model sees.
MAX_MATERIAL = 20_000


def verdict_of(event: CommandEvent, services: Services) -> Verdict | None:
    """Return the verdict or finding that a comment asks about; None if there is none."""
    if isinstance(event, events.ReviewCommentCreated):
        return _finding(event, services)
    if event.issue.is_pull_request:
        return _patch(event, services)
    last = history.last_verdict(services.history.decisions(event.subject.key, "triage", "commands"))
    record = last.record_of(TriageRecord) if last else TriageRecord()
    if not record.explanation:
        return None
    values = _record(record, ("label", "bounced", "p_bounce", "explanation", "questions", "missing"))
    material = without_middle(f"{event.issue.title}\n\n{event.issue.body}", MAX_MATERIAL)
    return Verdict(values, material, record.explanation, record.language or "en")


def _patch(event: events.CommentCreated, services: Services) -> Verdict | None:
    last = history.last_verdict(services.history.decisions(event.subject.key, "verify"))
    record = last.record_of(VerifyRecord) if last else VerifyRecord()
    if not record.verdicts:
        return None
    explanation = "\n\n".join(verdict.explanation for verdict in record.verdicts)
    material = without_middle(_diff(event.number, services), MAX_MATERIAL)
    return Verdict(_record(record, ("verdicts", "bounced", "runs")), material, explanation)


def _finding(event: events.ReviewCommentCreated, services: Services) -> Verdict | None:
    """Return the finding of the thread that the comment is in, with the code around it."""
    memory = recall(services.history.decisions(event.subject.key, "review", "commands", "feedback"))
    finding = in_thread(event, memory.findings, services.forge)
    if finding is None:
        return None
    names = {"path", "comment", "category", "impact", "severity", "code", "proof"}
    record = _compact(finding.model_dump(mode="json", include=names))
    source = text_at(services.forge, finding.path, event.pull_request.head_sha)
    code = around(finding, parse(_diff(event.number, services)), source).text
    return Verdict(record, without_middle(code, MAX_MATERIAL), finding.comment)


def _diff(number: int, services: Services) -> str:
    try:
        return services.forge.diff(number).text
    except ForgeError:
        return ""


def _record(record: Record, names: Sequence[str]) -> str:
    values = record.as_json()
    return _compact({name: values[name] for name in names if name in values})


def _compact(value: object) -> str:
    """Return a value as JSON, without spaces and without fields that say nothing."""
    return json.dumps(_telling(value), ensure_ascii=False, separators=(",", ":"))


def _telling(value: object) -> object:
    if isinstance(value, dict):
        return {name: _telling(item) for name, item in value.items() if item not in (None, "", [], {})}
    return [_telling(item) for item in value] if isinstance(value, list) else value
