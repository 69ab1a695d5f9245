"""Bug-reproducing tests: draft one for a reported bug, run it on the default branch, offer it or abstain.

On ``/bouncer reproduce`` by someone with triage permission; by itself only where the repository asks for it, for
issues that triage found clear enough and that carry the configured label. Each text is tried once by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bot import events
from bot.actions import Action, Decision, OpenDraftPull, SetLabels, UpsertComment
from bot.bouncers import memory
from bot.bouncers.speaker import caveat
from bot.commands import may, read
from bot.domain import Issue
from bot.errors import ForgeError, ModelError, NotRecorded, SandboxError
from bot.events import Event
from bot.reproduce import evidence, texts, workshop
from bot.reproduce.attempt import Reproduction
from bot.reproduce.command import TestCommand
from bot.reproduce.pipeline import Options
from bot.reproduce.report import Report, read_report
from bot.reproduce.run import Author, reproduce_in
from bot.reproduce.setup import SetupFailed
from bot.reproduce.texts import Place
from bot.services import Services

Cause = (
    events.IssueOpened | events.IssueEdited | events.IssueReopened | events.IssueLabeled | events.CommentCreated
)


def handle(event: Event, services: Services) -> Decision | None:
    """Try to reproduce the issue of an event; None where the event gives no cause to."""
    if not isinstance(event, Cause) or event.issue.is_pull_request or event.sender.is_bot:
        return None
    past = services.history.decisions(event.subject.key, "triage", "reproduce", "commands")
    asked = _asked_for(event, services)
    if not asked and not _by_itself(event, services, past):
        return None
    work = _Work(event, services, explicitly=asked)
    config = services.config.reproduce
    if config.mode == "off":
        return work.not_run("skipped:off", "drafting tests is switched off here (`reproduce.mode`)")
    if event.issue.state == "closed" and not asked:
        return None
    if services.sandbox is None:
        return work.not_run("sandbox", "the operator of this bot has switched the sandbox off")
    try:
        command = TestCommand.parse(config.command)
    except ValueError as error:
        return work.not_run("input", f"`reproduce.command` cannot be used: {error}")
    try:
        return work.attempt(command)
    except ModelError as error:
        return work.not_run(f"model:{error.reason}", f"the model gave no usable answer ({error.reason})")
    except SetupFailed as error:
        return work.not_run("setup", str(error))
    except SandboxError as error:
        return work.not_run("sandbox", f"the sandbox failed: {error}")


def _asked_for(event: Cause, services: Services) -> bool:
    """Whether the comment says ``/bouncer reproduce`` and comes from someone who may."""
    if not isinstance(event, events.CommentCreated):
        return False
    if not any(command.word == "reproduce" for command in read(event.comment.body)):
        return False
    return may("reproduce", services.forge.permission(event.sender.login), is_author=False)


def _by_itself(event: Cause, services: Services, past: Sequence[Decision]) -> bool:
    """Whether the repository wants this issue tried without being asked, and nobody has tried this text yet."""
    config = services.config.reproduce
    if config.mode == "off" or not config.automatic or memory.paused(past):
        return False
    if config.label.lower() not in {label.lower() for label in event.issue.labels}:
        return False
    triaged = memory.last_verdict([each for each in past if each.kind == "triage"])
    clear = (
        triaged is not None and not memory.bounced(triaged) and triaged.subject.revision == event.issue.revision
    )
    tried = any(each.kind == "reproduce" and each.subject.revision == event.issue.revision for each in past)
    return (clear or memory.accepted(past)) and not tried


class _Work:
    """One issue at hand."""

    def __init__(self, event: Cause, services: Services, *, explicitly: bool) -> None:
        self.subject, self.issue = event.subject, event.issue
        self.services, self.explicitly = services, explicitly

    def attempt(self, command: TestCommand) -> Decision:
        """Draft, run and choose on the head of the default branch."""
        branch = self.services.repository.default_branch
        place = Place(repository=self.services.repository, branch=branch, sha=self.services.forge.head(branch))
        config = self.services.config.reproduce
        author = Author(self.services.model, self.services.prompts, self.subject.key)
        options = Options(samples=config.samples, threshold=config.threshold, pick=config.pick)
        fetch = self._fetch if config.examples == "repository" else None
        with TemporaryDirectory(prefix="bouncer-") as folder:
            self.services.forge.checkout(place.sha, Path(folder))
            with workshop.harness(self.services, Path(folder), command) as harness:
                result = reproduce_in(Path(folder), self._report(), author, harness, options, fetch=fetch)
        return self._decision(result, command, place)

    def not_run(self, word: str, why: str) -> Decision:
        """The explicit abstention; people hear of it only where one of them asked."""
        place = Place(repository=self.services.repository, branch=self.services.repository.default_branch, sha="")
        body = texts.not_run(why, place)
        return Decision(
            kind="reproduce",
            subject=self.subject,
            actions=(self._comment(body),) if self.explicitly else (),
            abstained=word,
            reason=why,
            evidence={"state": "not run"},
        )

    def _decision(self, result: Reproduction, command: TestCommand, place: Place) -> Decision:
        if result.state == "not run":
            return self.not_run("sandbox", result.reason).model_copy(
                update={"usage": result.usage, "model": result.model}
            )
        test = evidence.stored(result, command, place.branch, place.sha)
        return Decision(
            kind="reproduce",
            subject=self.subject,
            verdict=result.state,
            actions=self._offer(result, place) if result.best else self._in_vain(result, place),
            reason=result.reason or f"{result.shown[0].agreeing} of {result.drafted} drafts agree",
            evidence={
                **evidence.record(result, test),
                "prompt": self.services.prompts.hash("reproduce.draft"),
                "config": self.services.config.hash,
            },
            usage=result.usage,
            model=result.model,
        )

    def _offer(self, result: Reproduction, place: Place) -> tuple[Action, ...]:
        config, note = self.services.config.reproduce, caveat(result.model)
        label = SetLabels(number=self.issue.number, add=(config.reproduced_label,))
        if config.mode == "comment":
            return self._comment(texts.reproduced(result, place, note)), label
        return self._pull(result, place, note), label

    def _pull(self, result: Reproduction, place: Place, note: str) -> OpenDraftPull:
        best = result.best
        assert best is not None
        return OpenDraftPull(
            number=self.issue.number,
            base=place.branch,
            base_sha=place.sha,
            branch=f"bouncer/reproduce-{self.issue.number}",
            path=best.candidate.path,
            content=best.candidate.content,
            title=texts.pull_title(self.issue.number, self.issue.title),
            body=texts.pull_body(result, place, self.issue.number, note),
        )

    def _in_vain(self, result: Reproduction, place: Place) -> tuple[Action, ...]:
        """Nobody is told what they did not ask for; an older comment that says otherwise is brought up to date."""
        body = texts.not_reproduced(result, place, caveat(result.model))
        return (self._comment(body, only_edit=not self.explicitly),)

    def _comment(self, body: str, *, only_edit: bool = False) -> UpsertComment:
        return UpsertComment(task="reproduce", number=self.issue.number, body=body, only_edit=only_edit)

    def _report(self) -> Report:
        """The issue, and what its author said about it since."""
        answers = [
            comment.body
            for comment in self.services.forge.comments(self.issue.number)
            if comment.author.id == self.issue.author.id and comment.body.strip() and not read(comment.body)
        ]
        body = "\n\n".join([self.issue.body, *(f"The author added:\n\n{answer}" for answer in answers)])
        return read_report(self.issue.title, body, self.issue.number)

    def _fetch(self, number: int) -> Report | None:
        """An earlier issue of the repository, for an example; None for what is none."""
        try:
            issue: Issue = self.services.forge.issue(number)
        except NotRecorded:
            raise
        except ForgeError:
            return None
        return None if issue.is_pull_request else read_report(issue.title, issue.body, number)
