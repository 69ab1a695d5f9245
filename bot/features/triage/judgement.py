"""The reply to the question about an issue, and the verdict at the maintainers' threshold. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from bot.core.config import VAGUE_FROM, TriageConfig
from bot.core.frozen import Frozen, Lenient
from bot.core.subjects import Issue
from bot.features.shared.labels import Chance, InputLabel, agreeing, bounces, tidy_label

#: Details that an issue can lack, in the order in which they are named.
Missing = Literal[
    "steps to reproduce",
    "expected result",
    "actual result",
    "version",
    "minimal example",
    "error text",
    "name of the option",
    "output format",
    "decision between alternatives",
]

MAX_QUESTIONS = 3


class OpenPoint(Lenient):
    """A question to the author. One that was recorded as plain text counts as blocking."""

    question: str = Field(description="one short question that the author can answer")
    blocking: bool = Field(description="true only where different answers would lead to different work")

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return {"question": value, "blocking": True} if isinstance(value, str) else value


class PaperInputReply(Lenient):
    """The reply to the paper's question: the paper's two fields in its order (BouncerBench, III.B)."""

    explanation: str = Field(description="why you choose the label")
    label: Annotated[InputLabel, BeforeValidator(tidy_label)]


class InputReply(Lenient):
    """The model's reply. The explanation comes before the label (BouncerBench, III.B)."""

    explanation: str = Field(description="what is clear, what is not, and what would have to be guessed")
    open_points: tuple[OpenPoint, ...] = Field(
        (), description="what the text leaves open, at most four, most important first; empty where nothing is"
    )
    missing: tuple[Missing, ...] = Field((), description="what it needs and does not have; often nothing")
    p_bounce: Chance = Field(
        None, description="chance in percent that the issue deserves one of the last two labels"
    )
    label: Annotated[InputLabel, BeforeValidator(tidy_label)]


class TranslatedReply(InputReply):
    """The reply if the questions are written in the issue's own language."""

    language: str = Field("en", description="ISO 639-1 code of the language in which the issue is written")


class BriefReply(InputReply):
    """The reply if a brief is written for issues that are ready for work."""

    request: str = Field(
        "", description="what is asked for, as a task for the person who does the work: one to three sentences"
    )


class TranslatedBriefReply(BriefReply, TranslatedReply):
    """The same, if the questions are written in the issue's own language."""


def reply_schema(config: TriageConfig) -> type[PaperInputReply] | type[InputReply]:
    """Return the shape of the reply to the question of ``config``."""
    if config.prompt == "paper":
        return PaperInputReply
    if config.brief:
        return TranslatedBriefReply if config.language == "auto" else BriefReply
    return TranslatedReply if config.language == "auto" else InputReply


class InputVerdict(Frozen):
    """The verdict on an issue, and the questions to its author."""

    label: InputLabel
    bounced: bool
    p_bounce: int | None
    explanation: str
    questions: tuple[str, ...]
    missing: tuple[Missing, ...]
    language: str = Field("en", description="the language of the questions")
    marked_by: str = Field("", description="the maintainer who asked for details by setting the label")
    request: str = Field("", description="what is asked for, only with `triage.brief`")


class EarlierQuestions(Frozen):
    """Questions of maintainers on an earlier issue."""

    title: str
    questions: str


#: What an issue is meant to be.
Kind = Literal["question", "tracking", "form", "plain"]

_QUESTION = re.compile(r"\s*\[?(?:question|q|support)\s*[\]:]", re.IGNORECASE)
_TRACKING = re.compile(r"\s*\[?(?:tracking|meta|epic|umbrella|roadmap)(?:\s+issue)?\s*[\]:]", re.IGNORECASE)
_TASKS = re.compile(r"^[-*] \[[ xX]\] +(?:\S*#\d+|https?://\S+/(?:issues|pull)/\d+)", re.MULTILINE)
#: How GitHub renders the fields of an issue form, and a field that was left empty.
_HEADINGS = re.compile(r"^### \S", re.MULTILINE)
_EMPTY = "_No response_"


def kind(issue: Issue) -> Kind:
    """Return what an issue is meant to be, by its type, labels, title and headings."""
    names = {issue.type.lower(), *map(str.lower, issue.labels)}
    if names & {"question", "support"} or _QUESTION.match(issue.title):
        return "question"
    if names & {"epic", "tracking", "tracking issue", "initiative"} or _TRACKING.match(issue.title):
        return "tracking"
    if len(_TASKS.findall(issue.body)) >= 3:
        return "tracking"
    if issue.body.lstrip().startswith("### ") and (
        len(_HEADINGS.findall(issue.body)) >= 2 or _EMPTY in issue.body
    ):
        return "form"
    return "plain"


def kind_in_prompt(issue: Issue) -> Kind:
    """Return the kind that the model is told: a form whose fields are all filled in reads like any other text."""
    issue_kind = kind(issue)
    return "plain" if issue_kind == "form" and _EMPTY not in issue.body else issue_kind


def verdict(
    reply: InputReply | PaperInputReply,
    config: TriageConfig,
    answered_questions: Iterable[str] = (),
    marked_by: str = "",
) -> InputVerdict:
    """Return the verdict at the maintainers' threshold. Answered questions are not asked again.

    ``marked_by`` is a maintainer who says that details are missing: the issue bounces, and all open points are
    asked about.
    """
    if isinstance(reply, PaperInputReply):
        reply = InputReply(explanation=reply.explanation, label=reply.label)
    label = agreeing(reply.label, reply.p_bounce, VAGUE_FROM)
    by_model = bounces(label, InputLabel(config.bounce_at), reply.p_bounce, config.bounce_above)
    bounced = by_model or bool(marked_by)
    points = [point.question for point in reply.open_points if point.blocking or marked_by]
    return InputVerdict(
        label=label,
        bounced=bounced,
        p_bounce=reply.p_bounce,
        explanation=reply.explanation,
        questions=_new_questions(points, answered_questions) if bounced else (),
        missing=tuple(dict.fromkeys(reply.missing)) if bounced else (),
        language=reply.language.lower()[:2] if isinstance(reply, TranslatedReply) else config.language,
        marked_by=marked_by,
        request=reply.request if isinstance(reply, BriefReply) else "",
    )


def _new_questions(points: Sequence[str], answered_questions: Iterable[str]) -> tuple[str, ...]:
    """Return the questions that were not answered before, without repetitions."""
    earlier_words = [_words(question) for question in answered_questions]
    questions: list[str] = []
    for point in points:
        words = _words(point)
        # Four fifths of shared words (Jaccard) make two questions the same.
        if not words or any(len(words & earlier) >= 0.8 * len(words | earlier) for earlier in earlier_words):
            continue
        earlier_words.append(words)
        questions.append(" ".join(point.split()))
    return tuple(questions[:MAX_QUESTIONS])


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))
