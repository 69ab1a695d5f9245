"""Output bouncer: does this patch solve the issue that it says it solves?

The answer is one check run. Without a linked issue it is about the description of the pull request, if
``verify.description`` is set, else an abstention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from bot.code.context import Surroundings, surroundings
from bot.code.diff import Diff, parse
from bot.code.file_classes import exempts_itself, reviewable_part
from bot.core import events
from bot.core.actions import CodeContext, Decision, SetCheck, Usage
from bot.core.commands import Command
from bot.core.errors import BudgetExceeded, ForgeError, ModelError
from bot.core.events import Event
from bot.core.subjects import Issue, PullRequest, Subject, text_revision
from bot.features.services import Services
from bot.features.shared import history, investigation, pull_requests
from bot.features.shared.investigation import Notes, model_reply
from bot.features.shared.labels import ModelReply, severity
from bot.features.shared.links import issue_links
from bot.features.shared.rights import no_run_reason
from bot.features.verify import description, judgement, texts
from bot.features.verify.record import (
    ExecutedTest,
    NewTests,
    OutputVerdict,
    PullContent,
    Rival,
    Unjudged,
    VerifyRecord,
)
from bot.features.verify.rivals import closed, named_rivals, renewed_check, rivals
from bot.features.verify.runs import run_new_tests, run_stored
from bot.features.verify.twins import content_of
from bot.models.protocol import Prompt

T = TypeVar("T", bound=BaseModel)

#: Why an empty patch, and a pull request without an issue, is not judged.
EMPTY, NO_ISSUE = "the patch is empty", "no linked issue"


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if the event can ask for a verdict on its pull request, or for a check that names others."""
    if isinstance(event, events.MergeGroupRequested | events.PullRequestClosed):
        return True
    if isinstance(event, events.LinkedIssueChanged):
        return event.task == "verify"
    return pull_requests.concerns(event, commands, frozenset({"verify", "recheck"}), texts.CHECK)


def handle(event: Event, services: Services) -> Decision | None:
    """Judge the pull request of an event against the issues that it closes; None if nothing asks for it."""
    if services.config.verify.mode == "off":
        return None
    if isinstance(event, events.MergeGroupRequested):
        return _skip_queue(event)
    if isinstance(event, events.LinkedIssueChanged):
        return renewed_check(event, services)
    if isinstance(event, events.PullRequestClosed):
        return closed(event, services)
    request = pull_requests.read_request(event, services, "verify")
    if request is None:
        return None
    pull = request.pull_request
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    past = services.history.decisions(subject.key, "verify", "commands")
    skip = None if request.is_explicit else pull_requests.skip_reason(pull, services, past)
    if skip is not None:
        return _abstain(subject, pull, *skip).model_copy(update={"record": _lasting(past, subject)})
    config, links, before = services.config.verify, issue_links(pull, services), named_rivals(past)
    content = content_of(pull, links, services)
    if not (links or config.description or config.tests):
        note = _twins(content, services)
        return _abstain(subject, pull, "no-issue", NO_ISSUE, content=content, note=note, affects=before)
    issues, unjudged = pull_requests.linked_issues(links, services)
    if not (links or config.description):
        unjudged.append(Unjudged(why=NO_ISSUE))
    alone = pull if config.description and not issues else None
    revisions = {str(issue.number): issue.revision for issue in issues}
    if alone is not None:
        revisions = {"description": text_revision(alone.title, alone.body)}
    if isinstance(event, events.PullRequestEdited) and _same(past, subject, revisions):
        return None
    no_run = no_run_reason(pull, request.command, "verify")
    task = _Judgement(subject, pull, services, unjudged, no_run, revisions, content)
    decision = task.decide(issues, by_description=alone is not None)
    return decision.model_copy(update={"affects": tuple(dict.fromkeys((*decision.affects, *before)))})


def _lasting(past: Sequence[Decision], subject: Subject) -> VerifyRecord | None:
    """Return what is still known of a skipped pull request, for checks of others; of tests, on this head only."""
    last = history.last_record(past, VerifyRecord)
    here = [decision for decision in past if decision.subject.revision == subject.revision]
    tested = history.last_record(here, VerifyRecord) or VerifyRecord()
    return last and VerifyRecord(
        content=last.content, rivals=last.rivals, runs=tested.runs, new_tests=tested.new_tests
    )


def _skip_queue(event: events.MergeGroupRequested) -> Decision:
    """Complete the check of a merge queue's commit, because a required check would block the queue."""
    why = "this is a merge queue's commit; each pull request in it has a verdict of its own"
    actions = (texts.skipped(event.head_sha, why),)
    return Decision(kind="verify", subject=event.subject, actions=actions, abstained="skipped:queue", reason=why)


def _abstain(
    subject: Subject,
    pull: PullRequest,
    word: str,
    why: str,
    *,
    fails: bool = False,
    content: PullContent | None = None,
    note: str = "",
    affects: tuple[int, ...] = (),
) -> Decision:
    """Return an abstention; the check is completed, because a required check would wait for it."""
    return Decision(
        kind="verify",
        subject=subject,
        actions=(texts.skipped(pull.head_sha, why, fails=fails, note=note),) if pull.state == "open" else (),
        abstained=word,
        reason=why,
        record=None if content is None else VerifyRecord(content=content),
        affects=affects,
    )


def _twins(content: PullContent | None, services: Services) -> str:
    """Return the sentences that name earlier pull requests; empty in shadow mode."""
    return texts.twins(content.twins) if content and services.config.duplicates.mode == "comment" else ""


def _same(past: Sequence[Decision], subject: Subject, revisions: Mapping[str, str]) -> bool:
    """Return True if this code was judged against these texts, and nothing was said about it since."""
    last = next((decision for decision in reversed(past) if decision.kind == "verify"), None)
    return (
        last is not None
        and last.abstained is None
        and last.subject == subject
        and isinstance(last.record, VerifyRecord)
        and last.record.issue_revisions == revisions
    )


class _Judgement:
    """The judgement of one pull request; ``no_run``: why its head may not be executed, None if it may."""

    def __init__(
        self,
        subject: Subject,
        pull: PullRequest,
        services: Services,
        unjudged: Sequence[Unjudged],
        no_run: str | None,
        revisions: Mapping[str, str],
        content: PullContent | None,
    ) -> None:
        self.subject, self.pull, self.services, self.no_run = subject, pull, services, no_run
        self.revisions = revisions
        self.content, self.twins = content, _twins(content, services)
        self.config = services.config.verify
        self.verdicts: list[OutputVerdict] = []
        self.unjudged = list(unjudged)
        self.runs: tuple[ExecutedTest, ...] = ()
        self.rivals: tuple[Rival, ...] = ()
        self.new_tests: NewTests | None = None
        self.prompts = judgement.prompt_names(self.config)
        self.usage, self.model = Usage(), ""
        self.replies: list[ModelReply] = []
        self.looks = 0
        self.spent = False
        self.failure: ModelError | None = None
        self.context = CodeContext()
        self.around = Surroundings(Diff(), None)
        self.omitted: tuple[str, ...] = ()
        self.exempt: tuple[str, ...] = ()

    def decide(self, issues: Sequence[Issue], *, by_description: bool = False) -> Decision:
        """Return one verdict for each issue, or one for the description, and one check for all."""
        patch, unfit = self._patch()
        if unfit or not (issues or by_description or self.config.tests):
            why = unfit or self._why_unjudged
            fails = bool(unfit) and unfit != EMPTY and texts.fails_unjudged(self.config)
            word = "unfit" if unfit else "no-issue"
            return _abstain(self.subject, self.pull, word, why, fails=fails, content=self.content, note=self.twins)
        diff = parse(patch)
        # The paper asks about the whole patch, without context; it knows no pull requests without an issue.
        part = patch if self.config.prompt == "paper" and not by_description else self._prepare(patch, diff)
        judge = self._graded if self.config.prompt == "rubric" else self._verdict
        for issue in issues:
            self._judge(f"#{issue.number}", partial(judge, issue, part))
        if by_description:
            self.prompts = ("verify.description",)
            self._judge("the description", partial(self._of_description, part))
        self._run()
        if self.config.tests:
            self.new_tests = run_new_tests(self.pull, diff, self.services, self.no_run)
        record = self._record()
        check = self._check(record)
        return Decision(
            kind="verify",
            subject=self.subject,
            verdict=max((verdict.label for verdict in self.verdicts), key=severity, default=None),
            actions=(check,),
            reason=check.title if self.verdicts else self._why_unjudged,
            abstained=None if self.verdicts else self._abstained,
            record=record,
            affects=tuple(dict.fromkeys(rival.pull for rival in self.rivals)),
            usage=self.usage,
            model=self.model,
        )

    @property
    def _abstained(self) -> str:
        if self.spent:
            return "skipped:budget"
        if any(issue.why == description.NO_BEHAVIOUR for issue in self.unjudged):
            return "no-behaviour"
        return f"model:{self.failure.reason}" if self.failure else "no-issue"

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

    def _prepare(self, patch: str, diff: Diff) -> str:
        """Read the code around the patch, and return the part of the patch to judge."""
        around = surroundings(diff, self.pull, self.services.forge if self.config.context_tokens else None)
        self.around = around
        self.context = around.within(self.config.context_tokens)
        patch, self.omitted = reviewable_part(patch, diff)
        if self.omitted:
            self.exempt = tuple(file.path for file in diff.files if exempts_itself(file))
        return patch

    def _judge(self, name: str, ask: Callable[[], OutputVerdict | None]) -> None:
        """Add the verdict that ``ask`` returns, or the reason why there is none."""
        try:
            verdict = ask()
        except BudgetExceeded:
            self.spent = True
            self.unjudged.append(Unjudged(issue=name, why="skipped, today's model budget is spent", due=True))
        except ModelError as error:
            self.usage += error.usage or Usage()
            self.failure = error
            self.unjudged.append(Unjudged(issue=name, why=error.sentence, due=True))
        else:
            if verdict is not None:
                self.verdicts.append(verdict)
            else:
                self.unjudged.append(Unjudged(issue=name, why=description.NO_BEHAVIOUR))

    def _of_description(self, patch: str) -> OutputVerdict | None:
        """Compare title and description with the patch; None if they name no behaviour."""
        if description.names_no_behaviour(self.pull, self.around.diff):
            return None
        prompt = description.question(self.services.prompts, self.pull, patch, self.context.text, self.omitted)
        prompt, notes = self._informed(prompt)
        reply = self._ask(prompt, description.DescriptionReply, notes, "the description")
        return description.verdict(reply, self.config)

    def _verdict(self, issue: Issue, patch: str) -> OutputVerdict:
        """Ask about one issue in one question."""
        services = self.services
        prompt = judgement.question(
            services.prompts, self.config.prompt, issue, patch, context=self.context.text, omitted=self.omitted
        )
        prompt, notes = self._informed(prompt)
        reply = self._ask(prompt, judgement.reply_schema(self.config), notes, f"#{issue.number}")
        return judgement.verdict(reply, issue.number, self.config)

    def _graded(self, issue: Issue, patch: str) -> OutputVerdict:
        """Ask for demands without the patch, then for grades; once more with the code that grades lack."""
        services, budget = self.services, self.config.context_tokens
        code = judgement.code_before(self.around.diff, self.around.sides, budget)
        name, first = f"#{issue.number}", judgement.demands_question(services.prompts, issue, code)
        demands = self._ask(first, judgement.DemandsReply, Notes(), name).demands
        prompt = judgement.rubric_question(
            services.prompts, issue, patch, demands, self.context.text, self.omitted
        )
        prompt, notes = self._informed(prompt)
        reply = self._ask(prompt, judgement.RubricReply, notes, name)
        if phrases := judgement.missing_code(reply):
            context = self.around.within(budget, None, phrases)
            if context.looked_up:
                prompt = judgement.rubric_question(
                    services.prompts, issue, patch, demands, context.text, self.omitted
                )
                prompt = investigation.informed(services.prompts, prompt, notes)
                reply = self._ask(prompt, judgement.RubricReply, Notes(), name)
        return judgement.rubric_verdict(demands, reply, issue.number, self.config)

    def _ask(self, prompt: Prompt, schema: type[T], notes: Notes, about: str) -> T:
        """Ask one question about an issue or the description, and record the reply."""
        prompt = prompt.model_copy(update={"subject": self.subject.key})
        reply = self.services.model.complete(prompt, schema)
        self.usage += reply.usage
        self.model = reply.model
        self.replies.append(model_reply(reply, prompt.hash, notes, about))
        return reply.value

    def _informed(self, prompt: Prompt) -> tuple[Prompt, Notes]:
        """Add notes about the base commit to a question, if ``verify.investigate`` is set, and return both."""
        services = self.services
        if not self.config.investigate:
            return prompt, Notes()
        question = prompt.model_copy(update={"subject": self.subject.key})
        notes = investigation.investigate(
            services.model, services.prompts, question, services.forge, self.pull.base_sha
        )
        self.usage += notes.usage
        self.looks += len(notes.looks)
        return investigation.informed(services.prompts, prompt, notes), notes

    def _run(self) -> None:
        """Run the issues' stored reproducing tests on base and head, if that is wanted and allowed.

        A patch bounces if one still fails. A pass changes nothing: patches that pass a drafted test are often
        wrong, and the code under test could forge it.
        """
        if not self.config.execute or self.no_run is not None:
            return
        issues = [verdict.issue for verdict in self.verdicts if verdict.issue is not None]
        self.runs = run_stored(issues, self.pull, self.services)
        self.rivals = rivals(self.runs, self.pull.number, self.services)
        failed = {run.issue for run in self.runs if run.solved is False}
        self.verdicts = [
            verdict.model_copy(update={"bounced": True}) if verdict.issue in failed else verdict
            for verdict in self.verdicts
        ]

    def _check(self, record: VerifyRecord) -> SetCheck:
        return texts.check(
            self.pull.head_sha,
            record,
            config=self.config,
            repository=self.services.repository,
            usage=self.usage,
            model=self.model,
        )

    def _record(self) -> VerifyRecord:
        chances = [verdict.p_bounce for verdict in self.verdicts if verdict.p_bounce is not None]
        return VerifyRecord(
            verdicts=tuple(self.verdicts),
            unjudged=tuple(self.unjudged),
            bounced=any(verdict.bounced for verdict in self.verdicts),
            p_bounce=max(chances, default=None),
            runs=self.runs,
            rivals=self.rivals,
            new_tests=self.new_tests,
            note="\n\n".join(
                filter(None, (self.twins, self.no_run, pull_requests.not_analysed(self.context.too_slow)))
            ),
            exempt=self.exempt,
            replies=tuple(self.replies),
            tool_calls=self.looks,
            context=self.context.without_text(),
            omitted=self.omitted,
            failure=str(self.failure or ""),
            content=self.content,
            issue_revisions=dict(self.revisions),
            prompt=self.services.prompts.hash(*self.prompts),
            config=self.services.config.hash,
            harm=self.config.harm,
        )
