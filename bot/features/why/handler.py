"""``/bouncer why``: one answer from what was recorded with a verdict, below it or in the thread of a finding.

The model is asked for no new opinion: it gets the record and what that was about, and what it quotes has to stand
there. An answer that quotes anything else is not posted; the recorded explanation is, in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from bot.code.context import text_at
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
from bot.features.shared.input_bouncer import sentences
from bot.features.shared.records import TriageRecord, VerifyRecord, WhyRecord
from bot.features.shared.review_history import in_thread, recall
from bot.features.shared.rights import Said, asked_for, explains, thread_of
from bot.models.protocol import Prompt, caveat

#: Answers on one issue or pull request, whoever asks; characters of what is shown to the model, and of an answer.
MOST = 10
MATERIAL = 20_000
ANSWER = 1_500

NOTHING = "There is no verdict of mine here to explain."
ENOUGH = f"I have answered this {MOST} times here and leave it at that. A maintainer can decide without me."


class WhyReply(Lenient):
    """What the model is to answer."""

    answer: str = Field(
        description="at most six sentences; what is quoted stands between backticks, copied exactly"
    )


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Something that was said, what was said for it, and what it was about."""

    record: str
    material: str
    explanation: str
    language: str = "en"


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if a person comments ``/bouncer why``."""
    return (
        isinstance(event, Said) and not event.sender.is_bot and any(command.word == "why" for command in commands)
    )


def handle(event: Event, services: Services) -> Decision | None:
    """Answer; None where nobody asks who may."""
    if not isinstance(event, Said) or not explains(event, services.config):
        return None
    asked = asked_for("why", event, services)
    if asked is None:
        return None
    before = len(services.history.decisions(event.subject.key, "why"))
    if before >= MOST:
        enough = _said(event, ENOUGH, "capped")
        return enough if before == MOST else enough.model_copy(update={"actions": (), "abstained": "capped"})
    verdict = _verdict(event, services)
    if verdict is None:
        return _said(event, NOTHING, "nothing")
    system, user = services.prompts.render(
        "why",
        record=verdict.record,
        material=verdict.material,
        objection=asked.reason,
        language=verdict.language,
    )
    prompt = Prompt(purpose="why", system=system, user=user, subject=event.subject.key)
    reply = services.model.complete(prompt, WhyReply)
    grounded = _grounded(reply.value.answer, verdict)
    text = reply.value.answer if grounded else verdict.explanation
    words = answer(text, reply.model, verdict.language, services.repository.host)
    decision = _said(event, words, "answered")
    record = WhyRecord(grounded=grounded, reply=reply.text[:20_000], prompt_hash=prompt.hash)
    return decision.model_copy(update={"record": record, "usage": reply.usage, "model": reply.model})


def answer(text: str, model: str, language: str, host: str = "") -> str:
    """What is posted: a model's words, and whose they are."""
    note = caveat(model)
    whose = f"*{sentences(language)['recorded']}* `{model}`"
    return "\n\n".join([clean(text, host=host, limit=ANSWER), whose, *([f"_{note}_"] if note else [])])


def _said(event: Said, body: str, verdict: str) -> Decision:
    about = str(event.comment.id)
    return Decision(
        kind="why",
        subject=event.subject,
        verdict=verdict,
        actions=(UpsertComment(task="why", number=event.number, body=body, about=about, thread=thread_of(event)),),
        reason=f"{event.sender.login} asked why",
    )


def _grounded(answer: str, verdict: _Verdict) -> bool:
    """Whether all that an answer quotes stands in what the model was given."""
    known = squeeze(f"{verdict.record}\n{verdict.explanation}\n{verdict.material}")
    quoted = re.findall(r"(`+)(.+?)\1", answer, re.DOTALL)
    return bool(answer.strip()) and all(squeeze(words) in known for _, words in quoted)


def _verdict(event: Said, services: Services) -> _Verdict | None:
    if isinstance(event, events.ReviewCommentCreated):
        return _finding(event, services)
    if event.issue.is_pull_request:
        return _patch(event, services)
    last = history.last_verdict(services.history.decisions(event.subject.key, "triage", "commands"))
    if last is None or not isinstance(last.record, TriageRecord) or not last.record.explanation:
        return None
    record = _record(last.record, ("label", "bounced", "p_bounce", "explanation", "questions", "missing"))
    material = f"{event.issue.title}\n\n{event.issue.body}"
    return _Verdict(record, without_middle(material, MATERIAL), last.record.explanation, history.language((last,)))


def _patch(event: events.CommentCreated, services: Services) -> _Verdict | None:
    last = history.last_verdict(services.history.decisions(event.subject.key, "verify"))
    if last is None or not isinstance(last.record, VerifyRecord) or not last.record.verdicts:
        return None
    explained = "\n\n".join(verdict.explanation for verdict in last.record.verdicts)
    material = without_middle(_diff(event.number, services), MATERIAL)
    return _Verdict(_record(last.record, ("verdicts", "bounced", "runs")), material, explained)


def _finding(event: events.ReviewCommentCreated, services: Services) -> _Verdict | None:
    """The finding in whose thread somebody asks, and the code around it."""
    memory = recall(services.history.decisions(event.subject.key, "review", "commands", "feedback"))
    findings = (*memory.posted, *memory.gone, *memory.dismissed)
    found = in_thread(event, findings, services.forge)
    if found is None:
        return None
    kept = found.model_dump(
        mode="json", include={"path", "comment", "category", "impact", "severity", "code", "proof"}
    )
    return _Verdict(json.dumps(kept, indent=1, ensure_ascii=False), _code(found, event, services), found.comment)


def _code(finding: Finding, event: events.ReviewCommentCreated, services: Services) -> str:
    source = text_at(services.forge, finding.path, event.pull_request.head_sha)
    return without_middle(around(finding, parse(_diff(event.number, services)), source).text, MATERIAL)


def _diff(number: int, services: Services) -> str:
    try:
        return services.forge.diff(number).text
    except ForgeError:
        return ""


def _record(record: Record, names: Sequence[str]) -> str:
    values = record.as_json()
    return json.dumps({name: values[name] for name in names if values.get(name)}, indent=1, ensure_ascii=False)
