"""Reviewer: does this change introduce a defect?

Findings are posted as one review with inline comments, and what no line can carry as a sticky summary. If there
is nothing to say, only the check run says what was looked at. A commit is never reviewed twice. After a later push
only what changed is reviewed, and only new findings are posted (see ``rounds``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.code.context import Surroundings, surroundings
from bot.code.diff import Diff, changed_paths, parse
from bot.code.packing import Packed, pack
from bot.core.actions import CodeContext, Decision, Minimize, Skipped
from bot.core.commands import Command
from bot.core.errors import ForgeError
from bot.core.events import Event
from bot.core.subjects import PullRequest, Subject
from bot.features.review import strategies, texts
from bot.features.review.anchoring import outdated
from bot.features.review.background import Background, background
from bot.features.review.dismissal import dismiss
from bot.features.review.doubt import Doubting
from bot.features.review.filtering import Earlier, Policy, select
from bot.features.review.meaning import reformatted
from bot.features.review.outcome import Material, Outcome, record
from bot.features.review.proof import Proving
from bot.features.review.record import Suppressed
from bot.features.review.repair import Repairs
from bot.features.review.rounds import LATE, Rounds, Scope, rounds
from bot.features.review.strategies import Change, Question, Result
from bot.features.review.texts import CHECK, Page
from bot.features.services import Services
from bot.features.shared import investigation, pull_requests
from bot.features.shared.finding_code import Code, around
from bot.features.shared.findings import Finding, Severity
from bot.features.shared.investigation import Notes
from bot.features.shared.pull_requests import JudgementRequest
from bot.features.shared.review_history import (
    VERDICTS,
    PastFindings,
    finding_of,
    last_on,
    live,
    our_comments,
    recall,
    submitted,
)
from bot.features.shared.rights import CommandEvent, answer, no_run_reason
from bot.github.protocol import text_at


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if the event can ask for a review or dismiss a finding."""
    return pull_requests.concerns(event, commands, frozenset({"review", "recheck", "dismiss"}), CHECK)


def handle(event: Event, services: Services) -> Decision | None:
    """Review the pull request of an event, or dismiss a finding; None if the event asks for neither."""
    if services.config.review.mode == "off":
        return None
    request = pull_requests.read_request(event, services, "review")
    if request is None:
        return dismiss(event, services) if isinstance(event, CommandEvent) else None
    pull = request.pull_request
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    past = services.history.decisions(subject.key, "review", "commands", "feedback")
    skip = None if request.is_explicit else _skip_reason(pull, services, past)
    if skip is not None:
        return Decision(kind="review", subject=subject, abstained=skip[0], reason=skip[1])
    review = _Review(request, subject, past, services)
    earlier = last_on(past, subject.revision)
    if earlier is not None and not request.is_explicit:
        return None
    if submitted(earlier):
        decision = review.abstain("skipped:reviewed", "this commit was reviewed already")
        if isinstance(event, CommandEvent) and request.command and request.command.word == "review":
            later = "A new commit gets a new review." if services.config.review.when == "push" else AGAIN
            text = f"I have reviewed {pull.head_sha[:7]} already. {later}"
            decision = decision.model_copy(update={"actions": (answer(event, text, "review"),)})
        return decision
    return review.decide()


#: The end of the answer where a push is not followed by a review.
AGAIN = "Ask again after the next commit."


def _skip_reason(pull: PullRequest, services: Services, past: Sequence[Decision]) -> tuple[str, str] | None:
    """Return why a pull request is not reviewed without being asked for it; None if it is."""
    when = services.config.review.when
    if when == "command":
        return "skipped:when", "review.when is command"
    if when == "open" and any(decision.kind == "review" and decision.verdict in VERDICTS for decision in past):
        return "skipped:when", "review.when is open, and it was reviewed before"
    return pull_requests.skip_reason(pull, services, past, changed_paths)


class _Review:
    """One pull request under review."""

    def __init__(
        self, request: JudgementRequest, subject: Subject, past: Sequence[Decision], services: Services
    ) -> None:
        self.pull, self.is_explicit = request.pull_request, request.is_explicit
        self.subject, self.past, self.services = subject, past, services
        self.config = services.config.review
        may_run = no_run_reason(self.pull, request.command, "review") is None
        self.proves = self.config.prove and may_run and services.harnesses is not None

    def decide(self) -> Decision:
        """Read the change, ask the model, and choose the findings to post."""
        if self.services.forge.pull_request(self.pull.number).head_sha != self.pull.head_sha:
            return self.abstain("superseded", "newer commits were pushed before the review began")
        memory = live(recall(self.past), self.pull, self.services.forge)
        progress = rounds(self.past, memory, self.subject.revision)
        material = self._material(memory, progress)
        packed, surrounded = material.packed, material.around
        if not packed.pieces and not packed.skipped and not packed.unchanged:
            return self.abstain("empty", "the change is empty")
        if progress.posted >= self.config.max_total:
            packed = replace(packed, pieces=())
            material = replace(material, packed=packed)
        contexts = [
            surrounded.within(self.config.context_tokens, piece.paths, visible=packed.visible)
            for piece in packed.pieces
        ]
        change = self._change(memory, packed, surrounded, contexts)
        look = strategies.looker(self.config, self.services.model, self.services.prompts)
        looking = self._look_around if self.config.investigate else None
        result = strategies.review(packed, change, look, looking)
        code = partial(self._code, packed, surrounded)
        doubting = Doubting(self.services.model, self.services.prompts, change, code, self.config.min_confidence)
        proving = Proving(self.services, self.pull, surrounded.diff, packed.omitted) if self.proves else None
        with TemporaryDirectory(prefix="bouncer-") as folder:
            unchanged = [finding.fingerprint for finding in result.findings if not material.scope.holds(finding)]
            settled = (*memory.settled, *material.gone)
            earlier = Earlier(memory.posted, settled, memory.dismissed, unchanged=unchanged)
            choose = partial(self._selected, result, self._policy(progress), earlier)
            repairs = Repairs(packed.diff, surrounded.text_of)
            selected, suppressed = choose(doubting, repairs, proving, Path(folder))
        outcome = Outcome(
            material, result, selected, suppressed, memory, doubting, progress, self.config.max_total, proving,
            contexts,
        )  # fmt: skip
        return self._decision(outcome)

    def abstain(self, word: str, why: str) -> Decision:
        """Return a decision that posts nothing."""
        return Decision(kind="review", subject=self.subject, abstained=word, reason=why)

    def _material(self, memory: PastFindings, progress: Rounds) -> Material:
        """Read the change and the code around it, and cut it into pieces."""
        config = self.config
        try:
            change = self.services.forge.diff(self.pull.number)
        except ForgeError as error:
            # GitHub refuses diffs above 20,000 lines or 300 files. A retry would not help; the summary says so.
            reason = f"the forge does not show it ({error})"
            packed = Packed((), Diff(), (Skipped(path="the whole change", reason=reason),))
            return Material(packed, Surroundings(Diff(), None, reason), Scope(Diff(), {}))
        diff = parse(change.text)
        surrounded = surroundings(diff, self.pull, self.services.forge if config.context_tokens else None)
        same = reformatted(diff, surrounded.sides) if surrounded.sides else {}
        only = self.services.config.pulls.paths
        scope = Scope(diff, progress.reviewed, surrounded.sides)
        packed = pack(
            diff, config.call_tokens, config.max_calls, config.ignore, change.omitted, same, only,
            surrounded.sides, scope.unchanged,
        )  # fmt: skip
        return Material(packed, surrounded, scope, outdated(memory.posted, diff, change.omitted))

    def _minimized(self, gone: Sequence[Finding]) -> tuple[Minimize, ...]:
        """Return what hides the comments whose code is no longer in the change."""
        if not any(finding.line is not None for finding in gone):
            return ()
        comments = our_comments(self.pull.number, self.services.forge)
        return tuple(
            Minimize(node_id=comment.node_id, why="OUTDATED") for comment in comments if finding_of(comment, gone)
        )

    def _look_around(self, question: Question) -> Notes:
        services = self.services
        prompt = question.prompt(services.prompts, "review.single-shot")
        try:
            return investigation.investigate(
                services.model, services.prompts, prompt, services.forge, self.pull.head_sha
            )
        except ForgeError:
            # Only the code around the change cannot be read: the change is reviewed without it.
            return Notes()

    def _change(
        self, memory: PastFindings, packed: Packed, surrounded: Surroundings, contexts: Sequence[CodeContext]
    ) -> Change:
        return Change(
            title=self.pull.title,
            description=self.pull.body,
            repository=self.subject.repository,
            subject=self.subject.key,
            known_findings=tuple(f"{finding.path}: {finding.comment}" for finding in memory.findings),
            background=background(self.pull, packed, surrounded, self.services) if packed.pieces else Background(),
            contexts=tuple(context.text for context in contexts),
        )

    def _selected(
        self,
        result: Result,
        policy: Policy,
        earlier: Earlier,
        doubting: Doubting,
        repairs: Repairs,
        proving: Proving | None,
        folder: Path,
    ) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
        """Return the findings to post and the others. The next one replaces one that falls, and is checked too."""
        while True:
            doubted = [finding.fingerprint for finding in result.findings if doubting.drops(finding)]
            findings = [doubting.with_chance(finding) for finding in result.findings]
            if proving:
                findings = [proving.with_proof(finding) for finding in findings]
            selected, suppressed = select(findings, policy, earlier._replace(doubted=doubted), repairs.flaw)
            if doubting.ask([finding for finding in selected if self.config.doubts or finding.depends_on]):
                continue
            if proving is None or not proving.prove(selected, doubting.doubts, folder):
                return selected, suppressed

    def _code(self, packed: Packed, surrounded: Surroundings, finding: Finding) -> Code:
        """Return the code around a finding, with what it depends on looked up. No line comes twice."""
        tokens = sum(piece.tokens for piece in packed.pieces)
        is_short = tokens <= self.config.context_tokens
        source = None
        if surrounded.sides is None:
            source = text_at(self.services.forge, finding.path, self.pull.head_sha)
        code = around(finding, packed.diff, source)
        paths = {finding.path, *(place.rpartition(":")[0] for place in finding.places)}
        visible = packed.visible if is_short else code.visible
        context = surrounded.within(self.config.context_tokens, paths, finding.depends_on, visible)
        whole = "\n\n".join(piece.text for piece in packed.pieces) if is_short else ""
        return replace(code, whole=whole, context=context.text)

    def _policy(self, progress: Rounds) -> Policy:
        config = self.config
        return Policy(
            min_severity=Severity(config.min_severity),
            max_findings=config.max_findings,
            remaining=max(0, config.max_total - progress.posted),
            min_confidence=config.min_confidence,
            doubts=config.doubts,
            late=progress.number >= LATE,
            proves=self.proves,
            muted=self.services.history.muted(self.subject.repository),
        )

    def _decision(self, outcome: Outcome) -> Decision:
        page = Page(self.services.repository, self.pull, outcome.rounds.since)
        actions = texts.actions(outcome, page, is_explicit=self.is_explicit)
        return Decision(
            kind="review",
            subject=self.subject,
            verdict=outcome.verdict,
            actions=(*actions, *self._minimized(outcome.material.gone), texts.check(outcome, page)),
            reason=outcome.reason,
            record=record(outcome).model_copy(
                update={
                    "strategy": self.config.strategy,
                    "prompt": self.services.prompts.hash(f"review.{self.config.strategy}"),
                    "config": self.services.config.hash,
                }
            ),
            usage=outcome.usage,
            model=outcome.result.model,
        )
