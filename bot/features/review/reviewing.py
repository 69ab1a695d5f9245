"""The review of one pull request: its code is read, the model is asked, and the findings to post are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.code.context import Surroundings, surroundings
from bot.code.diff import Diff, parse
from bot.code.packing import Packed, pack
from bot.core.actions import CodeContext, Decision, Skipped
from bot.core.errors import ForgeError
from bot.core.subjects import PullRequest
from bot.features.review import strategies
from bot.features.review.anchoring import outdated
from bot.features.review.background import Background, background
from bot.features.review.doubt import Doubting
from bot.features.review.filtering import Earlier, Policy, select
from bot.features.review.meaning import reformatted
from bot.features.review.outcome import Material, Parts, outcome
from bot.features.review.proof import Proving
from bot.features.review.record import LATE, ReviewOutcome, Suppressed
from bot.features.review.repair import Repairs
from bot.features.review.rounds import Rounds, Scope, rounds
from bot.features.review.strategies import Change, Question, Result
from bot.features.services import Services
from bot.features.shared import investigation
from bot.features.shared.finding_code import Code, around
from bot.features.shared.findings import Finding
from bot.features.shared.investigation import Notes
from bot.features.shared.review_history import PastFindings, live, recall
from bot.features.shared.taxonomy import Severity
from bot.github.protocol import text_at


def review(pull: PullRequest, past: Sequence[Decision], services: Services, may_run: bool) -> ReviewOutcome | None:
    """Return the outcome of a review after earlier decisions on the pull request; None if the change is empty.

    ``may_run``: tests that prove findings may be run on its head. Raises ModelError and TransientError.
    """
    return _Review(pull, past, services, may_run).review()


class _Review:
    """One pull request under review."""

    def __init__(self, pull: PullRequest, past: Sequence[Decision], services: Services, may_run: bool) -> None:
        self.pull, self.past, self.services = pull, past, services
        self.subject = f"{services.forge.repository}#{pull.number}"
        self.config = services.config.review
        self.proves = self.config.prove and may_run and services.harnesses is not None

    def review(self) -> ReviewOutcome | None:
        memory = live(recall(self.past), self.pull, self.services.forge)
        progress = rounds(self.past, memory, self.pull.revision)
        material = self._material(memory, progress)
        packed, surrounded = material.packed, material.around
        if not packed.pieces and not packed.skipped and not packed.unchanged:
            return None
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
        parts = Parts(
            material, result, selected, suppressed, memory, doubting, progress, self.config.max_total, proving,
            contexts,
        )  # fmt: skip
        return outcome(parts)

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
            repository=self.services.forge.repository,
            subject=self.subject,
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
            muted=self.services.history.muted(self.services.forge.repository),
        )
