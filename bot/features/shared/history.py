"""What earlier decisions on a subject mean for the next one. Pure; decisions come oldest first."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.actions import Decision, SetLabels


def last_verdict(past: Sequence[Decision]) -> Decision | None:
    """The newest decision of a bouncer that reached a verdict; commands and abstentions are none."""
    return next((each for each in reversed(past) if each.kind != "commands" and each.verdict), None)


def bounced(decision: Decision | None) -> bool:
    """Whether a decision turned its subject back."""
    return decision is not None and bool(decision.evidence.get("bounced"))


def language(past: Sequence[Decision]) -> str:
    """What the author of an issue was answered in last; English where nobody knows."""
    known = (str(each.evidence["language"]) for each in reversed(past) if each.evidence.get("language"))
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
    return bool(decision.evidence.get("marked_by"))


def paused(past: Sequence[Decision]) -> bool:
    """Whether the subject is to be left alone: the newest of pause and resume counts."""
    words = [word for each in past for word in _words(each) if word in ("pause", "resume")]
    return bool(words) and words[-1] == "pause"


def questions(past: Sequence[Decision]) -> tuple[str, ...]:
    """The questions that were put to the author so far, each once."""
    asked = (question for each in past for question in each.evidence.get("questions", ()))
    return tuple(dict.fromkeys(map(str, asked)))


def answered(past: Sequence[Decision], replies: Sequence[int]) -> frozenset[str]:
    """The questions after which their author commented; ``replies`` are the ids of those comments."""
    return frozenset(
        str(question)
        for each in past
        for question in each.evidence.get("questions", ())
        if set(replies) - set(each.evidence.get("answers", ()))
    )


def _words(decision: Decision) -> tuple[str, ...]:
    """The commands that a decision of the commands handler carried out."""
    if decision.kind != "commands":
        return ()
    return tuple(decision.evidence.get("done", ()))
