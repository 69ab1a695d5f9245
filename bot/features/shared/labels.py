"""Labels, threshold and record of the two bouncers (BouncerBench, III.A), and what a record has of a reply."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from bot.core.actions import Record
from bot.core.frozen import Lenient
from bot.models.protocol import Reply, Voice

#: Characters of an issue in one prompt.
MAX_BODY = 60_000


class InputLabel(StrEnum):
    """How well an issue is specified, best first."""

    WELL_SPECIFIED = "WELL_SPECIFIED"
    REASONABLY_SPECIFIED = "REASONABLY_SPECIFIED"
    VAGUE = "VAGUE"
    IMPOSSIBLE_TO_SOLVE = "IMPOSSIBLE_TO_SOLVE"


class OutputLabel(StrEnum):
    """How well a patch solves its issue, best first."""

    CORRECT_AND_PRECISE = "CORRECT_AND_PRECISE"
    CORRECT_BUT_INCOMPLETE = "CORRECT_BUT_INCOMPLETE"
    BROAD_MISSING_KEY_ASPECTS = "BROAD_MISSING_KEY_ASPECTS"
    INCORRECT = "INCORRECT"


Label = TypeVar("Label", InputLabel, OutputLabel)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and 0 < value <= 1:
        # Most likely 0.9 for 90 percent: read as one percent, it would turn the verdict around.
        raise ValueError("must be in percent, a whole number from 0 to 100")
    return round(value) if isinstance(value, float) and isfinite(value) else value


#: A chance in percent; a whole number, because grammars can enforce that for a small model.
Percent = Annotated[int, Field(ge=0, le=100), BeforeValidator(_whole)]

#: A chance that a model is always asked for; recorded answers may lack it.
Chance = Annotated[Percent | None, WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 100})]


def severity(label: InputLabel | OutputLabel) -> int:
    """Return 0 (best) to 3 (worst), the scale of the human annotations (BouncerBench, II.A)."""
    return list(type(label)).index(label)


def bounces(label: Label, bounce_at: Label, p_bounce: float | None = None, above: float | None = None) -> bool:
    """Return True if a subject bounces: its label is ``bounce_at`` or worse.

    If ``above`` (percent) is set and the reply has a probability, the probability decides instead.
    """
    if above is not None and p_bounce is not None:
        return p_bounce >= above
    return severity(label) >= severity(bounce_at)


def agreeing(label: Label, p_bounce: float | None, line: int = 50) -> Label:
    """Return the label, or the nearest label that agrees with the probability.

    ``p_bounce`` is the chance of the last two labels; at ``line`` percent and above the label is one of them.
    """
    if p_bounce is None or (p_bounce >= line) == (severity(label) >= 2):
        return label
    return list(type(label))[2 if p_bounce >= line else 1]


def tidy_label(value: Any) -> Any:
    """Return a label as models write it (``"well specified"``, ``"**VAGUE**"``) in the schema's spelling."""
    if not isinstance(value, str):
        return value
    return value.strip().strip("*`\"'. ").upper().replace(" ", "_").replace("-", "_")


class BouncerRecord(Record):
    """The common part of the records of both bouncers."""

    bounced: bool = False
    p_bounce: int | None = Field(None, description="chance in percent that the subject should bounce")
    prompt: str = Field("", description="hash of the prompt's file")
    config: str = Field("", description="hash of the configuration")
    harm: int | None = Field(None, description="``harm`` in the configuration, percent")


class PlaceLookedAt(Lenient):
    """A look at the repository's code before a verdict, without its text."""

    action: str
    target: str
    line: int = 1


class ModelReply(Lenient):
    """A model's answer, and its looks at the code before."""

    issue: str = Field("", description="``#12``: the issue that a question about a patch was about")
    prompt_hash: str = ""
    reply: str = Field("", description="as it came, cut to 20,000 characters")
    voices: tuple[Voice, ...] = Field((), description="answers of the single models behind a mean or cascade")
    disagreement: int | None = Field(None, description="largest difference between their chances, percent points")
    left_out: int = Field(0, description="items of the reply that were invalid")
    tool_calls: int = Field(0, description="looks at the code")
    looks: tuple[PlaceLookedAt, ...] = ()
    notes: str = ""


def model_reply(
    reply: Reply[Any], prompt_hash: str, looks: Sequence[PlaceLookedAt] = (), notes: str = "", issue: str = ""
) -> ModelReply:
    """Return the record of a reply, and of the looks and notes before it."""
    places = tuple(PlaceLookedAt(action=look.action, target=look.target, line=look.line) for look in looks)
    return ModelReply(
        issue=issue,
        prompt_hash=prompt_hash,
        reply=reply.text[:20_000],
        voices=reply.voices,
        disagreement=reply.disagreement,
        left_out=reply.left_out,
        tool_calls=len(places),
        looks=places,
        notes=notes,
    )
