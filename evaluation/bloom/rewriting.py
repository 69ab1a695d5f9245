"""Reports told otherwise: in other words, in another language (section 3.2), or cleared up by asking (3.6).

A model rewrites a report, another (or the same) says whether the meaning held, and it is redone until it does.
What can be checked without a model is checked first: code, names and traces must stay as they were. For the layer
Create, which the paper leaves for systems that can ask, the app's own triage handler asks: the issue is opened,
bounced with questions, answered as its author would, and read again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from bot import router
from bot.app import now
from bot.core import events
from bot.core.actions import Decision, Task
from bot.core.config import RepoConfig
from bot.core.errors import ModelError
from bot.core.frozen import Frozen, Lenient
from bot.core.subjects import Comment
from bot.features.services import NoHistory, Services
from bot.features.shared.history import bounced
from bot.features.triage.record import TriageRecord
from bot.github.offline import AUTHOR, REPOSITORY, Opened, ReplayForge, issue_opened, split_title
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt
from evaluation.bloom import LANGUAGE

Variant = Literal["rephrased", "translated"]

#: Tries until a text is given up: the paper says "until the verification passed".
TRIES = 5

_FENCED = re.compile(r"^(```|~~~)[^\n]*\n(.*?)^\1", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


class Rewritten(Lenient):
    """The report, written anew."""

    report: str = Field(description="the whole report, its title on the first line")


class Verified(Lenient):
    """A comparison of two texts."""

    differences: str = Field("", description="what the second text adds, leaves out or says otherwise")
    same: bool = Field(description="whether a developer would understand the very same bug from both")


class NotHeld(ModelError):
    """No rewritten text kept the meaning in ``TRIES`` tries."""


@dataclass(frozen=True)
class Rewriter:
    """Rewrites reports."""

    writer: Model
    judge: Model
    prompts: Prompts
    language: str = LANGUAGE

    def rewrite(self, report: str, variant: Variant, subject: str = "") -> str:
        """The report in other words, verified. Raises NotHeld, and ModelError where a model fails."""
        problem = ""
        for attempt in range(TRIES):
            text = self._written(report, variant, subject, attempt, problem)
            problem = lost(report, text) or self._judged(report, text, subject, attempt)
            if not problem:
                return text
        raise NotHeld(f"{subject}: no {variant} text kept its meaning in {TRIES} tries; the last: {problem}")

    def _written(self, report: str, variant: Variant, subject: str, attempt: int, problem: str) -> str:
        name = {"rephrased": "bloom.rephrase", "translated": "bloom.translate"}[variant]
        system, user = self.prompts.render(name, report=report, language=self.language, problem=problem)
        prompt = Prompt(
            purpose=f"bloom-{variant}", system=system, user=user, subject=subject, temperature=0.7, sample=attempt
        )
        reply = self.writer.complete(prompt, Rewritten)
        return reply.value.report.strip()

    def _judged(self, report: str, text: str, subject: str, attempt: int) -> str:
        system, user = self.prompts.render("bloom.same", report=report, text=text)
        prompt = Prompt(purpose="bloom-same", system=system, user=user, subject=subject, sample=attempt)
        reply = self.judge.complete(prompt, Verified)
        return "" if reply.value.same else reply.value.differences or "the meaning changed"


def lost(report: str, text: str) -> str:
    """Which code of the report the text does not hold word for word, as a sentence; empty if all is there."""
    if " ".join(text.split()) == " ".join(report.split()):
        return "the text was not changed at all"
    squeezed = " ".join(text.split())
    for piece in (*(body for _, body in _FENCED.findall(report)), *_INLINE.findall(report)):
        if " ".join(piece.split()) not in squeezed:
            return f"this code must stay as it is: {piece.strip()[:300]}"
    return ""


class Answered(Lenient):
    """The author's answer."""

    answer: str = Field(description="a comment below the issue")


class Clarified(Frozen):
    """A report after triage had the chance to ask."""

    flagged: bool = Field(description="triage bounced the report as it was")
    questions: tuple[str, ...] = ()
    answer: str = ""
    cleared: bool = Field(False, description="triage accepted it once the answer was there")
    report: str = Field(description="the report, with the answer below it where there was one")


class _Past(NoHistory):
    """The one decision that went before."""

    def __init__(self, *past: Decision) -> None:
        self._past = past

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        return tuple(decision for decision in self._past if decision.kind in kinds or not kinds)


@dataclass(frozen=True)
class Clarifier:
    """Lets triage read reports and an answering model reply."""

    triage: Model
    author: Model
    live_prompts: Prompts
    prompts: Prompts
    config: RepoConfig = field(default_factory=RepoConfig)

    def clarify(self, report: str, findings: str, subject: str = "") -> Clarified:
        """``known``: what was found out about the bug later (hints, the fix), for the author's answers only.

        Raises ModelError if a model fails.
        """
        opened = issue_opened(*split_title(report))
        first = self._decide(opened.event, opened, NoHistory())
        record = first.record if isinstance(first.record, TriageRecord) else TriageRecord()
        questions = record.questions
        if not record.bounced or not questions:
            return Clarified(flagged=record.bounced, report=report)
        answer = self._answer(report, findings, questions, subject)
        second = self._decide(_said(opened, answer), _with_comment(opened, answer), _Past(first))
        return Clarified(
            flagged=True,
            questions=questions,
            answer=answer,
            cleared=second.verdict is not None and not bounced(second),
            report=f"{report.rstrip()}\n\nThe author added:\n\n{answer}\n",
        )

    def _decide(self, event: events.Event, opened: Opened[events.IssueOpened], history: NoHistory) -> Decision:
        services = Services(
            forge=ReplayForge(opened.snapshot),
            model=self.triage,
            sandbox=None,
            config=self.config,
            clock=now,
            history=history,
            repository=REPOSITORY,
            commands=router.SLASH_COMMANDS,
            prompts=self.live_prompts,
        )
        (decision,) = router.decide(event, services, only="triage")
        return decision

    def _answer(self, report: str, findings: str, questions: Sequence[str], subject: str) -> str:
        system, user = self.prompts.render("bloom.answer", report=report, known=findings, questions=questions)
        prompt = Prompt(purpose="bloom-answer", system=system, user=user, subject=subject)
        reply = self.author.complete(prompt, Answered)
        return reply.value.answer.strip()


def _comment(answer: str) -> Comment:
    return Comment(id=1, body=answer, author=AUTHOR)


def _said(opened: Opened[events.IssueOpened], answer: str) -> events.CommentCreated:
    return events.CommentCreated(
        sender=AUTHOR, repository=REPOSITORY, issue=opened.event.issue, comment=_comment(answer)
    )


def _with_comment(opened: Opened[events.IssueOpened], answer: str) -> Opened[events.IssueOpened]:
    number = opened.event.issue.number
    return opened._replace(snapshot=opened.snapshot.model_copy(update={"comments": {number: (_comment(answer),)}}))
