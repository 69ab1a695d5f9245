"""The output bouncer's thinking: does this patch solve its issue? Pure but for the model call."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from bot.bouncers.input import MAX_BODY
from bot.bouncers.labels import OutputLabel, Percent, bounces, tidy_label
from bot.core.config import VerifyConfig
from bot.core.frozen import Frozen
from bot.core.model import Issue
from bot.core.text import without_middle
from bot.models.protocol import Model, Prompt, Reply
from bot.prompts import Prompts

#: Characters of a patch that are put into one question: GitHub itself shows no diff above 1 MB. Whether a model
#: can hold that many is for the model to say; a patch is judged whole or not at all.
MAX_PATCH = 1_000_000


class OutputReply(BaseModel):
    """What the model is to answer. The order matters: it reasons before it chooses (BouncerBench, III.B)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    explanation: str = Field(description="what the issue asks for, what the patch does, and where they part")
    covered: tuple[str, ...] = Field((), description="what the issue asks for and the patch does; short phrases")
    open_points: tuple[str, ...] = Field(
        (), description="what the issue asks for and the patch leaves out or gets wrong; short sentences"
    )
    p_bounce: Percent | None = Field(
        None, description="chance in percent that the patch deserves one of the last two labels"
    )
    label: Annotated[OutputLabel, BeforeValidator(tidy_label)]


class OutputVerdict(Frozen):
    """What became of a reply at the line that the maintainer drew, for one linked issue."""

    issue: int
    label: OutputLabel
    bounced: bool
    p_bounce: int | None
    explanation: str
    covered: tuple[str, ...]
    missing: tuple[str, ...]


def question(prompts: Prompts, name: str, issue: Issue, patch: str) -> Prompt:
    """The prompt about a patch and one issue that it says it solves."""
    system, user = prompts.render(
        f"verify.{name}", title=issue.title, body=without_middle(issue.body, MAX_BODY), patch=patch
    )
    return Prompt(purpose="verify", system=system, user=user)


def judge(model: Model, prompt: Prompt) -> Reply[OutputReply]:
    """Ask. Raises ModelError or TransientError."""
    return model.complete(prompt, OutputReply)


def verdict(reply: OutputReply, issue: int, config: VerifyConfig) -> OutputVerdict:
    """The verdict at the maintainer's line."""
    return OutputVerdict(
        issue=issue,
        label=reply.label,
        bounced=bounces(reply.label, OutputLabel(config.bounce_at), reply.p_bounce, config.bounce_above),
        p_bounce=reply.p_bounce,
        explanation=reply.explanation,
        covered=_short(reply.covered),
        missing=_short(reply.open_points),
    )


def _short(points: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(point.split()) for point in points if point.strip()))[:6]
