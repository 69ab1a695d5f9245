"""Output bouncer: does this patch solve the issue that it says it solves?

The answer is one check run. Without a linked issue the check shows an abstention.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from bot.code.context import Surroundings, surroundings
from bot.code.diff import Diff, parse
from bot.code.file_classes import exempts_itself, reviewable_part
from bot.code.page import CodeContext
from bot.core import events
from bot.core.actions import Decision, SetCheck, Usage
from bot.core.commands import Command
from bot.core.errors import BudgetExceeded, ForgeError, ModelError
from bot.core.events import Event
from bot.core.subjects import Issue, PullRequest, Subject
from bot.features.services import Services
from bot.features.shared import history, investigation, pull_requests
from bot.features.shared.investigation import Notes, model_reply
from bot.features.shared.labels import ModelReply, severity
from bot.features.shared.links import issue_links
from bot.features.shared.rights import no_run_reason
from bot.features.verify import judgement, texts
from bot.features.verify.record import ExecutedTest, OutputVerdict, Unjudged, VerifyRecord
from bot.features.verify.stored_tests import run_stored
from bot.models.protocol import Prompt

T = TypeVar("T", bound=BaseModel)

#: Why an empty patch is not judged.
EMPTY = "the patch is empty"


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if the event can ask for a verdict on its pull request."""
    if isinstance(event, events.MergeGroupRequested):
        return True
    return pull_requests.concerns(event, commands, frozenset({"verify", "recheck"}), texts.CHECK)


def handle(event: Event, services: Services) -> Decision | None:
    """Judge the pull request of an event against the issues that it closes; None if nothing asks for it."""
    if services.config.verify.mode == "off":
        return None
    if isinstance(event, events.MergeGroupRequested):
        return _skip_queue(event)
    request = pull_requests.read_request(event, services, "verify")
    if request is None:
        return None
    pull = request.pull_request
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    past = services.history.decisions(subject.key, "verify", "commands")
    skip = None if request.is_explicit else pull_requests.skip_reason(pull, services, past)
    if skip is not None:
        return _abstain(subject, pull, *skip)
    links = issue_links(pull, services)
    if not links:
        return _abstain(subject, pull, "no-issue", "no linked issue")
    issues, unjudged = pull_requests.linked_issues(links, services)
    if isinstance(event, events.PullRequestEdited) and _same(past, subject, issues):
        return None
    no_run = no_run_reason(pull, request.command, "verify")
    return _Judgement(subject, pull, services, unjudged, no_run).decide(issues)


def _skip_queue(event: events.MergeGroupRequested) -> Decision:
    """Complete the check of a merge queue's commit, because a required check would block the queue."""
    why = "this is a merge queue's commit; each pull request in it has a verdict of its own"
    actions = (texts.skipped(event.head_sha, why),)
    return Decision(kind="verify", subject=event.subject, actions=actions, abstained="skipped:queue", reason=why)


def _abstain(subject: Subject, pull: PullRequest, word: str, why: str, *, fails: bool = False) -> Decision:
    """Return an abstention; the check is completed, because a required check would wait for it."""
    actions = (texts.skipped(pull.head_sha, why, fails=fails),) if pull.state == "open" else ()
    return Decision(kind="verify", subject=subject, actions=actions, abstained=word, reason=why)


def _same(past: Sequence[Decision], subject: Subject, issues: Sequence[Issue]) -> bool:
    """Return True if this code was judged against these issues already."""
    last = history.last_verdict(past)
    return (
        last is not None
        and last.subject == subject
        and isinstance(last.record, VerifyRecord)
        and last.record.issue_revisions == _revisions(issues)
    )


def _revisions(issues: Sequence[Issue]) -> dict[str, str]:
    return {str(issue.number): issue.revision for issue in issues}


class _Judgement:
    """The judgement of one pull request; ``no_run``: why its head may not be executed, None if it may."""

    def __init__(
        self,
        subject: Subject,
        pull: PullRequest,
        services: Services,
        unjudged: Sequence[Unjudged],
        no_run: str | None,
    ) -> None:
        self.subject, self.pull, self.services, self.no_run = subject, pull, services, no_run
        self.config = services.config.verify
        self.verdicts: list[OutputVerdict] = []
        self.unjudged = list(unjudged)
        self.runs: tuple[ExecutedTest, ...] = ()
        self.usage, self.model = Usage(), ""
        self.replies: list[ModelReply] = []
        self.looks = 0
        self.spent = False
        self.failure: ModelError | None = None
        self.context = CodeContext()
        self.around = Surroundings(Diff(), None)
        self.omitted: tuple[str, ...] = ()
        self.exempt: tuple[str, ...] = ()

    def decide(self, issues: Sequence[Issue]) -> Decision:
        """Return one verdict for each issue, and one check for all."""
        patch, unfit = self._patch()
        if unfit or not issues:
            why = unfit or self._why_unjudged
            fails = bool(unfit) and unfit != EMPTY and texts.fails_unjudged(self.config)
            return _abstain(self.subject, self.pull, "unfit" if unfit else "no-issue", why, fails=fails)
        patch = self._prepare(patch)
        for issue in issues:
            self._judge(issue, patch)
        self._run()
        check = self._check()
        return Decision(
            kind="verify",
            subject=self.subject,
            verdict=max((verdict.label for verdict in self.verdicts), key=severity, default=None),
            actions=(check,),
            reason=check.title if self.verdicts else self._why_unjudged,
            abstained=None if self.verdicts else self._abstained,
            record=self._record(issues),
            usage=self.usage,
            model=self.model,
        )

    @property
    def _abstained(self) -> str:
        if self.spent:
            return "skipped:budget"
        return f"model:{self.failure.reason}" if self.failure else "model"

    @property
    def _why_unjudged(self) -> str:
        return "; ".join(issue.why for issue in self.unjudged)

    def _patch(self) -> tuple[str, str]:
        """Return the patch, and why it cannot be judged as a whole, if so."""
        try:
            diff = self.services.forge.diff(self.pull.number)
        except ForgeError as error:
            return "", f"the diff cannot be read ({error})"
        if diff.omitted:
            return "", f"the patch is too large, GitHub leaves out {len(diff.omitted)} of its files"
        if len(diff.text) > judgement.MAX_PATCH:
            return "", f"the patch is too large ({len(diff.text):,} characters)"
        return diff.text, "" if diff.text.strip() else EMPTY

    def _prepare(self, patch: str) -> str:
        """Read the code around the patch, and return the part of the patch to judge."""
        if self.config.prompt == "paper":
            return patch  # The paper asks about the whole patch, without context.
        diff = parse(patch)
        around = surroundings(diff, self.pull, self.services.forge if self.config.context_tokens else None)
        self.around = around
        self.context = around.within(self.config.context_tokens)
        patch, self.omitted = reviewable_part(patch, diff)
        if self.omitted:
            self.exempt = tuple(file.path for file in diff.files if exempts_itself(file))
        return patch

    def _judge(self, issue: Issue, patch: str) -> None:
        """Ask about one issue, and add its verdict or the reason why there is none."""
        name = f"#{issue.number}"
        try:
            verdict = self._graded(issue, patch) if self.config.prompt == "rubric" else self._verdict(issue, patch)
        except BudgetExceeded:
            self.spent = True
            self.unjudged.append(Unjudged(issue=name, why="skipped, today's model budget is spent", due=True))
        except ModelError as error:
            self.usage += error.usage or Usage()
            self.failure = error
            self.unjudged.append(Unjudged(issue=name, why=error.sentence, due=True))
        else:
            self.verdicts.append(verdict)

    def _verdict(self, issue: Issue, patch: str) -> OutputVerdict:
        """Ask about one issue in one question."""
        services = self.services
        prompt = judgement.question(
            services.prompts, self.config.prompt, issue, patch, context=self.context.text, omitted=self.omitted
        )
        notes = self._notes(prompt)
        prompt = investigation.informed(services.prompts, prompt, notes)
        reply = self._ask(prompt, judgement.reply_schema(self.config), notes, issue)
        return judgement.verdict(reply, issue.number, self.config)

    def _graded(self, issue: Issue, patch: str) -> OutputVerdict:
        """Ask for demands without the patch, then for grades; once more with the code that grades lack."""
        services, budget = self.services, self.config.context_tokens
        code = judgement.code_before(self.around.diff, self.around.sides, budget)
        demands = self._ask(
            judgement.demands_question(services.prompts, issue, code), judgement.DemandsReply, Notes(), issue
        ).demands
        prompt = judgement.rubric_question(
            services.prompts, issue, patch, demands, self.context.text, self.omitted
        )
        notes = self._notes(prompt)
        prompt = investigation.informed(services.prompts, prompt, notes)
        reply = self._ask(prompt, judgement.RubricReply, notes, issue)
        if phrases := judgement.missing_code(reply):
            context = self.around.within(budget, None, phrases)
            if context.looked_up:
                prompt = judgement.rubric_question(
                    services.prompts, issue, patch, demands, context.text, self.omitted
                )
                prompt = investigation.informed(services.prompts, prompt, notes)
                reply = self._ask(prompt, judgement.RubricReply, Notes(), issue)
        return judgement.rubric_verdict(demands, reply, issue.number, self.config)

    def _ask(self, prompt: Prompt, schema: type[T], notes: Notes, issue: Issue) -> T:
        """Ask one question, and record the reply."""
        prompt = prompt.model_copy(update={"subject": self.subject.key})
        reply = self.services.model.complete(prompt, schema)
        self.usage += reply.usage
        self.model = reply.model
        self.replies.append(model_reply(reply, prompt.hash, notes, f"#{issue.number}"))
        return reply.value

    def _notes(self, prompt: Prompt) -> Notes:
        """Return the model's notes about the base commit; empty unless ``verify.investigate`` is set."""
        services = self.services
        if not self.config.investigate:
            return Notes()
        prompt = prompt.model_copy(update={"subject": self.subject.key})
        notes = investigation.investigate(
            services.model, services.prompts, prompt, services.forge, self.pull.base_sha
        )
        self.usage += notes.usage
        self.looks += len(notes.looks)
        return notes

    def _run(self) -> None:
        """Run the issues' stored reproducing tests on base and head, if that is wanted and allowed.

        A patch bounces if one still fails. A pass changes nothing: patches that pass a drafted test are often
        wrong, and the code under test could forge it.
        """
        if not self.config.execute or self.no_run is not None:
            return
        self.runs = run_stored([verdict.issue for verdict in self.verdicts], self.pull, self.services)
        failed = {run.issue for run in self.runs if run.solved is False}
        self.verdicts = [
            verdict.model_copy(update={"bounced": True}) if verdict.issue in failed else verdict
            for verdict in self.verdicts
        ]

    def _check(self) -> SetCheck:
        return texts.check(
            self.pull.head_sha,
            self.verdicts,
            self.unjudged,
            self.runs,
            config=self.config,
            repository=self.services.repository,
            usage=self.usage,
            model=self.model,
            note="\n\n".join(filter(None, (self.no_run, pull_requests.not_analysed(self.context.too_slow)))),
            exempt=self.exempt,
        )

    def _record(self, issues: Sequence[Issue]) -> VerifyRecord:
        chances = [verdict.p_bounce for verdict in self.verdicts if verdict.p_bounce is not None]
        return VerifyRecord(
            verdicts=tuple(self.verdicts),
            unjudged=tuple(self.unjudged),
            bounced=any(verdict.bounced for verdict in self.verdicts),
            p_bounce=max(chances, default=None),
            runs=self.runs,
            replies=tuple(self.replies),
            tool_calls=self.looks,
            context=self.context.without_text(),
            omitted=self.omitted,
            failure=str(self.failure or ""),
            issue_revisions=_revisions(issues),
            prompt=self.services.prompts.hash(*judgement.prompt_names(self.config)),
            config=self.services.config.hash,
            harm=self.config.harm,
        )
