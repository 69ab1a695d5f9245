"""The question about a patch, the reply, and the verdict at the maintainers' threshold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from bot.core.config import VerifyConfig
from bot.core.frozen import Lenient
from bot.core.subjects import Issue
from bot.core.text import folded, without_middle
from bot.features.shared.labels import MAX_BODY, Chance, OutputLabel, agreeing, bounces, tidy_label
from bot.features.verify.record import OutputVerdict
from bot.models.prompts import Prompts
from bot.models.protocol import Prompt

#: Characters of a patch in one question. GitHub shows no diff above 1 MB. A patch is judged whole or not at all.
MAX_PATCH = 1_000_000


class Gap(Lenient):
    """A part that a patch leaves out or gets wrong. One that was recorded as plain text counts as certain."""

    what: str = Field(description="a short sentence")
    certain: bool = Field(description="true where the patch itself shows it, false where it is suspected")

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return {"what": value, "certain": True} if isinstance(value, str) else value


class PaperOutputReply(Lenient):
    """The reply to the paper's question: the paper's two fields in its order (BouncerBench, III.B)."""

    explanation: str = Field(description="your reasoning")
    label: Annotated[OutputLabel, BeforeValidator(tidy_label)]


class OutputReply(Lenient):
    """The model's reply. The explanation comes before the label (BouncerBench, III.B)."""

    explanation: str = Field(description="what the issue asks for, what the patch does, and where they part")
    covered: tuple[str, ...] = Field((), description="what the issue asks for and the patch does; short phrases")
    open_points: tuple[Gap, ...] = Field(
        (), description="what the issue asks for and the patch leaves out or gets wrong; empty where nothing is"
    )
    regressions: tuple[Gap, ...] = Field(
        (), description="what worked before and does not with the patch; empty where nothing is"
    )
    remarks: tuple[str, ...] = Field(
        (), description="stray files and the like: worth a word, and no reason to hold the patch back"
    )
    p_bounce: Chance = Field(
        None, description="chance in percent that the patch has to be held back, as the question puts it"
    )
    p_objects: Chance = Field(
        None, description="chance in percent that a careful reviewer objects to the patch, for whatever reason"
    )
    label: Annotated[OutputLabel, BeforeValidator(tidy_label)]


def reply_schema(config: VerifyConfig) -> type[PaperOutputReply] | type[OutputReply]:
    """Return the shape of the reply to the question of ``config``."""
    return PaperOutputReply if config.prompt == "paper" else OutputReply


def question(
    prompts: Prompts, name: str, issue: Issue, patch: str, *, context: str = "", omitted: Sequence[str] = ()
) -> Prompt:
    """Return the prompt about a patch and one issue that it says it solves.

    ``context`` is the code around the patch; ``omitted`` are its files that are named and not judged.
    """
    # The paper asks about the unchanged text.
    body = (without_middle if name == "paper" else folded)(issue.body, MAX_BODY)
    system, user = prompts.render(
        f"verify.{name}", title=issue.title, body=body, patch=patch, context=context, omitted=tuple(omitted)
    )
    return Prompt(purpose="verify", system=system, user=user)


def verdict(reply: OutputReply | PaperOutputReply, issue: int, config: VerifyConfig) -> OutputVerdict:
    """Return the verdict at the maintainers' threshold."""
    if isinstance(reply, PaperOutputReply):
        reply = OutputReply(explanation=reply.explanation, label=reply.label)
    label = agreeing(reply.label, reply.p_bounce)
    return OutputVerdict(
        issue=issue,
        label=label,
        bounced=bounces(label, OutputLabel(config.bounce_at), reply.p_bounce, config.bounce_above),
        p_bounce=reply.p_bounce,
        p_objects=reply.p_objects,
        line="label" if reply.p_bounce is None else "p_bounce",
        explanation=reply.explanation,
        covered=_distinct(reply.covered),
        missing=_distinct(_phrase(gap) for gap in reply.open_points),
        regressions=_distinct(_phrase(gap) for gap in reply.regressions),
        remarks=_distinct(reply.remarks),
    )


def _phrase(gap: Gap) -> str:
    return gap.what if gap.certain or not gap.what.strip() else f"{gap.what.rstrip()} (suspected)"


def _distinct(points: Iterable[str]) -> tuple[str, ...]:
    """Return the first six different points."""
    return tuple(dict.fromkeys(" ".join(point.split()) for point in points if point.strip()))[:6]
