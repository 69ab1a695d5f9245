"""A pull request without an issue: its own title and description are judged in its place. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from bot.code.diff import Diff
from bot.code.file_classes import is_test, skip_reason
from bot.core.config import VerifyConfig
from bot.core.frozen import Lenient
from bot.core.subjects import PullRequest
from bot.core.text import HTML_COMMENT, folded
from bot.features.shared.labels import MAX_BODY, Chance, OutputLabel, bounces
from bot.features.verify.record import OutputVerdict
from bot.models.protocol import Prompt, Templates

#: Changed lines from which on a change is large, and characters up to which a description is one line.
LARGE, ONE_LINE = 100, 120
#: Claims and unmentioned changes that are kept.
MAX_POINTS = 8
NO_BEHAVIOUR = "the description names no behaviour"

_FENCE = re.compile(r"^(`{3,}|~{3,})", re.MULTILINE)
#: Lines of a template and trailers of a commit: they do not describe the change.
_FORM = re.compile(r"#{1,6}\s|[-*]\s*\[[ xX]\]|-{3,}$|!\[|[A-Z][\w-]+-by:")


class DescribedClaim(Lenient):
    """A behaviour that the description promises, and whether the change brings it."""

    text: str = Field(description="what the change is said to do: one behaviour, in a short sentence")
    why: str = Field("", description="what the changed code does for it, in one or two sentences")
    quote: str = Field("", description="the line of the patch or the code that decides")
    implemented: Literal["yes", "no", "cannot_tell"]


class DescriptionReply(Lenient):
    """The reply about a description."""

    claims: tuple[DescribedClaim, ...] = Field(description="empty if title and description name no behaviour")
    unsaid: tuple[str, ...] = Field(
        (), description="behaviour that changes although the description does not say so; short sentences"
    )
    p_bounce: Chance = Field(None, description="chance in percent that a claim is not implemented")


def names_no_behaviour(pull: PullRequest, diff: Diff) -> bool:
    """Return True if the description of a large change is a single line at most."""
    # Not the comments, headings, check boxes and trailers.
    lines = [_FENCE.sub("", line.strip()).strip() for line in HTML_COMMENT.sub("", pull.body).splitlines()]
    lines = [line for line in lines if line and not _FORM.match(line)]
    changed = sum(
        file.added + file.removed for file in diff.files if not is_test(file.path) and skip_reason(file) is None
    )
    return changed >= LARGE and len(lines) <= 1 and len("".join(lines)) <= ONE_LINE


def question(prompts: Templates, pull: PullRequest, patch: str, context: str, omitted: Sequence[str]) -> Prompt:
    """Return the prompt that compares a pull request's words with its patch."""
    system, user = prompts.render(
        "verify.description",
        title=pull.title,
        body=folded(pull.body, MAX_BODY),
        patch=patch,
        context=context,
        omitted=tuple(omitted),
    )
    return Prompt(purpose="verify.description", system=system, user=user)


def verdict(reply: DescriptionReply, config: VerifyConfig) -> OutputVerdict | None:
    """Return the verdict; None if the model finds no claim. What is left unsaid never bounces by itself."""
    claims = reply.claims[:MAX_POINTS]
    if not claims:
        return None
    unmet = tuple(claim.text for claim in claims if claim.implemented == "no")
    met = tuple(claim.text for claim in claims if claim.implemented == "yes")
    if bool(unmet) if reply.p_bounce is None else reply.p_bounce >= 50:
        label = OutputLabel.BROAD_MISSING_KEY_ASPECTS if met else OutputLabel.INCORRECT
    else:
        precise = len(met) == len(claims) and not reply.unsaid
        label = OutputLabel.CORRECT_AND_PRECISE if precise else OutputLabel.CORRECT_BUT_INCOMPLETE
    words = {"yes": "implemented", "no": "not implemented", "cannot_tell": "cannot tell"}
    return OutputVerdict(
        issue=None,
        label=label,
        bounced=bounces(label, OutputLabel(config.bounce_at), reply.p_bounce, config.bounce_above),
        p_bounce=reply.p_bounce,
        line="label" if reply.p_bounce is None else "p_bounce",
        explanation="\n\n".join(
            f"{claim.text}: {words[claim.implemented]}. {claim.why}".strip() for claim in claims
        ),
        covered=met,
        missing=unmet,
        unsaid=tuple(dict.fromkeys(filter(None, map(str.strip, reply.unsaid))))[:MAX_POINTS],
    )
