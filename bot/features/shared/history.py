"""What earlier decisions on a subject mean for the next one. Pure; decisions come oldest first."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.actions import Decision, SetLabels
from bot.features.shared.records import BouncerRecord, CommandsRecord, TriageRecord


def last_verdict(past: Sequence[Decision]) -> Decision | None:
    """The newest decision of a bouncer that reached a verdict; commands and abstentions are none."""
    return next((each for each in reversed(past) if each.kind != "commands" and each.verdict), None)


def bounced(decision: Decision | None) -> bool:
    """Whether a decision turned its subject back."""
    return decision is not None and isinstance(decision.record, BouncerRecord) and decision.record.bounced


def triage_records(past: Sequence[Decision]) -> tuple[TriageRecord, ...]:
    """Return what verdicts on the issue left, oldest first."""
    return tuple(each.record for each in past if isinstance(each.record, TriageRecord))


def language(past: Sequence[Decision]) -> str:
    """What the author of an issue was answered in last; English where nobody knows."""
    known = (record.language for record in reversed(triage_records(past)) if record.language)
    return next(known, "en")


def label_stands(past: Sequence[Decision]) -> bool:
    """Whether a label of a bounce may be on the subject: a verdict that took it off was carried out to the end."""
    stands = False
    for decision in past:
        if bounced(decision):
            stands = True
        elif any(isinstance(action, SetLabels) and action.remove for action in decision.actions):
            stands = False
    return stands


def accepted(past: Sequence[Decision]) -> bool:
    """Whether a maintainer said that the issue is fine: then only a maintainer can bounce it again."""
    said = [not marked(each) for each in past if marked(each) or "accept" in _words(each)]
    return bool(said) and said[-1]


def marked(decision: Decision) -> bool:
    """Whether a maintainer bounced the subject, by its label."""
    return isinstance(decision.record, TriageRecord) and bool(decision.record.marked_by)


def paused(past: Sequence[Decision]) -> bool:
    """Whether the subject is to be left alone: the newest of pause and resume counts."""
    words = [word for each in past for word in _words(each) if word in ("pause", "resume")]
    return bool(words) and words[-1] == "pause"


def questions(past: Sequence[Decision]) -> tuple[str, ...]:
    """The questions that were put to the author so far, each once."""
    asked = (question for record in triage_records(past) for question in record.questions)
    return tuple(dict.fromkeys(asked))


def answered(past: Sequence[Decision], replies: Sequence[int]) -> frozenset[str]:
    """The questions after which their author commented; ``replies`` are the ids of those comments."""
    return frozenset(
        question
        for record in triage_records(past)
        for question in record.questions
        if set(replies) - set(record.answers)
    )


def _words(decision: Decision) -> tuple[str, ...]:
    """The commands that a decision of the commands handler carried out."""
    return decision.record.done if isinstance(decision.record, CommandsRecord) else ()
