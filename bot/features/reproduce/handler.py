"""Bug-reproducing tests: draft one for a reported bug, run it on the default branch, offer it or abstain.

On ``/bouncer reproduce`` by someone with triage permission; by itself only where the repository asks for it, for
issues that triage found clear enough and that carry the configured label. Each text is tried once by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.core import events
from bot.core.actions import Action, Decision, OpenDraftPull, SetLabels, UpsertComment, Usage
from bot.core.commands import Command
from bot.core.errors import BudgetExceeded, ForgeError, ModelError, SandboxError
from bot.core.events import Event
from bot.core.subjects import Issue, Subject
from bot.features.reproduce import texts
from bot.features.reproduce.texts import Place
from bot.features.services import Services
from bot.features.shared import history, stored_tests
from bot.features.shared.harness import prepared
from bot.features.shared.records import ReproduceRecord
from bot.features.shared.rights import asked_for
from bot.models.protocol import caveat
from bot.reproduction.attempt import Reproduction
from bot.reproduction.command import TestCommand
from bot.reproduction.drafting import Author
from bot.reproduction.pipeline import Options, reproduce_in
from bot.reproduction.report import Report, read_report
from bot.reproduction.setup import SetupFailed

Cause = events.IssueShown | events.IssueLabeled | events.CommentCreated


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Whether an event can give cause to; of comments only commands do, and answers of the author."""
    if not isinstance(event, Cause) or event.issue.is_pull_request or event.sender.is_bot:
        return False
    if not isinstance(event, events.CommentCreated):
        return True
    return event.by_author or bool(commands)


def handle(event: Event, services: Services) -> Decision | None:
    """Try to reproduce the issue of an event; None where the event gives no cause to."""
    if not isinstance(event, Cause):
        return None
    past = services.history.decisions(event.subject.key, "triage", "reproduce", "commands")
    asked = asked_for("reproduce", event, services) is not None
    if not asked and (event.issue.state == "closed" or not _by_itself(event, services, past)):
        return None
    reproducing = _Reproducing(event.subject, event.issue, services, explicitly=asked)
    if services.config.reproduce.mode == "off":
        return reproducing.not_run("skipped:off", "drafting tests is switched off here (`reproduce.mode`)")
    if services.sandbox is None:
        return reproducing.not_run("sandbox", "the operator of this bot has switched the sandbox off")
    try:
        return reproducing.attempt()
    except BudgetExceeded:
        # Said nowhere: the router records it, and the job is taken up again with the next budget.
        raise
    except ModelError as error:
        why = f"the model gave no usable answer ({error.reason})"
        return reproducing.not_run(f"model:{error.reason}", why, error.usage)
    except SetupFailed as error:
        return reproducing.not_run("setup", str(error))
    except SandboxError as error:
        return reproducing.not_run("sandbox", f"the sandbox failed: {error}")


def _by_itself(event: Cause, services: Services, past: Sequence[Decision]) -> bool:
    """Whether the repository wants this issue tried without being asked, and nobody has tried this text yet."""
    config = services.config.reproduce
    if config.mode == "off" or not config.automatic or history.paused(past):
        return False
    if config.label.lower() not in {label.lower() for label in event.issue.labels}:
        return False
    triaged = history.last_verdict([each for each in past if each.kind == "triage"])
    clear = (
        triaged is not None and not history.bounced(triaged) and triaged.subject.revision == event.issue.revision
    )
    tried = any(each.kind == "reproduce" and each.subject.revision == event.issue.revision for each in past)
    return (clear or history.accepted(past)) and not tried


def _report(issue: Issue, services: Services) -> Report:
    """The issue, and what its author said about it since."""
    answers = [
        comment.body
        for comment in services.forge.comments(issue.number)
        if comment.author.id == issue.author.id
        and comment.body.strip()
        and not services.commands.read(comment.body)
    ]
    body = "\n\n".join([issue.body, *(f"The author added:\n\n{answer}" for answer in answers)])
    return read_report(issue.title, body, issue.number)


def _earlier(services: Services, number: int) -> Report | None:
    """An earlier issue of the repository, for an example; None for what is none."""
    try:
        issue = services.forge.issue(number)
    except ForgeError:
        return None
    return None if issue.is_pull_request else read_report(issue.title, issue.body, number)


@dataclass(frozen=True)
class _Reproducing:
    """One issue that is tried, and how its people want to hear of it."""

    subject: Subject
    issue: Issue
    services: Services
    explicitly: bool
    """Somebody asked for it: then they are told what was tried in vain, too."""

    def attempt(self) -> Decision:
        """Draft, run and choose on the head of the default branch."""
        services, config = self.services, self.services.config.reproduce
        try:
            command = TestCommand.of_repository(config.command)
        except ValueError as error:
            return self.not_run("input", f"`reproduce.command` cannot be used: {error}")
        branch = services.repository.default_branch
        place = Place(repository=services.repository, branch=branch, sha=services.forge.head(branch))
        author = Author(services.model, services.prompts, self.subject.key)
        options = Options(samples=config.samples, threshold=config.threshold, pick=config.pick)
        fetch = partial(_earlier, services) if config.examples == "repository" else None
        report = _report(self.issue, services)
        with TemporaryDirectory(prefix="bouncer-") as folder:
            services.forge.checkout(place.sha, Path(folder))
            with prepared(services, Path(folder), command) as harness:
                result = reproduce_in(Path(folder), report, author, harness, options, fetch=fetch)
        return self._decided(result, command, place)

    def _decided(self, result: Reproduction, command: TestCommand, place: Place) -> Decision:
        if result.state == "not run":
            found = self.not_run(result.abstained or "sandbox", result.reason, result.usage)
            return found.model_copy(update={"model": result.model})
        test = stored_tests.stored(result, command, place.branch, place.sha)
        return Decision(
            kind="reproduce",
            subject=self.subject,
            verdict=result.state,
            actions=self._offer(result, place) if result.best else self._in_vain(result, place),
            reason=result.reason or f"{result.tests[0].agreeing} of {result.drafted} drafts agree",
            record=stored_tests.record(
                result, test, self.services.prompts.hash("reproduce.draft"), self.services.config.hash
            ),
            usage=result.usage,
            model=result.model,
        )

    def not_run(self, word: str, why: str, usage: Usage | None = None) -> Decision:
        """The explicit abstention; ``word`` is what it is counted by."""
        place = Place(repository=self.services.repository, branch=self.services.repository.default_branch, sha="")
        return Decision(
            kind="reproduce",
            subject=self.subject,
            actions=(self._comment(texts.not_run(why, place)),) if self.explicitly else (),
            abstained=word,
            reason=why,
            record=ReproduceRecord(state="not run"),
            usage=usage or Usage(),
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
