"""From a result to a decision: a comment, a draft pull request, a label, or an abstention with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.actions import Action, Decision, OpenDraftPull, SetLabels, UpsertComment, Usage
from bot.core.model import Issue, Subject
from bot.models.protocol import caveat
from bot.reproduce import evidence, texts
from bot.reproduce.attempt import Reproduction
from bot.reproduce.command import TestCommand
from bot.reproduce.texts import Place
from bot.services import Services


@dataclass(frozen=True)
class Deciding:
    """One issue, and how its people want to hear of it."""

    subject: Subject
    issue: Issue
    services: Services
    explicitly: bool
    """Somebody asked for it: then they are told what was tried in vain, too."""

    def decide(self, result: Reproduction, command: TestCommand, place: Place) -> Decision:
        """The decision on a result."""
        if result.state == "not run":
            found = self.not_run(result.abstained or "sandbox", result.reason, result.usage)
            return found.model_copy(update={"model": result.model})
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

    def not_run(self, word: str, why: str, usage: Usage | None = None) -> Decision:
        """The explicit abstention; ``word`` is what it is counted by."""
        place = Place(repository=self.services.repository, branch=self.services.repository.default_branch, sha="")
        return Decision(
            kind="reproduce",
            subject=self.subject,
            actions=(self._comment(texts.not_run(why, place)),) if self.explicitly else (),
            abstained=word,
            reason=why,
            evidence={"state": "not run"},
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
