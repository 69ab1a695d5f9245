"""The question loop: triage reads an issue, asks, a model answers as its author would, and triage reads again.

Everything is the live handler's own, with a snapshot of the issue in place of GitHub.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import Field

from bot.core.actions import Decision, Task, Usage
from bot.core.config import RepoConfig
from bot.core.errors import ModelError
from bot.core.events import CommentCreated, RepositoryEvent
from bot.core.frozen import Frozen, Lenient
from bot.core.subjects import Comment
from bot.features.services import NoHistory
from bot.features.triage.record import TriageRecord
from bot.github.offline import AUTHOR, REPOSITORY, Snapshot, issue_opened, split_title
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt, T
from evaluation.run.staging import Heard, Setup, Staged, judge


class Answer(Lenient):
    """The author's answer."""

    answer: str = Field(description="a comment below the issue")


class Clarified(Frozen):
    """A report after triage had the chance to ask."""

    flagged: bool = Field(description="triage bounced the report as it was")
    label: str = ""
    p_bounce: int | None = None
    questions: tuple[str, ...] = ()
    answer: str = ""
    cleared: bool = Field(False, description="triage accepted it once the answer was there")
    report: str = Field(description="the report, with the answer below it if there was one")


class Reading(NamedTuple):
    """One verdict of triage, with what it records."""

    decision: Decision
    record: TriageRecord


class _Past(NoHistory):
    """The one decision that went before."""

    def __init__(self, *past: Decision) -> None:
        self._past = past

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        return tuple(decision for decision in self._past if decision.kind in kinds or not kinds)


@dataclass
class QuestionLoop:
    """Lets triage read the reports of one task and ``author`` answer, with the prompt of that name.

    Every method raises ModelError if a model fails, so that there is no verdict or no answer, and BudgetExceeded
    or Postponed if a question was not asked. ``usage`` adds up, and so does
    ``lost``, its part that no cache of replies keeps.
    """

    subject: str
    triage: Model
    author: Model
    live_prompts: Prompts
    prompts: Prompts
    prompt: str = "bloom.answer"
    config: RepoConfig = field(default_factory=RepoConfig)
    usage: Usage = field(default_factory=Usage)
    lost: Usage = field(default_factory=Usage)

    def read(self, report: str) -> Reading:
        issue = issue_opened(*split_title(report))
        return self._decide(issue.event, issue.snapshot, NoHistory())

    def clarify(self, report: str, findings: str) -> Clarified:
        """``findings``: what the author knows beside the report, for the answers only."""
        first = self.read(report)
        record = first.record
        clarified = Clarified(
            flagged=record.bounced,
            label=record.label,
            p_bounce=record.p_bounce,
            questions=record.questions,
            report=report,
        )
        if not clarified.questions:
            return clarified
        variables = {"report": report, "known": findings, "questions": clarified.questions}
        answer = self.ask(self.prompt, self.author, Answer, **variables).answer.strip()
        issue = issue_opened(*split_title(report))
        comment = Comment(id=1, body=answer, author=AUTHOR)
        reply = CommentCreated(sender=AUTHOR, repository=REPOSITORY, issue=issue.event.issue, comment=comment)
        comments = {issue.event.issue.number: (comment,)}
        after = self._decide(
            reply, issue.snapshot.model_copy(update={"comments": comments}), _Past(first.decision)
        )
        text = f"{report.rstrip()}\n\nThe author added:\n\n{answer}\n"
        return clarified.model_copy(update={"answer": answer, "cleared": not after.record.bounced, "report": text})

    def ask(self, prompt_name: str, model: Model, schema: type[T], **variables: object) -> T:
        counting = Heard(model, self.subject)
        system, user = self.prompts.render(prompt_name, **variables)
        prompt = Prompt(purpose=prompt_name.replace(".", "-"), system=system, user=user, subject=self.subject)
        try:
            return counting.complete(prompt, schema).value
        finally:
            self.usage += counting.usage
            self.lost += counting.lost

    def _decide(self, event: RepositoryEvent, snapshot: Snapshot, history: NoHistory) -> Reading:
        staged = Staged(self.subject, event, snapshot, history=history)
        outcome = judge(staged, Setup(self.triage, self.config, self.live_prompts, "triage"))
        self.usage += outcome.usage
        self.lost += outcome.lost or Usage()
        decision = outcome.decision
        if outcome.error or decision is None or not isinstance(decision.record, TriageRecord):
            error = ModelError(f"triage has no verdict: {outcome.error}")
            error.usage = outcome.lost
            raise error
        return Reading(decision, decision.record)
