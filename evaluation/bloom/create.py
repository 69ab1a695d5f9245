"""Create: is an unclear report recognised, and does asking for what is missing help? (section 3.6)

The paper proposes the two rates and leaves them for systems that can ask. Here the app's own triage handler asks:
the issue is opened, bounced with questions, answered as its author would, and read again. What came of it goes
through ``bouncer-eval replay brt`` a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bot import router
from bot.app import now
from bot.core import events
from bot.core.actions import Decision, Task
from bot.core.config import RepoConfig
from bot.core.frozen import Frozen
from bot.core.model import Comment
from bot.forge.offline import AUTHOR, REPOSITORY, OpenedIssue, issue_opened, split_title
from bot.forge.replay import ReplayForge
from bot.models.protocol import Model, Prompt
from bot.prompts import Prompts
from bot.services import NoHistory, Services


class Answered(BaseModel):
    """What the author answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")

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
        return tuple(each for each in self._past if each.kind in kinds or not kinds)


@dataclass(frozen=True)
class Clarifier:
    """Lets triage read reports and an answering model reply."""

    triage: Model
    author: Model
    live_prompts: Prompts
    prompts: Prompts
    config: RepoConfig = field(default_factory=RepoConfig)

    def clarify(self, report: str, known: str, subject: str = "") -> Clarified:
        """``known``: what was found out about the bug later (hints, the fix), for the author's answers only.

        Raises ModelError where a model fails.
        """
        opened = issue_opened(*split_title(report))
        first = self._decide(opened.event, opened, NoHistory())
        questions = tuple(map(str, first.evidence.get("questions", ())))
        if not first.evidence.get("bounced") or not questions:
            return Clarified(flagged=bool(first.evidence.get("bounced")), report=report)
        answer = self._answer(report, known, questions, subject)
        second = self._decide(_said(opened, answer), _with_comment(opened, answer), _Past(first))
        return Clarified(
            flagged=True,
            questions=questions,
            answer=answer,
            cleared=second.verdict is not None and not second.evidence.get("bounced"),
            report=f"{report.rstrip()}\n\nThe author added:\n\n{answer}\n",
        )

    def _decide(self, event: events.Event, opened: OpenedIssue, history: NoHistory) -> Decision:
        services = Services(
            forge=ReplayForge(opened.snapshot),
            model=self.triage,
            sandbox=None,
            config=self.config,
            clock=now,
            history=history,
            repository=REPOSITORY,
            prompts=self.live_prompts,
        )
        (decision,) = router.decide(event, services, only="triage")
        return decision

    def _answer(self, report: str, known: str, questions: Sequence[str], subject: str) -> str:
        system, user = self.prompts.render("bloom.answer", report=report, known=known, questions=questions)
        prompt = Prompt(purpose="bloom-answer", system=system, user=user, subject=subject)
        reply = self.author.complete(prompt, Answered)
        return reply.value.answer.strip()


def _comment(answer: str) -> Comment:
    return Comment(id=1, body=answer, author=AUTHOR)


def _said(opened: OpenedIssue, answer: str) -> events.CommentCreated:
    return events.CommentCreated(
        sender=AUTHOR, repository=REPOSITORY, issue=opened.event.issue, comment=_comment(answer)
    )


def _with_comment(opened: OpenedIssue, answer: str) -> OpenedIssue:
    number = opened.event.issue.number
    return opened._replace(snapshot=opened.snapshot.model_copy(update={"comments": {number: (_comment(answer),)}}))


class Detection(Frozen):
    """How unclear reports are recognised."""

    unclear: int
    clear: int
    unanswered: int = Field(description="reports without a verdict; they count as not flagged")
    rate: float | None = Field(description="ambiguity detection rate: share of unclear reports that were flagged")
    false_alarms: float | None = Field(
        description="share of clear reports that were flagged: the price of the rate"
    )


def detection(unclear: Mapping[str, bool], flagged: Mapping[str, bool]) -> Detection:
    """``unclear``: the ground truth by report. ``flagged``: whether triage bounced it; missing = no verdict."""
    hits = [flagged.get(report, False) for report, is_unclear in unclear.items() if is_unclear]
    alarms = [flagged.get(report, False) for report, is_unclear in unclear.items() if not is_unclear]
    return Detection(
        unclear=len(hits),
        clear=len(alarms),
        unanswered=sum(report not in flagged for report in unclear),
        rate=sum(hits) / len(hits) if hits else None,
        false_alarms=sum(alarms) / len(alarms) if alarms else None,
    )


class Improvement(Frozen):
    """What a clarification changes, over the reports that got one."""

    reports: int
    without: float | None = Field(description="%BRT without the clarification, 0 to 1")
    with_answer: float | None = Field(description="%BRT with it, 0 to 1")

    @property
    def points(self) -> float | None:
        """Reproduction improvement rate: the difference of the two, in shares."""
        return None if self.without is None or self.with_answer is None else self.with_answer - self.without

    def as_json(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json"), "points": self.points}


def improvement(
    without: Mapping[str, bool], with_answer: Mapping[str, bool], clarified: Sequence[str]
) -> Improvement:
    """Compare two runs over the reports that were clarified and that both runs tried."""
    both = [report for report in clarified if report in without and report in with_answer]
    return Improvement(
        reports=len(both),
        without=sum(without[report] for report in both) / len(both) if both else None,
        with_answer=sum(with_answer[report] for report in both) / len(both) if both else None,
    )
