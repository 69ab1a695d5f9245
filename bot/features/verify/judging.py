"""The judgement of one pull request: the code around its patch, the model's verdicts, and runs of tests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bot.code.change.diff import Diff, parse
from bot.code.change.file_classes import exempts_itself, reviewable_part
from bot.code.context.surroundings import Surroundings, surroundings
from bot.core import events
from bot.core.actions import CodeContext, Decision, Usage
from bot.core.errors import BudgetExceeded, ForgeError, ModelError
from bot.core.subjects import Issue, PullRequest, Subject, text_revision
from bot.core.text import folded, without_middle
from bot.features.services import Services
from bot.features.shared import investigation
from bot.features.shared.investigation import Notes
from bot.features.shared.labels import MAX_BODY, ModelReply, model_reply, severity
from bot.features.shared.links import issue_links, linked_issues
from bot.features.shared.pull_requests import JudgementRequest, Trigger, not_analysed
from bot.features.shared.rights import no_run_reason
from bot.features.verify import judgement, texts
from bot.features.verify.handler import abstention, named_rivals, rivals
from bot.features.verify.record import (
    ExecutedTest,
    NewTests,
    OutputVerdict,
    PullContent,
    Twin,
    Unjudged,
    VerifyRecord,
)
from bot.features.verify.runs import run_new_tests, run_stored
from bot.github.protocol import Forge, IssueLink
from bot.models.protocol import Prompt, T

#: Why an empty patch, and a pull request without an issue, is not judged.
EMPTY, NO_ISSUE = "the patch is empty", "no linked issue"
#: Characters of a patch in one question. GitHub shows no diff above 1 MB. A patch is judged whole or not at all.
MAX_PATCH = 1_000_000
#: Share of the changed lines, percent, from which on two pull requests make the same change.
SAME_LINES = 60
#: Lines of a change that are compared at most; a larger one is not compared by lines.
MAX_LINES = 500


def judge(
    event: Trigger, request: JudgementRequest, past: Sequence[Decision], services: Services
) -> Decision | None:
    """Return the verdicts on a pull request, or an abstention; None if its new text changes nothing.

    There is one verdict for each issue, or one for the description. Raises TransientError.
    """
    pull, config = request.pull_request, services.config.verify
    links = issue_links(pull, services)
    content = _content(pull, links, services)
    twins = texts.twins(content.twins) if content and services.config.duplicates.mode == "comment" else ""
    record = VerifyRecord(content=content) if content else None
    named_before = named_rivals(past)
    abstain = partial(abstention, pull, services, record=record, note=twins, affects=named_before)
    if not (links or config.description or config.tests):
        return abstain("no-issue", NO_ISSUE)
    issues, unjudged = linked_issues(links, services)
    if not (links or config.description):
        unjudged.append(Unjudged(why=NO_ISSUE))
    by_description = config.description and not issues
    revisions = _revisions(pull, issues, by_description=by_description)
    if isinstance(event, events.PullRequestEdited) and _was_judged(past, pull, revisions):
        return None
    patch, unfit = _patch(pull, services.forge)
    if unfit:
        return abstain("unfit", unfit, fails=unfit != EMPTY and texts.fails_unjudged(config))
    if not (issues or by_description or config.tests):
        return abstain("no-issue", _reasons(unjudged))
    no_run = no_run_reason(pull, request.command, "verify")
    judging = _Judging(pull, patch, unjudged, services, by_description=by_description)
    judging.judge(issues)
    judging.run_tests(no_run)
    notes = (twins, no_run, not_analysed(judging.context.too_slow))
    further = {
        "note": "\n\n".join(filter(None, notes)),
        "content": content,
        "issue_revisions": revisions,
    }
    return judging.decision(judging.record().model_copy(update=further), named_before)


def _revisions(pull: PullRequest, issues: Sequence[Issue], *, by_description: bool) -> dict[str, str]:
    """Return the revisions of the texts that a patch is judged against, and its base: another one changes it."""
    if by_description:
        return {"description": text_revision(pull.title, pull.body), "base": pull.base_ref}
    return {**{str(issue.number): issue.revision for issue in issues}, "base": pull.base_ref}


def _was_judged(past: Sequence[Decision], pull: PullRequest, revisions: Mapping[str, str]) -> bool:
    """Return True if the last decision judged this code against these texts."""
    last = next((decision for decision in reversed(past) if decision.kind == "verify"), None)
    return (
        last is not None
        and last.abstained is None
        and last.subject.revision == pull.revision
        and isinstance(last.record, VerifyRecord)
        and last.record.issue_revisions == revisions
    )


def _patch(pull: PullRequest, forge: Forge) -> tuple[str, str]:
    """Return the patch, and why it cannot be judged as a whole, if so."""
    try:
        diff = forge.diff(pull.number)
    except ForgeError as error:
        return "", f"the diff cannot be read ({error})"
    if missing := len(diff.omitted) + diff.unlisted:
        return "", f"the patch is too large, GitHub leaves out {missing} of its files"
    if len(diff.text) > MAX_PATCH:
        return "", f"the patch is too large ({len(diff.text):,} characters)"
    return diff.text, "" if diff.text.strip() else EMPTY


def _reasons(unjudged: Sequence[Unjudged]) -> str:
    return "; ".join(issue.why for issue in unjudged)


class _Judging:
    """The judgement of one pull request as it proceeds."""

    def __init__(
        self, pull: PullRequest, patch: str, unjudged: list[Unjudged], services: Services, *, by_description: bool
    ) -> None:
        self.pull, self.unjudged, self.services = pull, unjudged, services
        self.config, self.by_description = services.config.verify, by_description
        self.subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
        self.verdicts: list[OutputVerdict] = []
        self.runs: tuple[ExecutedTest, ...] = ()
        self.new_tests: NewTests | None = None
        self.usage, self.model = Usage(), ""
        self.replies: list[ModelReply] = []
        self.looks = 0
        #: The word for why the model gave no verdict; empty if it did, or was not asked.
        self.abstained = ""
        self.failure: ModelError | None = None
        self.diff = parse(patch)
        self.context, self.around = CodeContext(), Surroundings(Diff(), None)
        self.omitted: tuple[str, ...] = ()
        # The paper asks about the whole patch, without context; it knows no pull requests without an issue.
        if self.config.prompt != "paper" or by_description:
            budget = self.config.context_tokens
            self.around = surroundings(self.diff, pull, services.forge if budget else None)
            self.context = self.around.within(budget)
            patch, self.omitted = reviewable_part(patch, self.diff)
        #: The patch and the code around it, as every question about it shows them.
        self.material: dict[str, Any] = {"patch": patch, "context": self.context.text, "omitted": self.omitted}

    def judge(self, issues: Sequence[Issue]) -> None:
        """Ask for all verdicts."""
        verdict = self._rubric_verdict if self.config.prompt == "rubric" else self._verdict
        for issue in issues:
            self._judge(f"#{issue.number}", partial(verdict, issue))
        if self.by_description:
            self._judge("the description", self._description_verdict)

    def _judge(self, name: str, ask: Callable[[], OutputVerdict | None]) -> None:
        """Add the verdict that ``ask`` returns, or the reason why there is none."""
        try:
            verdict = ask()
        except BudgetExceeded as error:
            self.usage += error.usage or Usage()
            self.abstained = "skipped:budget"
            self.unjudged.append(Unjudged(issue=name, why="skipped, today's model budget is spent", due=True))
        except ModelError as error:
            self.usage += error.usage or Usage()
            self.failure = error
            if self.abstained != "skipped:budget":
                self.abstained = f"model:{error.reason}"
            self.unjudged.append(Unjudged(issue=name, why=error.sentence, due=True))
        else:
            if verdict is not None:
                self.verdicts.append(verdict)
            else:
                self.abstained = "no-behaviour"
                self.unjudged.append(Unjudged(issue=name, why=judgement.NO_BEHAVIOUR))

    def _description_verdict(self) -> OutputVerdict | None:
        """Compare title and description with the patch; None if they name no behaviour."""
        if judgement.names_no_behaviour(self.pull, self.around.diff):
            return None
        prompt = self._question("verify.description", self.pull, "verify.description", **self.material)
        prompt, notes = self._informed(prompt)
        reply = self._ask(prompt, judgement.DescriptionReply, notes, "the description")
        return judgement.description_verdict(reply, self.config)

    def _verdict(self, issue: Issue) -> OutputVerdict:
        """Ask about one issue in one question."""
        prompt, notes = self._informed(self._question(f"verify.{self.config.prompt}", issue, **self.material))
        reply = self._ask(prompt, judgement.reply_schema(self.config), notes, f"#{issue.number}")
        return judgement.verdict(reply, issue.number, self.config)

    def _rubric_verdict(self, issue: Issue) -> OutputVerdict:
        """Ask for demands without the patch, then for grades; again if grades lack code that can be shown."""
        budget = self.config.context_tokens
        code = judgement.code_before(parse(self.material["patch"]), self.around.sides, budget)
        name, first = f"#{issue.number}", self._question("verify.demands", issue, "verify.demands", code=code)
        demands = self._ask(first, judgement.DemandsReply, Notes(), name).demands
        numbered = [f"{number}. ({demand.basis}) {demand.text}" for number, demand in enumerate(demands, start=1)]
        material = {**self.material, "demands": numbered}
        prompt, notes = self._informed(self._question("verify.rubric", issue, **material))
        reply = self._ask(prompt, judgement.RubricReply, notes, name)
        if phrases := judgement.missing_code(reply):
            context = self.around.within(budget, None, phrases)
            if context.looked_up:
                extended = {**material, "context": context.text}
                prompt = self._question("verify.rubric", issue, **extended)
                prompt = investigation.informed(self.services.prompts, prompt, notes)
                try:
                    reply, material = self._ask(prompt, judgement.RubricReply, Notes(), name), extended
                except ModelError as error:
                    # The first grades stand.
                    self.usage += error.usage or Usage()
        visible = "\n".join((material["patch"], material["context"], notes.text))
        return judgement.rubric_verdict(demands, reply, issue.number, self.config, visible)

    def _question(self, name: str, about: Issue | PullRequest, purpose: str = "verify", **values: Any) -> Prompt:
        """Return the prompt ``name`` about an issue, or about the pull request by its own words."""
        # The paper asks about the unchanged text.
        shorten = without_middle if name == "verify.paper" else folded
        body = shorten(about.body, MAX_BODY)
        system, user = self.services.prompts.render(name, title=about.title, body=body, **values)
        return Prompt(purpose=purpose, system=system, user=user, subject=self.subject.key)

    def _ask(self, prompt: Prompt, schema: type[T], notes: Notes, about: str) -> T:
        """Ask one question about an issue or the description, and record the reply."""
        reply = self.services.model.complete(prompt, schema)
        self.usage += reply.usage
        self.model = reply.model
        self.replies.append(model_reply(reply, prompt.hash, notes.looks, notes.text, about))
        return reply.value

    def _informed(self, prompt: Prompt) -> tuple[Prompt, Notes]:
        """Add notes about the base commit to a question, if ``verify.investigate`` is set, and return both."""
        services = self.services
        if not self.config.investigate:
            return prompt, Notes()
        base = self.pull.base_sha
        notes = investigation.investigate(services.model, services.prompts, prompt, services.forge, base)
        self.usage += notes.usage
        self.looks += len(notes.looks)
        return investigation.informed(services.prompts, prompt, notes), notes

    def run_tests(self, no_run: str | None) -> None:
        """Run the tests that maintainers want; ``no_run``: why the head may not be executed, or None."""
        if self.config.execute and no_run is None:
            self._run_stored_tests()
        if self.config.tests:
            self.new_tests = run_new_tests(self.pull, self.diff, self.services, no_run)

    def _run_stored_tests(self) -> None:
        """Run the issues' stored reproducing tests on base and head.

        A patch bounces if one still fails. A pass changes nothing: patches that pass a drafted test are often
        wrong, and the code under test could forge it.
        """
        issues = [verdict.issue for verdict in self.verdicts if verdict.issue is not None]
        self.runs = run_stored(issues, self.pull, self.services)
        failed = {run.issue for run in self.runs if run.solved is False}
        self.verdicts = [
            verdict.model_copy(update={"bounced": True}) if verdict.issue in failed else verdict
            for verdict in self.verdicts
        ]

    def record(self) -> VerifyRecord:
        chances = [verdict.p_bounce for verdict in self.verdicts if verdict.p_bounce is not None]
        return VerifyRecord(
            verdicts=tuple(self.verdicts),
            unjudged=tuple(self.unjudged),
            bounced=any(verdict.bounced for verdict in self.verdicts),
            p_bounce=max(chances, default=None),
            runs=self.runs,
            rivals=rivals(self.runs, self.pull.number, self.services),
            new_tests=self.new_tests,
            exempt=tuple(file.path for file in self.diff.files if exempts_itself(file)) if self.omitted else (),
            replies=tuple(self.replies),
            tool_calls=self.looks,
            context=self.context.without_text(),
            omitted=self.omitted,
            failure=str(self.failure or ""),
            prompt=self.services.prompts.hash(*judgement.prompt_names(self.config, self.by_description)),
            config=self.services.config.hash,
            harm=self.config.harm,
        )

    def decision(self, record: VerifyRecord, named_before: Sequence[int]) -> Decision:
        """Return the decision with one check for all verdicts.

        ``named_before`` are the pull requests that the last check names: their checks are renewed too.
        """
        check = texts.check(
            self.pull.head_sha,
            record,
            config=self.config,
            repository=self.services.repository,
            usage=self.usage,
            model=self.model,
        )
        return Decision(
            kind="verify",
            subject=self.subject,
            verdict=max((verdict.label for verdict in record.verdicts), key=severity, default=None),
            actions=(check,),
            reason=check.title if record.verdicts else _reasons(record.unjudged),
            abstained=None if record.verdicts else self.abstained or "no-issue",
            record=record,
            affects=tuple(dict.fromkeys((*(rival.pull for rival in record.rivals), *named_before))),
            usage=self.usage,
            model=self.model,
        )


def _content(pull: PullRequest, links: Sequence[IssueLink], services: Services) -> PullContent | None:
    """Return what a pull request changes and closes, with the earlier ones like it; None if it is not compared.

    This costs no request and no model call: hashes of the changed lines stay in the record, for later ones.
    """
    if services.config.duplicates.mode == "off":
        return None
    newest = services.history.newest(services.forge.repository, "verify")
    if newest is None:
        return None
    try:
        diff = services.forge.diff(pull.number)
    except ForgeError:
        return None
    repository = services.forge.repository.lower()
    content = PullContent(
        closes=tuple(link.number for link in links if link.repository.lower() == repository),
        lines=() if diff.omitted or diff.unlisted else _changed_lines(parse(diff.text)),
    )
    earlier = {
        decision.subject.number: decision.record.content
        for decision in newest
        if isinstance(decision.record, VerifyRecord)
        and decision.record.content is not None
        and decision.subject.number < pull.number
    }
    twins: list[Twin] = []
    for number, other in sorted(earlier.items()):
        closes = tuple(sorted(set(content.closes) & set(other.closes)))
        common = len(set(content.lines) & set(other.lines))
        share = 100 * common // len(content.lines) if content.lines else 0
        if closes or share >= SAME_LINES:
            twins.append(Twin(number=number, closes=closes, share=share if share >= SAME_LINES else 0))
    return content.model_copy(update={"twins": tuple(twins)})


def _changed_lines(diff: Diff) -> tuple[str, ...]:
    """Return the sorted hashes of the changed lines with a letter or digit; none if there are too many."""
    lines = {
        f"{file.path}\0{line.mark}{' '.join(line.text.split())}"
        for file in diff.files
        for hunk in file.hunks
        for line in hunk.lines
        if line.mark != " " and any(character.isalnum() for character in line.text)
    }
    if len(lines) > MAX_LINES:
        return ()
    return tuple(sorted(hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:10] for line in lines))
