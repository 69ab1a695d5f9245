"""Conclusions from earlier decisions on a subject. Pure; decisions are ordered, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from bot.core.actions import Decision, Record, SetLabels
from bot.features.commands.record import CommandsRecord
from bot.features.shared.labels import BouncerRecord
from bot.features.triage.record import TriageRecord

R = TypeVar("R", bound=Record)


def last_record(past: Sequence[Decision], record_type: type[R]) -> R | None:
    """Return the newest record of a type, whatever was decided since without one; None if there is none."""
    records = (decision.record for decision in reversed(past))
    return next((record for record in records if isinstance(record, record_type)), None)


def last_verdict(past: Sequence[Decision]) -> Decision | None:
    """Return the newest decision with a verdict; commands and abstentions have none."""
    verdicts = (decision for decision in reversed(past) if decision.kind != "commands" and decision.verdict)
    return next(verdicts, None)


def bounced(decision: Decision | None) -> bool:
    """Return True if the decision bounced its subject."""
    return decision is not None and decision.record_of(BouncerRecord).bounced


def triage_records(past: Sequence[Decision]) -> tuple[TriageRecord, ...]:
    """Return the records of the verdicts on an issue, oldest first."""
    return tuple(decision.record for decision in past if isinstance(decision.record, TriageRecord))


def label_stands(past: Sequence[Decision]) -> bool:
    """Return True if the label of a bounce may be on the subject: no later decision removed it."""
    for decision in reversed(past):
        if bounced(decision):
            return True
        if any(isinstance(action, SetLabels) and action.remove for action in decision.actions):
            return False
    return False


def accepted(past: Sequence[Decision]) -> bool:
    """Return True if a maintainer accepted the issue: then only a maintainer can bounce it again."""
    last = next(
        (decision for decision in reversed(past) if marked(decision) or "accept" in _words(decision)), None
    )
    return last is not None and not marked(last)


def accepted_by(past: Sequence[Decision]) -> str:
    """Return the login of the maintainer who last accepted the issue; empty if no one did."""
    acceptances = (decision for decision in reversed(past) if "accept" in _words(decision))
    return next((decision.record_of(CommandsRecord).by for decision in acceptances), "")


def marked(decision: Decision) -> bool:
    """Return True if a maintainer bounced the subject by setting its label."""
    return bool(decision.record_of(TriageRecord).marked_by)


def _words(decision: Decision) -> tuple[str, ...]:
    """Return the words of the commands that were carried out."""
    return decision.record_of(CommandsRecord).done
