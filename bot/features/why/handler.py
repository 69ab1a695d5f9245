"""Answer ``/bouncer why`` from the record of a verdict, or of a finding if asked in its thread.

The model is not asked for a new opinion. It gets the record and the text or code that was judged (see
``explained``), and may quote only these. If it quotes anything else, the recorded explanation is posted in place
of its answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import Field

from bot.core.actions import Decision, Record, UpsertComment
from bot.core.commands import Command
from bot.core.frozen import Lenient
from bot.core.markdown import clean
from bot.core.text import squeeze
from bot.features.services import Services
from bot.features.shared.rights import CommandEvent, asked_for, explains, thread_of
from bot.models.protocol import Prompt, caveat

#: Answers on one issue or pull request.
MAX_ANSWERS = 10
#: Characters of a posted answer.
MAX_ANSWER = 1_500

RECORDED = "An AI model's answer, based on the record of this verdict; it may be wrong."
NOTHING = "There is no verdict of mine here to explain."
ENOUGH = f"I have answered this {MAX_ANSWERS} times here and leave it at that. A maintainer can decide without me."


class WhyRecord(Record):
    """An explanation that was asked for."""

    grounded: bool = Field(False, description="all that it quotes stands in what the model was given")
    reply: str = ""
    prompt_hash: str = ""


class WhyReply(Lenient):
    """The model's answer."""

    answer: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict or finding to explain: its record, the material that was judged, and the recorded explanation."""

    record: str
    material: str
    explanation: str
    language: str = "en"


#: Returns the verdict or finding that a comment asks about; None if there is none.
VerdictOf = Callable[[CommandEvent, Services], Verdict | None]


def concerns(event: CommandEvent, commands: Sequence[Command]) -> bool:
    """Return True if a person comments ``/bouncer why``."""
    return not event.sender.is_bot and any(command.word == "why" for command in commands)


def handle(event: CommandEvent, services: Services, verdict_of: VerdictOf) -> Decision | None:
    """Return the answer; None if the event is not a permitted question."""
    if not explains(event, services.config):
        return None
    question = asked_for("why", event, services)
    if question is None:
        return None
    if event.about.locked:
        return Decision(kind="why", subject=event.subject, abstained="skipped:locked", reason="it is locked")
    before = len(services.history.decisions(event.subject.key, "why"))
    if before >= MAX_ANSWERS:
        enough = _decision(event, ENOUGH, "capped")
        return (
            enough if before == MAX_ANSWERS else enough.model_copy(update={"actions": (), "abstained": "capped"})
        )
    verdict = verdict_of(event, services)
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


def _grounded(answer: str, verdict: Verdict) -> bool:
    """Return True if everything that the answer quotes is in the text that the model saw."""
    shown_text = squeeze(f"{verdict.record}\n{verdict.explanation}\n{verdict.material}")
    quotes = re.findall(r"(?<!`)(`++)(.+?)(?<!`)\1(?!`)", answer, re.DOTALL)
    return bool(answer.strip()) and all(squeeze(words) in shown_text for _, words in quotes)
