"""The replies to the questions about a patch, and the verdict at the maintainers' threshold. Pure.

A pull request without an issue is judged by its own title and description.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from bot.code.change.diff import Diff, Sides
from bot.code.change.file_classes import is_test, skip_reason
from bot.code.change.quotes import bare, without_margin
from bot.code.parsing.definitions import enclosing
from bot.code.parsing.syntax import definitions
from bot.core.config import VerifyConfig
from bot.core.frozen import Lenient
from bot.core.subjects import PullRequest
from bot.core.text import HTML_COMMENT, estimate, show, squeeze_lines
from bot.features.shared.labels import Chance, OutputLabel, agreeing, bounces, tidy_label
from bot.features.verify.record import Basis, Grade, GradedDemand, OutputVerdict


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


def prompt_names(config: VerifyConfig, by_description: bool = False) -> tuple[str, ...]:
    """Return the prompts that are asked about a patch, in order."""
    if by_description:
        return ("verify.description",)
    return ("verify.demands", "verify.rubric") if config.prompt == "rubric" else (f"verify.{config.prompt}",)


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


#: Demands that are graded, and lines of a function that is shown whole in the code before the change.
MAX_DEMANDS, MAX_FUNCTION = 8, 120


class Demand(Lenient):
    """Something that must be true with a correct patch."""

    text: str = Field(description="one behaviour that can be checked, with values if the issue gives them")
    basis: Basis = Field(
        description="stated: the issue says it; implied: any maintainer tests it; guess: one reading"
    )


class DemandsReply(Lenient):
    """The reply to the first question."""

    demands: tuple[Demand, ...] = Field(description="3 to 8 demands")

    @field_validator("demands")
    @classmethod
    def _some(cls, demands: tuple[Demand, ...]) -> tuple[Demand, ...]:
        demands = tuple(demand for demand in demands if demand.text.strip())
        if not demands:
            raise ValueError("at least one demand is needed")
        return demands[:MAX_DEMANDS]


class DemandGrade(Lenient):
    """The grade of one demand."""

    demand: int = Field(description="number of the demand")
    why: str = Field("", description="what the patched code does for it, step by step, in one or two sentences")
    quote: str = Field("", description="the line of the patch or the code that decides")
    grade: Grade
    missing: str = Field("", description="only with cannot_tell: the code that decides, `name` or `name in path`")


class RubricReply(Lenient):
    """The reply to the second question."""

    grades: tuple[DemandGrade, ...] = Field(description="one grade for each demand")
    regressions: tuple[str, ...] = Field((), description="what worked before and does not with the patch")
    p_behaviour: Chance = Field(
        None, description="chance in percent that something stated or implied is not met, or something else breaks"
    )
    p_form: Chance = Field(None, description="chance in percent that tests fail only because of a guess")


def missing_code(reply: RubricReply) -> tuple[str, ...]:
    """Return the phrases that name the code without which a demand cannot be graded."""
    phrases = (grade.missing.strip() for grade in reply.grades if grade.grade == "cannot_tell")
    return tuple(dict.fromkeys(filter(None, phrases)))


def rubric_verdict(
    demands: Sequence[Demand], reply: RubricReply, issue: int, config: VerifyConfig, code: str
) -> OutputVerdict:
    """Return the verdict. The chance that the behaviour is wrong decides; a guess that is missed does not.

    A quote that is not in ``code``, which the question showed, is left out.
    """
    grades = {grade.demand: grade for grade in reversed(reply.grades)}
    ungraded = DemandGrade(demand=0, grade="cannot_tell", why="it was not graded")
    lines = squeeze_lines(without_margin(code))
    graded: list[GradedDemand] = []
    for number, demand in enumerate(demands, start=1):
        grade = grades.get(number, ungraded).model_dump(exclude={"demand"})
        if not all(line in lines for line in bare(without_margin(grade["quote"])).split("\n")):
            grade["quote"] = ""
        graded.append(GradedDemand(text=demand.text, basis=demand.basis, **grade))
    label = _label(graded, reply)
    return OutputVerdict(
        issue=issue,
        label=label,
        bounced=bounces(label, OutputLabel(config.bounce_at), reply.p_behaviour, config.bounce_above),
        p_bounce=reply.p_behaviour,
        p_form=reply.p_form,
        line="label" if reply.p_behaviour is None else "p_bounce",
        explanation="\n\n".join(f"{demand.text}: {demand.word}. {demand.why}".strip() for demand in graded),
        covered=tuple(demand.text for demand in graded if demand.grade == "met"),
        missing=tuple(demand.text for demand in graded if demand.grade == "not_met" and demand.basis != "guess"),
        regressions=_distinct(reply.regressions),
        demands=tuple(graded),
    )


def _label(graded: Sequence[GradedDemand], reply: RubricReply) -> OutputLabel:
    """Return the label on the side of the threshold that the chance, else the grades, give."""
    firm_grades = [demand.grade for demand in graded if demand.basis != "guess"]
    fails = "not_met" in firm_grades if reply.p_behaviour is None else reply.p_behaviour >= 50
    if fails:
        return OutputLabel.BROAD_MISSING_KEY_ASPECTS if "met" in firm_grades else OutputLabel.INCORRECT
    precise = not _distinct(reply.regressions) and all(grade == "met" for grade in firm_grades)
    return OutputLabel.CORRECT_AND_PRECISE if precise else OutputLabel.CORRECT_BUT_INCOMPLETE


def code_before(diff: Diff, sides: Sides | None, budget: int) -> str:
    """Return the code that a patch changes, as it was: the functions around its hunks, else the old lines."""
    parts: list[str] = []
    for file in diff.files:
        old = {line.old: line.text for hunk in file.hunks for line in hunk.lines if line.old is not None}
        text = sides.before(file) if sides is not None and old else None
        if text is not None:
            old |= _functions_around(old, text, file.old_path or file.path)
        rows = [f"=== {show(file.old_path or file.path)}"]
        previous = 0
        for number in sorted(old):
            if previous and number > previous + 1:
                rows.append("...")
            rows.append(f"{number}  {show(old[number])[:400]}")
            previous = number
        part = "\n".join(rows)
        if old and estimate(part) <= budget:
            budget -= estimate(part)
            parts.append(part)
    return "\n\n".join(parts)


def _functions_around(numbers: Collection[int], text: str, path: str) -> dict[int, str]:
    """Return the lines, by number, of the functions around these lines of a file, except of very long ones."""
    source, functions = text.split("\n"), definitions(text, path)
    lines: dict[int, str] = {}
    for function in {enclosing(functions, number, number) for number in numbers}:
        if function is not None and function.last - function.first < MAX_FUNCTION:
            last = min(function.last, len(source))
            lines |= {number: source[number - 1] for number in range(function.first, last + 1)}
    return lines


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
    """Return True if the description of a large change is a single line at most.

    Comments, headings, check boxes and trailers do not count.
    """
    lines = [_FENCE.sub("", line.strip()).strip() for line in HTML_COMMENT.sub("", pull.body).splitlines()]
    lines = [line for line in lines if line and not _FORM.match(line)]
    changed = sum(
        file.added + file.removed for file in diff.files if not is_test(file.path) and skip_reason(file) is None
    )
    return changed >= LARGE and len(lines) <= 1 and len("".join(lines)) <= ONE_LINE


def description_verdict(reply: DescriptionReply, config: VerifyConfig) -> OutputVerdict | None:
    """Return the verdict; None if the model finds no claim. A change that is not described never bounces alone."""
    claims = [claim for claim in reply.claims if claim.text.strip()][:MAX_POINTS]
    if not claims:
        return None
    unmet = tuple(claim.text for claim in claims if claim.implemented == "no")
    implemented = tuple(claim.text for claim in claims if claim.implemented == "yes")
    fails = bool(unmet) if reply.p_bounce is None else reply.p_bounce >= 50
    if fails:
        label = OutputLabel.BROAD_MISSING_KEY_ASPECTS if implemented else OutputLabel.INCORRECT
    else:
        precise = len(implemented) == len(claims) and not reply.unsaid
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
        covered=implemented,
        missing=unmet,
        unsaid=tuple(dict.fromkeys(filter(None, map(str.strip, reply.unsaid))))[:MAX_POINTS],
    )
