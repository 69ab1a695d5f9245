"""Earlier decisions, read back from our comments and labels on GitHub: the history of a run without a database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from bot.core import events
from bot.core.actions import Decision, SetLabels, SubmitReview, Task, UpsertComment
from bot.core.events import CommentCreated
from bot.core.subjects import Comment, Issue, ReviewComment, Subject
from bot.features.commands import handler as commands
from bot.features.commands.record import CommandsRecord
from bot.features.review.record import ReviewRecord
from bot.features.services import NoHistory, Services
from bot.features.shared.findings import Finding
from bot.features.shared.labels import InputLabel
from bot.features.shared.taxonomy import Category, Impact, Severity
from bot.features.triage.record import TriageRecord
from bot.github.protocol import Forge
from bot.pipeline.body import Seal, without_marker

_LABEL = re.compile("|".join(InputLabel))
_SEVERITY = re.compile(r"^Severity: (low|medium|high)\.", re.MULTILINE)


class StandingHistory(NoHistory):
    """Implements ``bot.features.services.History`` for one issue or pull request.

    Our own comments and reviews count, by account and signed marker, and commands of people with rights. Authors
    give no commands: they could delete the comments by which their commands are counted. What defect class an
    earlier finding had is not known: it is recognised by its fingerprint alone.
    """

    def __init__(self, event: events.RepositoryEvent, services: Services, marker_key: bytes) -> None:
        self._event = event
        self._seal = Seal(repository=services.forge.repository, number=event.number or 0, key=marker_key)
        self._services = replace(services, history=NoHistory())

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        if subject != self._event.subject.key or not self._event.number:
            return ()
        readers = {
            "triage": self._triage,
            "commands": self._commands,
            "review": self._reviews,
            "why": self._explanations,
        }
        return tuple(
            decision for kind, read in readers.items() if not kinds or kind in kinds for decision in read()
        )

    def commands(self, repository: str, since: datetime) -> tuple[Decision, ...]:
        """Return the commands on this subject."""
        return tuple(
            decision
            for decision in self._commands()
            if isinstance(decision.record, CommandsRecord) and decision.record.at >= since.timestamp()
        )

    @property
    def _forge(self) -> Forge:
        return self._services.forge

    def _subject(self, revision: str = "") -> Subject:
        return Subject(repository=self._forge.repository, number=self._event.number, revision=revision)

    def _conversation(self) -> tuple[Comment, ...]:
        return self._forge.comments(self._event.number)

    def _issue(self) -> Issue:
        return (
            self._event.issue if isinstance(self._event, CommentCreated) else self._forge.issue(self._event.number)
        )

    def _triage(self) -> Iterator[Decision]:
        """Yield the bounce of our sticky comment if the label is still set."""
        me, label = self._forge.identity().id, self._services.config.triage.label
        conversation = self._conversation()
        for comment in conversation:
            sign = self._sign(comment.body)
            if comment.author.id != me or sign is None or sign[0] != "triage":
                continue
            folded = comment.body.partition("</summary>")[2].partition("</details>")[0]
            if not folded or label.lower() not in map(str.lower, self._issue().labels):
                return
            questions = [
                line[2:] for line in comment.body.partition("<details>")[0].split("\n") if line[:2] == "- "
            ]
            number = self._event.number
            # If a maintainer set the label, the footer names no verdict.
            label_match = _LABEL.search(folded.rpartition("\n\n")[2])
            yield Decision(
                kind="triage",
                subject=self._subject(),
                verdict=label_match[0] if label_match else InputLabel.VAGUE,
                actions=(
                    UpsertComment(task="triage", number=number, body=without_marker(comment.body)),
                    SetLabels(number=number, add=(label,)),
                ),
                record=TriageRecord(
                    bounced=True,
                    explanation=folded.rpartition("\n\n")[0].strip(),
                    questions=tuple(questions),
                    answers=tuple(earlier.id for earlier in conversation if earlier.id < comment.id),
                ),
            )
            return

    def _commands(self) -> Iterator[Decision]:
        issue = None
        for comment in self._conversation():
            if comment.author.is_bot or not self._services.commands.read(comment.body):
                continue
            issue = issue or self._issue()
            clock = partial(_when, comment, self._services)
            event = CommentCreated(
                sender=comment.author, repository=self._services.repository, issue=issue, comment=comment
            )
            decision = commands.handle(event, replace(self._services, clock=clock))
            if decision is not None:
                yield decision
        # An author can delete a command, but not our answer to it.
        comment_ids = {str(comment.id) for comment in self._conversation()}
        for about in self._answers("commands"):
            comment_id = about.partition("-")[0]
            if comment_id not in comment_ids:
                answer = UpsertComment(task="commands", number=self._event.number, body="", about=about)
                yield Decision(
                    kind="commands",
                    subject=self._subject(),
                    actions=(answer,),
                    abstained="deleted",
                    record=CommandsRecord(comment=int(comment_id or 0)),
                )

    def _reviews(self) -> Iterator[Decision]:
        if isinstance(self._event, CommentCreated) and not self._event.issue.is_pull_request:
            return
        if isinstance(self._event, events.IssueEvent):
            return
        me, number = self._forge.identity().id, self._event.number
        posted = [
            _finding(comment, self._sign(comment.body))
            for comment in self._forge.review_comments(number)
            if comment.author.id == me
        ]
        for review in self._forge.reviews(number):
            sign = self._sign(review.body)
            if review.author.id == me and sign is not None and sign[0] == "review":
                yield Decision(
                    kind="review",
                    subject=self._subject(f"sha:{sign[1]}"),
                    verdict="defects",
                    actions=(SubmitReview(number=number, commit_id=sign[1], comments=()),),
                    record=ReviewRecord(posted=tuple(finding for finding in posted if finding)),
                )

    def _explanations(self) -> Iterator[Decision]:
        """Yield the answers to ``/bouncer why``, except to this event."""
        comment = getattr(self._event, "comment", None)
        for about in self._answers("why"):
            if comment is None or about != str(comment.id):
                yield Decision(kind="why", subject=self._subject(), verdict="answered")

    def _answers(self, task: Task) -> tuple[str, ...]:
        """Return the ids of the comments that we answered, which may be deleted since."""
        on_pull = not isinstance(self._event, events.IssueEvent) and (
            not isinstance(self._event, CommentCreated) or self._event.issue.is_pull_request
        )
        threads = self._forge.review_comments(self._event.number) if on_pull else ()
        comments: tuple[Comment | ReviewComment, ...] = (*self._conversation(), *threads)
        me = self._forge.identity().id
        signs = (self._sign(comment.body) for comment in comments if comment.author.id == me)
        return tuple(dict.fromkeys(sign[1] for sign in signs if sign is not None and sign[0] == task))

    def _sign(self, body: str) -> tuple[str, str] | None:
        """Return (task, extra) of a marker of ours; without a key to sign with, none counts."""
        return self._seal.read(body) if self._seal.key else None


def _when(comment: Comment, services: Services) -> datetime:
    return comment.created_at or services.clock()


def _finding(comment: ReviewComment, sign: tuple[str, str] | None) -> Finding | None:
    """Return the finding of one of our review comments, without its line: the code may have changed."""
    if sign is None or sign[0] != "review" or not sign[1]:
        return None
    severity = _SEVERITY.search(comment.body)
    return Finding(
        path=comment.path,
        line=None,
        code=(),
        fingerprint=sign[1],
        comment=comment.body.partition("\n\n")[0],
        category=Category.CODING,
        impact=Impact.FUNCTIONAL_SUITABILITY,
        severity=Severity(severity[1]) if severity else Severity.MEDIUM,
    )
