"""Output bouncer: does this patch solve the issue that it says it solves?

The answer is one check run. No linked issue is an abstention that the check shows, not a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot import events, pulls
from bot.actions import Decision, Usage
from bot.bouncers import memory, output_check
from bot.bouncers import output as bouncer
from bot.bouncers.labels import severity
from bot.bouncers.links import closing_links
from bot.bouncers.output import OutputVerdict
from bot.bouncers.output_check import Unjudged
from bot.domain import Issue, PullRequest, Subject
from bot.errors import BudgetExceeded, ForgeError, ModelError, NotFound, NotRecorded
from bot.events import Event
from bot.forge.protocol import IssueLink
from bot.models import investigation
from bot.models.investigation import Notes
from bot.models.protocol import Prompt
from bot.services import Services

#: Linked issues that are judged; a pull request that closes more is not about one thing.
MAX_ISSUES = 5


def handle(event: Event, services: Services) -> Decision | None:
    """Judge the pull request of an event against the issues that it closes; None where nothing asks for it."""
    if services.config.verify.mode == "off":
        return None
    asked = pulls.asked(event, services, "verify", output_check.NAME)
    if asked is None:
        return None
    pull = asked.pull_request
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    past = services.history.decisions(subject.key, "verify", "commands")
    left_alone = pulls.why_not(pull, services.config.pulls)
    if left_alone is None and memory.paused(past):
        left_alone = "skipped:paused", "paused by a maintainer"
    if left_alone and not asked.explicitly:
        return _abstain(subject, pull, *left_alone, services)
    links = _links(pull, services)
    if not links:
        return _abstain(subject, pull, "no-issue", "no linked issue", services)
    issues, unjudged = _issues(links, services)
    judged = {str(issue.number): issue.revision for issue in issues}
    if isinstance(event, events.PullRequestEdited) and _same(past, subject, judged):
        return None
    return _Judgement(subject, pull, services).decide(issues, unjudged, judged)


def _abstain(subject: Subject, pull: PullRequest, word: str, why: str, services: Services) -> Decision:
    shown = services.config.verify.mode == "check" and pull.state == "open"
    actions = (output_check.skipped(pull.head_sha, why),) if shown else ()
    return Decision(kind="verify", subject=subject, actions=actions, abstained=word, reason=why)


def _links(pull: PullRequest, services: Services) -> tuple[IssueLink, ...]:
    """The issues that the forge links, else those that closing words name (other base branches, old servers)."""
    try:
        links = services.forge.linked_issues(pull.number)
    except NotRecorded:
        raise
    except NotFound:
        links = ()
    if links:
        return links
    web_url = services.repository.html_url.removesuffix(f"/{services.repository.full_name}")
    return closing_links(f"{pull.title}\n\n{pull.body}", services.forge.repository, web_url)


def _issues(links: Sequence[IssueLink], services: Services) -> tuple[list[Issue], list[Unjudged]]:
    issues: list[Issue] = []
    unjudged: list[Unjudged] = []
    for link in links:
        name = f"#{link.number}"
        if link.repository.lower() != services.forge.repository.lower():
            unjudged.append(Unjudged(issue=name, why="the linked issue is in another repository"))
        elif len(issues) == MAX_ISSUES:
            unjudged.append(Unjudged(issue=name, why=f"more than {MAX_ISSUES} linked issues"))
        else:
            try:
                issue = services.forge.issue(link.number)
            except NotRecorded:
                raise
            except NotFound:
                unjudged.append(Unjudged(issue=name, why="the linked issue cannot be found"))
                continue
            if issue.is_pull_request:
                unjudged.append(Unjudged(issue=name, why="what is linked is a pull request"))
            else:
                issues.append(issue)
    return issues, unjudged


def _same(past: Sequence[Decision], subject: Subject, judged: dict[str, str]) -> bool:
    """Whether exactly this code was judged against exactly these issues already."""
    last = memory.last_verdict(past)
    return last is not None and last.subject == subject and last.evidence.get("judged") == judged


class _Judgement:
    """One pull request under judgement."""

    def __init__(self, subject: Subject, pull: PullRequest, services: Services) -> None:
        self.subject, self.pull, self.services = subject, pull, services
        self.usage, self.model = Usage(), ""
        self.replies: list[dict[str, object]] = []
        self.looks = 0

    def decide(self, issues: Sequence[Issue], unjudged: list[Unjudged], judged: dict[str, str]) -> Decision:
        """One verdict an issue, one check for all."""
        config = self.services.config.verify
        patch, too_large = self._patch()
        if too_large or not issues:
            why = too_large or "; ".join(each.why for each in unjudged)
            word = "too-large" if too_large else "no-issue"
            return _abstain(self.subject, self.pull, word, why, self.services)
        verdicts: list[OutputVerdict] = []
        for issue in issues:
            outcome = self._judge(issue, patch)
            if isinstance(outcome, OutputVerdict):
                verdicts.append(outcome)
            else:
                unjudged.append(outcome)
        check = output_check.check(
            self.pull.head_sha,
            verdicts,
            unjudged,
            (),
            gate=config.gate,
            repository=self.services.repository,
            usage=self.usage,
            model=self.model,
        )
        worst = max((verdict.label for verdict in verdicts), key=severity, default=None)
        return Decision(
            kind="verify",
            subject=self.subject,
            verdict=worst,
            actions=(check,) if config.mode == "check" else (),
            reason=check.title,
            abstained=None if verdicts else "model",
            evidence={
                "verdicts": [verdict.model_dump(mode="json") for verdict in verdicts],
                "unjudged": [each.model_dump() for each in unjudged],
                "bounced": any(verdict.bounced for verdict in verdicts),
                "p_bounce": max((v.p_bounce for v in verdicts if v.p_bounce is not None), default=None),
                "judged": judged,
                "replies": self.replies,
                "tool_calls": self.looks,
                "prompt": self.services.prompts.hash(f"verify.{config.prompt}"),
                "config": self.services.config.hash,
            },
            usage=self.usage,
            model=self.model,
        )

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
        prompt = bouncer.question(services.prompts, config.prompt, issue, patch)
        prompt = prompt.model_copy(update={"subject": self.subject.key})
        name = f"#{issue.number}"
        try:
            notes = self._looked(prompt)
            self.usage += notes.usage
            self.looks += len(notes.looks)
            prompt = investigation.informed(services.prompts, prompt, notes)
            reply = bouncer.judge(services.model, prompt)
        except BudgetExceeded:
            return Unjudged(issue=name, why="skipped, today's model budget is spent")
        except ModelError as error:
            self.usage += error.usage or Usage()
            return Unjudged(issue=name, why=f"the model gave no usable answer ({error.reason})")
        self.usage += reply.usage
        self.model = reply.model
        said = {"issue": name, "prompt_hash": prompt.hash, "reply": reply.text[:20_000]}
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
