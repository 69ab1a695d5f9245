"""Bug-reproducing tests: draft one for a reported bug, run it on the default branch, offer it or abstain.

It runs on ``/bouncer reproduce`` by a person with triage permission. It runs without being asked only if the
repository wants that, once for each text, on issues that triage found clear and that have the configured label.
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
from bot.core.errors import BudgetExceeded, ForgeError, ModelError, NotFound, SandboxError
from bot.core.subjects import Issue, Subject
from bot.features.reproduce import texts
from bot.features.reproduce.record import DraftRecord, ReproduceRecord, StoredTest
from bot.features.reproduce.texts import BaseCommit
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.rights import asked_for, is_paused
from bot.reproduction.protocol import Attempt, Author, Options, Report, Reproduction, SetupFailed, TestCommand
from bot.reproduction.report import read_report

Trigger = events.IssueShown | events.IssueLabeled | events.CommentCreated

#: Characters of a test file and of a failure message that are recorded.
MAX_CONTENT = 400_000
MAX_MESSAGE = 4_000


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the event may lead to an attempt; of comments only commands and the author's answers do."""
    if event.issue.is_pull_request or event.sender.is_bot:
        return False
    return not isinstance(event, events.CommentCreated) or event.by_author or bool(commands)


def handle(event: Trigger, services: Services) -> Decision | None:
    """Try to reproduce the issue of an event; None if the event asks for no attempt."""
    past = services.history.decisions(event.subject.key, "triage", "reproduce", "commands")
    on_request = asked_for("reproduce", event, services) is not None
    if not on_request and (event.issue.state == "closed" or not _is_wanted(event, services, past)):
        return None
    attempt = _Attempt(event.subject, event.issue, services, on_request and not event.issue.locked)
    if event.issue.locked:
        return attempt.not_run("skipped:locked", "the issue is locked")
    if services.config.reproduce.mode == "off":
        return attempt.not_run("skipped:off", "drafting tests is switched off here (`reproduce.mode`)")
    if services.harnesses is None:
        return attempt.not_run("sandbox", "the operator of this bot has switched the sandbox off")
    try:
        return attempt.decide()
    except BudgetExceeded:
        # Posted nowhere: the router records it, and the job runs again with the next budget.
        raise
    except ModelError as error:
        return attempt.not_run(f"model:{error.reason}", error.sentence, error.usage)
    except NotFound:
        return attempt.not_run("input", "the default branch has no commit, or was renamed a moment ago")
    except SetupFailed as error:
        return attempt.not_run("setup", str(error))
    except SandboxError as error:
        return attempt.not_run("sandbox", f"the sandbox failed: {error}")


def _is_wanted(event: Trigger, services: Services, past: Sequence[Decision]) -> bool:
    """Return True if the repository wants an attempt without a command and this text had none yet."""
    config = services.config.reproduce
    if config.mode == "off" or not config.automatic or is_paused(past):
        return False
    if config.label.lower() not in {label.lower() for label in event.issue.labels}:
        return False
    revision = event.issue.revision
    if any(decision.kind == "reproduce" and decision.subject.revision == revision for decision in past):
        return False
    last = history.last_verdict([decision for decision in past if decision.kind == "triage"])
    clear = last is not None and not history.bounced(last) and last.subject.revision == revision
    return clear or history.accepted(past)


def _report(issue: Issue, services: Services) -> Report:
    """Return the issue with its author's later comments."""
    answers = [
        comment.body
        for comment in services.forge.comments(issue.number)
        if comment.author.id == issue.author.id
        and comment.body.strip()
        and not services.commands.read(comment.body)
    ]
    body = "\n\n".join([issue.body, *(f"The author added:\n\n{answer}" for answer in answers)])
    return read_report(issue.title, body, issue.number)


def _earlier_report(services: Services, number: int) -> Report | None:
    """Return an earlier issue of the repository as an example; None if the number is no issue."""
    try:
        issue = services.forge.issue(number)
    except ForgeError:
        return None
    return None if issue.is_pull_request else read_report(issue.title, issue.body, number)


@dataclass(frozen=True)
class _Attempt:
    """An attempt to reproduce one issue."""

    subject: Subject
    issue: Issue
    services: Services
    on_request: bool
    """A person asked for it, so a failed attempt is posted too."""

    def decide(self) -> Decision:
        """Draft tests, run them on the head of the default branch, and offer the best one."""
        services, config = self.services, self.services.config.reproduce
        try:
            command = TestCommand.of_repository(config.command)
        except ValueError as error:
            return self.not_run("input", f"`reproduce.command` cannot be used: {error}")
        branch = services.repository.default_branch
        commit = BaseCommit(repository=services.repository, branch=branch, sha=services.forge.head(branch))
        author = Author(services.model, services.prompts, self.subject.key)
        options = Options.configured(config)
        fetch = partial(_earlier_report, services) if config.examples == "repository" else None
        report = _report(self.issue, services)
        with TemporaryDirectory(prefix="bouncer-") as folder:
            services.forge.checkout(commit.sha, Path(folder))
            with services.prepared(Path(folder), command) as harness:
                result = harness.reproduce(Path(folder), report, author, options, fetch)
        if result.state == "not run":
            decision = self.not_run(result.abstained or "sandbox", result.reason, result.usage)
            return decision.model_copy(update={"model": result.model})
        return Decision(
            kind="reproduce",
            subject=self.subject,
            verdict=result.state,
            actions=self._offer(result, commit),
            reason=result.reason or f"{result.tests[0].agreeing} of {result.drafts} drafts agree",
            again_days=1 if result.best and config.watch == "daily" else None,
            record=ReproduceRecord(
                at=services.clock().timestamp(),
                state=result.state,
                test=_stored_test(result, command, commit),
                agreeing=result.best.agreeing if result.best else 0,
                drafts=result.drafts,
                sandbox=result.sandbox,
                attempts=tuple(map(_draft_record, result.attempts)),
                prompt=services.prompts.hash("reproduce.draft"),
                config=services.config.hash,
            ),
            usage=result.usage,
            model=result.model,
        )

    def not_run(self, word: str, why: str, usage: Usage | None = None) -> Decision:
        """Return an abstention, counted by ``word``."""
        text = texts.not_run(why, self.services.repository.host)
        return Decision(
            kind="reproduce",
            subject=self.subject,
            actions=(self._comment(text),) if self.on_request else (),
            abstained=word,
            reason=why,
            record=ReproduceRecord(state="not run"),
            usage=usage or Usage(),
        )

    def _offer(self, result: Reproduction, commit: BaseCommit) -> tuple[Action, ...]:
        """Return the comment or draft pull request with the best test and the label, or that there is none."""
        best, config = result.best, self.services.config.reproduce
        if best is None:
            # Without a request it only updates an older comment.
            body = texts.not_reproduced(result, commit)
            return (self._comment(body, only_edit=not self.on_request),)
        number = self.issue.number
        label = SetLabels(number=number, add=(config.reproduced_label,))
        if config.mode == "comment":
            return self._comment(texts.reproduced(result, commit)), label
        pull = OpenDraftPull(
            number=number,
            base=commit.branch,
            base_sha=commit.sha,
            branch=f"bouncer/reproduce-{number}",
            path=best.candidate.path,
            content=best.candidate.content,
            title=texts.pull_title(number, self.issue.title),
            body=texts.pull_body(result, commit, number),
        )
        return pull, label

    def _comment(self, body: str, *, only_edit: bool = False) -> UpsertComment:
        return UpsertComment(task="reproduce", number=self.issue.number, body=body, only_edit=only_edit)


def _stored_test(result: Reproduction, command: TestCommand, commit: BaseCommit) -> StoredTest | None:
    """Return the best test of a result for the record; None if there is none or its file is too large."""
    best = result.best
    if best is None or len(best.candidate.content) > MAX_CONTENT:
        return None
    return StoredTest(
        path=best.candidate.path,
        name=best.candidate.name,
        content=best.candidate.content,
        code=best.candidate.code,
        new_file=best.candidate.new_file,
        command=command.argv,
        branch=commit.branch,
        sha=commit.sha,
        exception_type=best.outcome.exception_type or "",
        message=best.outcome.message[:MAX_MESSAGE],
    )


def _draft_record(attempt: Attempt) -> DraftRecord:
    outcome = attempt.outcome
    return DraftRecord(
        number=attempt.number,
        fate=attempt.fate,
        why=attempt.why[:500],
        repaired=attempt.repaired,
        inverted=attempt.inverted,
        flaky=attempt.flaky,
        exception_type=outcome.exception_type if outcome else None,
        message=outcome.message[:500] if outcome else "",
        code=attempt.candidate.code[:4_000] if attempt.candidate else "",
    )
