"""The judgement of one pull request: the code around its patch, the model's verdicts, and runs of tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from bot.code.context import Surroundings, surroundings
from bot.code.diff import Diff, parse
from bot.code.file_classes import exempts_itself, reviewable_part
from bot.core.actions import CodeContext, Usage
from bot.core.errors import BudgetExceeded, ModelError
from bot.core.subjects import Issue
from bot.features.services import Services
from bot.features.shared import investigation
from bot.features.shared.investigation import Notes
from bot.features.shared.labels import ModelReply, model_reply
from bot.features.verify import description, judgement
from bot.features.verify.handler import PatchCase, PatchOutcome
from bot.features.verify.record import ExecutedTest, NewTests, OutputVerdict, Unjudged, VerifyRecord
from bot.features.verify.runs import run_new_tests, run_stored
from bot.models.protocol import Prompt

T = TypeVar("T", bound=BaseModel)


def judge(case: PatchCase, services: Services) -> PatchOutcome:
    """Return one verdict for each issue, or one for the description, and the outcomes of tests.

    Raises TransientError.
    """
    return _Judging(case, services).judge()


class _Judging:
    """The judgement of one pull request as it proceeds."""

    def __init__(self, case: PatchCase, services: Services) -> None:
        self.case, self.services = case, services
        self.config = services.config.verify
        self.verdicts: list[OutputVerdict] = []
        self.unjudged: list[Unjudged] = []
        self.runs: tuple[ExecutedTest, ...] = ()
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

    def judge(self) -> PatchOutcome:
        case, patch = self.case, self.case.patch
        diff = parse(patch)
        # The paper asks about the whole patch, without context; it knows no pull requests without an issue.
        part = patch if self.config.prompt == "paper" and not case.by_description else self._prepare(patch, diff)
        verdict = self._graded if self.config.prompt == "rubric" else self._verdict
        for issue in case.issues:
            self._judge(f"#{issue.number}", partial(verdict, issue, part))
        if case.by_description:
            self.prompts = ("verify.description",)
            self._judge("the description", partial(self._of_description, part))
        self._run()
        if self.config.tests:
            self.new_tests = run_new_tests(case.pull, diff, self.services, case.no_run)
        return PatchOutcome(self._record(), self.usage, self.model, self._abstained)

    @property
    def _abstained(self) -> str:
        """The word for why the model gave no verdict; empty if it did, or was not asked."""
        if self.spent:
            return "skipped:budget"
        if any(issue.why == description.NO_BEHAVIOUR for issue in self.unjudged):
            return "no-behaviour"
        return f"model:{self.failure.reason}" if self.failure else ""

    def _prepare(self, patch: str, diff: Diff) -> str:
        """Read the code around the patch, and return the part of the patch to judge."""
        around = surroundings(diff, self.case.pull, self.services.forge if self.config.context_tokens else None)
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
        if description.names_no_behaviour(self.case.pull, self.around.diff):
            return None
        prompt = description.question(
            self.services.prompts, self.case.pull, patch, self.context.text, self.omitted
        )
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
        prompt = prompt.model_copy(update={"subject": self.case.subject.key})
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
        question = prompt.model_copy(update={"subject": self.case.subject.key})
        notes = investigation.investigate(
            services.model, services.prompts, question, services.forge, self.case.pull.base_sha
        )
        self.usage += notes.usage
        self.looks += len(notes.looks)
        return investigation.informed(services.prompts, prompt, notes), notes

    def _run(self) -> None:
        """Run the issues' stored reproducing tests on base and head, if that is wanted and allowed.

        A patch bounces if one still fails. A pass changes nothing: patches that pass a drafted test are often
        wrong, and the code under test could forge it.
        """
        if not self.config.execute or self.case.no_run is not None:
            return
        issues = [verdict.issue for verdict in self.verdicts if verdict.issue is not None]
        self.runs = run_stored(issues, self.case.pull, self.services)
        failed = {run.issue for run in self.runs if run.solved is False}
        self.verdicts = [
            verdict.model_copy(update={"bounced": True}) if verdict.issue in failed else verdict
            for verdict in self.verdicts
        ]

    def _record(self) -> VerifyRecord:
        chances = [verdict.p_bounce for verdict in self.verdicts if verdict.p_bounce is not None]
        return VerifyRecord(
            verdicts=tuple(self.verdicts),
            unjudged=tuple(self.unjudged),
            bounced=any(verdict.bounced for verdict in self.verdicts),
            p_bounce=max(chances, default=None),
            runs=self.runs,
            new_tests=self.new_tests,
            exempt=self.exempt,
            replies=tuple(self.replies),
            tool_calls=self.looks,
            context=self.context.without_text(),
            omitted=self.omitted,
            failure=str(self.failure or ""),
            prompt=self.services.prompts.hash(*self.prompts),
        )
