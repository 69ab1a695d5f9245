"""Answer ``/bouncer why`` from the record of a verdict, or of a finding if asked in its thread.

The model is not asked for a new opinion. It gets the record and the text or code that was judged, and may quote
only these. If it quotes anything else, the recorded explanation is posted in place of its answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.code.diff import parse
from bot.core import events
from bot.core.actions import Decision, Record, UpsertComment
from bot.core.commands import Command
from bot.core.errors import ForgeError
from bot.core.events import Event
from bot.core.frozen import Lenient
from bot.core.markdown import clean
from bot.core.text import squeeze, without_middle
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.finding_code import around
from bot.features.shared.findings import Finding
from bot.features.shared.review_history import in_thread, recall
from bot.features.shared.rights import CommandEvent, asked_for, explains, thread_of
from bot.features.triage.record import TriageRecord
from bot.features.verify.record import VerifyRecord
from bot.features.why.record import WhyRecord
from bot.github.protocol import text_at
from bot.models.protocol import Prompt, caveat

#: Answers on one issue or pull request.
MAX_ANSWERS = 10
#: Characters of issue, diff or code that the model sees.
MAX_MATERIAL = 20_000
#: Characters of a posted answer.
MAX_ANSWER = 1_500

RECORDED = "An AI model's answer, based on the record of this verdict; it may be wrong."
NOTHING = "There is no verdict of mine here to explain."
ENOUGH = f"I have answered this {MAX_ANSWERS} times here and leave it at that. A maintainer can decide without me."


class WhyReply(Lenient):
    """The model's answer."""

    answer: str


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A verdict or finding to explain: its record, the material that was judged, and the recorded explanation."""

    record: str
    material: str
    explanation: str
    language: str = "en"


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if a person comments ``/bouncer why``."""
    return (
        isinstance(event, CommandEvent)
        and not event.sender.is_bot
        and any(command.word == "why" for command in commands)
    )


def handle(event: Event, services: Services) -> Decision | None:
    """Return the answer; None if the event is not a permitted question."""
    if not isinstance(event, CommandEvent) or not explains(event, services.config):
        return None
    question = asked_for("why", event, services)
    if question is None:
        return None
    before = len(services.history.decisions(event.subject.key, "why"))
    if before >= MAX_ANSWERS:
        enough = _decision(event, ENOUGH, "capped")
        return (
            enough if before == MAX_ANSWERS else enough.model_copy(update={"actions": (), "abstained": "capped"})
        )
    verdict = _verdict(event, services)
    if verdict is None:
        return _decision(event, NOTHING, "nothing")
    system, user = services.prompts.render(
        "why",
        record=verdict.record,
        material=verdict.material,
        objection=question.reason,
        language=verdict.language,
    )
    prompt = Prompt(purpose="why", system=system, user=user, subject=event.subject.key)
    reply = services.model.complete(prompt, WhyReply)
    grounded = _grounded(reply.value.answer, verdict)
    text = reply.value.answer if grounded else verdict.explanation
    words = answer(text, reply.model, services.repository.host)
    decision = _decision(event, words, "answered")
    record = WhyRecord(grounded=grounded, reply=reply.text[:20_000], prompt_hash=prompt.hash)
    return decision.model_copy(update={"record": record, "usage": reply.usage, "model": reply.model})


def answer(text: str, model: str, host: str = "") -> str:
    """Return the text to post: the answer, the model's name, and its caveat."""
    note = caveat(model)
    source = f"*{RECORDED}* `{model}`"
    return "\n\n".join([clean(text, host=host, limit=MAX_ANSWER), source, *([f"_{note}_"] if note else [])])


def _decision(event: CommandEvent, body: str, verdict: str) -> Decision:
    about = str(event.comment.id)
    return Decision(
        kind="why",
        subject=event.subject,
        verdict=verdict,
        actions=(UpsertComment(task="why", number=event.number, body=body, about=about, thread=thread_of(event)),),
        reason=f"{event.sender.login} asked why",
    )


def _grounded(answer: str, verdict: _Verdict) -> bool:
    """Return True if everything that the answer quotes is in the text that the model saw."""
    shown_text = squeeze(f"{verdict.record}\n{verdict.explanation}\n{verdict.material}")
    quotes = re.findall(r"(`+)(.+?)\1", answer, re.DOTALL)
    return bool(answer.strip()) and all(squeeze(words) in shown_text for _, words in quotes)


def _verdict(event: CommandEvent, services: Services) -> _Verdict | None:
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
    return _Verdict(values, material, record.explanation, record.language or "en")


def _patch(event: events.CommentCreated, services: Services) -> _Verdict | None:
    last = history.last_verdict(services.history.decisions(event.subject.key, "verify"))
    record = last.record_of(VerifyRecord) if last else VerifyRecord()
    if not record.verdicts:
        return None
    explanation = "\n\n".join(verdict.explanation for verdict in record.verdicts)
    material = without_middle(_diff(event.number, services), MAX_MATERIAL)
    return _Verdict(_record(record, ("verdicts", "bounced", "runs")), material, explanation)


def _finding(event: events.ReviewCommentCreated, services: Services) -> _Verdict | None:
    """Return the finding of the thread that the comment is in, with the code around it."""
    memory = recall(services.history.decisions(event.subject.key, "review", "commands", "feedback"))
    findings = (*memory.posted, *memory.gone, *memory.dismissed)
    finding = in_thread(event, findings, services.forge)
    if finding is None:
        return None
    names = {"path", "comment", "category", "impact", "severity", "code", "proof"}
    record = _compact(finding.model_dump(mode="json", include=names))
    return _Verdict(record, _code(finding, event, services), finding.comment)


def _code(finding: Finding, event: events.ReviewCommentCreated, services: Services) -> str:
    source = text_at(services.forge, finding.path, event.pull_request.head_sha)
    return without_middle(around(finding, parse(_diff(event.number, services)), source).text, MAX_MATERIAL)


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
