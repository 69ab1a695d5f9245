"""The output bouncer's thinking: does this patch solve its issue? Pure but for the model call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bot.bouncers.input import MAX_BODY
from bot.bouncers.labels import Chance, OutputLabel, agreeing, bounces, tidy_label
from bot.core.config import VerifyConfig
from bot.core.frozen import Frozen
from bot.core.model import Issue
from bot.core.text import folded, without_middle
from bot.models.protocol import Prompt
from bot.prompts import Prompts

#: Characters of a patch that are put into one question: GitHub itself shows no diff above 1 MB. Whether a model
#: can hold that many is for the model to say; a patch is judged whole or not at all.
MAX_PATCH = 1_000_000


class Gap(BaseModel):
    """Something that a patch leaves out or gets wrong. One that was recorded as plain text counts as certain."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    what: str = Field(description="a short sentence")
    certain: bool = Field(description="true where the patch itself shows it, false where it is suspected")

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return {"what": value, "certain": True} if isinstance(value, str) else value


class OutputReply(BaseModel):
    """What the model is to answer. The order matters: it reasons before it chooses (BouncerBench, III.B)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

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


class OutputVerdict(Frozen):
    """What became of a reply at the line that the maintainer drew, for one linked issue."""

    issue: int
    label: OutputLabel
    bounced: bool
    p_bounce: int | None
    p_objects: int | None = None
    line: Literal["label", "p_bounce"] = Field("label", description="which of the two decided")
    explanation: str
    covered: tuple[str, ...]
    missing: tuple[str, ...]
    regressions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def question(
    prompts: Prompts, name: str, issue: Issue, patch: str, *, context: str = "", omitted: Sequence[str] = ()
) -> Prompt:
    """The prompt about a patch and one issue that it says it solves.

    ``context`` is code around it; ``omitted`` are its files that are named and not judged.
    """
    # The paper's question is about the text as it stands.
    body = (without_middle if name == "paper" else folded)(issue.body, MAX_BODY)
    system, user = prompts.render(
        f"verify.{name}", title=issue.title, body=body, patch=patch, context=context, omitted=tuple(omitted)
    )
    return Prompt(purpose="verify", system=system, user=user)


def verdict(reply: OutputReply, issue: int, config: VerifyConfig) -> OutputVerdict:
    """The verdict at the maintainer's line."""
    # The paper's labels are kept as they were given.
    as_said = config.prompt == "paper" or reply.p_bounce is None
    label = reply.label if as_said else agreeing(reply.label, reply.p_bounce)
    by_chance = reply.p_bounce is not None and (config.bounce_above is not None or not as_said)
    return OutputVerdict(
        issue=issue,
        label=label,
        bounced=bounces(label, OutputLabel(config.bounce_at), reply.p_bounce, config.bounce_above),
        p_bounce=reply.p_bounce,
        p_objects=reply.p_objects,
        line="p_bounce" if by_chance else "label",
        explanation=reply.explanation,
        covered=_short(reply.covered),
        missing=_short(_said(each) for each in reply.open_points),
        regressions=_short(_said(each) for each in reply.regressions),
        remarks=_short(reply.remarks),
    )


def _said(gap: Gap) -> str:
    return gap.what if gap.certain or not gap.what.strip() else f"{gap.what.rstrip()} (suspected)"


def _short(points: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(point.split()) for point in points if point.strip()))[:6]
