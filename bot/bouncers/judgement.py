"""A pull request held against the issues that it closes: one verdict an issue, one check for all."""

from __future__ import annotations

from collections.abc import Sequence

from bot.bouncers import output as bouncer
from bot.bouncers import output_check
from bot.bouncers.labels import severity
from bot.bouncers.output import OutputVerdict
from bot.bouncers.output_check import ExecutedTest, Unjudged
from bot.core.actions import Decision, Usage
from bot.core.model import Issue, PullRequest, Subject
from bot.errors import BudgetExceeded, ForgeError, ModelError, NotRecorded
from bot.models import investigation
from bot.models.investigation import Notes
from bot.models.protocol import Prompt, voices
from bot.reproduce import on_patch
from bot.review.context import CodeContext, surroundings
from bot.review.diff import parse
from bot.review.file_classes import judged
from bot.services import Services


def abstain(subject: Subject, pull: PullRequest, word: str, why: str) -> Decision:
    """Nothing was judged; the check says why, so that a required check does not wait for ever."""
    actions = (output_check.skipped(pull.head_sha, why),) if pull.state == "open" else ()
    return Decision(kind="verify", subject=subject, actions=actions, abstained=word, reason=why)


def held_against(verdict: OutputVerdict, runs: Sequence[ExecutedTest]) -> OutputVerdict:
    """The verdict, bounced where the issue's reproducing test still fails.

    A pass changes nothing: patches that pass a drafted test are often wrong, and the code under test could have
    forged it.
    """
    failed = any(run.issue == verdict.issue and run.solved is False for run in runs)
    return verdict.model_copy(update={"bounced": True}) if failed else verdict


class Judgement:
    """One pull request under judgement; ``no_run``: why its head may not be executed, None where it may."""

    def __init__(self, subject: Subject, pull: PullRequest, services: Services, *, no_run: str | None) -> None:
        self.subject, self.pull, self.services, self.no_run = subject, pull, services, no_run
        self.usage, self.model = Usage(), ""
        self.replies: list[dict[str, object]] = []
        self.looks = 0
        self.spent = False
        self.context = CodeContext()
        self.omitted: tuple[str, ...] = ()

    def decide(self, issues: Sequence[Issue], unjudged: list[Unjudged], judged: dict[str, str]) -> Decision:
        """One verdict an issue, one check for all."""
        patch, unfit = self._patch()
        if unfit or not issues:
            why = unfit or "; ".join(each.why for each in unjudged)
            word = "unfit" if unfit else "no-issue"
            return abstain(self.subject, self.pull, word, why)
        patch = self._prepare(patch)
        verdicts: list[OutputVerdict] = []
        for issue in issues:
            outcome = self._judge(issue, patch)
            if isinstance(outcome, OutputVerdict):
                verdicts.append(outcome)
            else:
                unjudged.append(outcome)
        runs = self._run([verdict.issue for verdict in verdicts])
        verdicts = [held_against(verdict, runs) for verdict in verdicts]
        return self._decision(verdicts, unjudged, runs, judged)

    def _decision(
        self,
        verdicts: Sequence[OutputVerdict],
        unjudged: Sequence[Unjudged],
        runs: Sequence[ExecutedTest],
        judged: dict[str, str],
    ) -> Decision:
        """The check, and what is remembered beside it."""
        config = self.services.config.verify
        check = output_check.check(
            self.pull.head_sha,
            verdicts,
            unjudged,
            runs,
            gate=config.gate,
            repository=self.services.repository,
            usage=self.usage,
            model=self.model,
            note=self.no_run or "",
        )
        worst = max((verdict.label for verdict in verdicts), key=severity, default=None)
        return Decision(
            kind="verify",
            subject=self.subject,
            verdict=worst,
            actions=(check,),
            reason=check.title if verdicts else "; ".join(each.why for each in unjudged),
            abstained=None if verdicts else "skipped:budget" if self.spent else "model",
            evidence={
                "verdicts": [verdict.model_dump(mode="json") for verdict in verdicts],
                "unjudged": [each.model_dump() for each in unjudged],
                "bounced": any(verdict.bounced for verdict in verdicts),
                "p_bounce": max((v.p_bounce for v in verdicts if v.p_bounce is not None), default=None),
                "runs": [run.model_dump() for run in runs],
                "judged": judged,
                "replies": self.replies,
                "tool_calls": self.looks,
                "context": self.context.evidence(),
                "omitted": list(self.omitted),
                "prompt": self.services.prompts.hash(f"verify.{config.prompt}"),
                "config": self.services.config.hash,
                "harm": config.harm,
            },
            usage=self.usage,
            model=self.model,
        )

    def _prepare(self, patch: str) -> str:
        """The patch as it is judged; the code around it is gathered beside."""
        config = self.services.config.verify
        if config.prompt == "paper":
            return patch  # the paper's question is about the patch, the whole of it and nothing else
        diff = parse(patch)
        around = surroundings(diff, self.pull, self.services.forge if config.context_tokens else None)
        self.context = around.within(config.context_tokens)
        patch, self.omitted = judged(patch, diff)
        return patch

    def _run(self, issues: Sequence[int]) -> tuple[ExecutedTest, ...]:
        """The issues' stored reproducing tests on base and head, where that is wanted and allowed."""
        if not self.services.config.verify.execute or self.no_run is not None:
            return ()
        return on_patch.run_stored(issues, self.pull, self.services)

    def _patch(self) -> tuple[str, str]:
        """The patch, or why it cannot be judged as a whole: half a patch would get half a verdict."""
        try:
            diff = self.services.forge.diff(self.pull.number)
        except NotRecorded:
            raise
        except ForgeError as error:
            return "", f"the diff cannot be read ({error})"
        if diff.omitted:
            return "", f"the patch is too large, GitHub leaves out {len(diff.omitted)} of its files"
        if len(diff.text) > bouncer.MAX_PATCH:
            return "", f"the patch is too large ({len(diff.text):,} characters)"
        return diff.text, "" if diff.text.strip() else "the patch is empty"

    def _judge(self, issue: Issue, patch: str) -> OutputVerdict | Unjudged:
        config, services = self.services.config.verify, self.services
        prompt = bouncer.question(
            services.prompts, config.prompt, issue, patch, context=self.context.text, omitted=self.omitted
        )
        prompt = prompt.model_copy(update={"subject": self.subject.key})
        name = f"#{issue.number}"
        try:
            notes = self._looked(prompt)
            self.usage += notes.usage
            self.looks += len(notes.looks)
            prompt = investigation.informed(services.prompts, prompt, notes)
            reply = services.model.complete(prompt, bouncer.OutputReply)
        except BudgetExceeded:
            self.spent = True
            return Unjudged(issue=name, why="skipped, today's model budget is spent")
        except ModelError as error:
            self.usage += error.usage or Usage()
            return Unjudged(issue=name, why=f"the model gave no usable answer ({error.reason})")
        self.usage += reply.usage
        self.model = reply.model
        said = {"issue": name, "prompt_hash": prompt.hash, "reply": reply.text[:20_000], **voices(reply)}
        self.replies.append({**said, **investigation.evidence(notes)})
        return bouncer.verdict(reply.value, issue.number, config)

    def _looked(self, prompt: Prompt) -> Notes:
        """What the code at the base commit says, where the maintainers want it looked at."""
        services = self.services
        if not services.config.verify.investigate:
            return Notes()
        return investigation.investigate(
            services.model, services.prompts, prompt, services.forge, self.pull.base_sha
        )
