"""The review of one pull request: its code is read, the model is asked, and the findings to post are chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bot.code.change.diff import Diff, lines_shown, parse
from bot.code.change.filling import Piece
from bot.code.change.packing import BEYOND, ChangeFilters, Packed, pack
from bot.code.context.surroundings import Surroundings, surroundings
from bot.core.actions import Decision, Minimize, Skipped
from bot.core.errors import ForgeError
from bot.core.subjects import Subject
from bot.core.text import amount
from bot.features.review import texts
from bot.features.review.anchoring import outdated, unmoved
from bot.features.review.background import Background, background
from bot.features.review.doubt import Doubting
from bot.features.review.filtering import Situation, select
from bot.features.review.meaning import reformatted
from bot.features.review.proof import Proving
from bot.features.review.record import LATE, ReviewRecord, Suppressed
from bot.features.review.repair import Repairs
from bot.features.review.rounds import Scope, line_hashes, rounds
from bot.features.review.strategies import Change, Question, Result, Reviewer
from bot.features.review.texts import Page, ReviewOutcome
from bot.features.services import Services
from bot.features.shared import investigation
from bot.features.shared.finding_code import Code, around
from bot.features.shared.findings import Finding
from bot.features.shared.investigation import Notes
from bot.features.shared.pull_requests import JudgementRequest
from bot.features.shared.review_history import finding_of, live, our_comments, recall
from bot.features.shared.rights import no_run_reason
from bot.github.protocol import PullDiff, text_at


def review(request: JudgementRequest, past: Sequence[Decision], services: Services) -> Decision:
    """Review a pull request after earlier decisions on it. Raises ModelError and TransientError."""
    return _Review(request, past, services).decide()


class _Review:
    """One pull request under review."""

    def __init__(self, request: JudgementRequest, past: Sequence[Decision], services: Services) -> None:
        self.request, self.pull, self.services = request, request.pull_request, services
        self.config = services.config.review
        pull, forge = self.pull, services.forge
        self.subject = Subject(repository=forge.repository, number=pull.number, revision=pull.revision)
        may_run = no_run_reason(pull, request.command, "review") is None
        self.proves = self.config.prove and may_run and services.harnesses is not None
        self.memory = live(recall(past), pull, forge)
        self.rounds = rounds(past, self.memory, pull)
        is_same_head = self.rounds.since == pull.head_sha
        #: The time from which changes are reviewed, in words; empty if the whole change is.
        self.since = "its base branch changed" if is_same_head else self.rounds.since[:7]
        #: No finding may be posted on the pull request any more.
        self.is_over = len(self.memory.findings) >= self.config.max_total
        #: Earlier findings whose code is not in the change, and those of them whose code was in it before.
        self.gone = self.memory.outdated
        self.outdated: tuple[Finding, ...] = ()
        self.unmoved: frozenset[str] = frozenset()
        try:
            change = forge.diff(pull.number)
        except ForgeError as error:
            # GitHub refuses diffs above 20,000 lines or 300 files. A retry would not help; the summary says so.
            reason = f"the forge does not show it ({error})"
            self.packed = Packed((), Diff(), (Skipped(path="the whole change", reason=reason),))
            self.around, self.scope = Surroundings(Diff(), None, reason), Scope(Diff(), {})
        else:
            self._cut(change)

    def _cut(self, change: PullDiff) -> None:
        """Cut the change into pieces, after a look at the code around it."""
        config = self.config
        diff = parse(change.text)
        self.around = surroundings(diff, self.pull, self.services.forge if config.context_tokens else None)
        sides = self.around.sides
        same = reformatted(diff, sides) if sides else {}
        self.scope = Scope(diff, self.rounds.reviewed, sides)
        filters = ChangeFilters(config.ignore, self.services.config.pulls.paths, same, self.scope.unchanged)
        self.packed = pack(diff, config.call_tokens, config.max_calls, filters, change.omitted, sides)
        if change.unlisted:
            others = Skipped(path=f"{change.unlisted} more files", reason="not listed by GitHub")
            self.packed = replace(self.packed, skipped=(*self.packed.skipped, others))
        self.unmoved = unmoved(self.memory.findings, diff)
        self.gone = outdated((*self.memory.outdated, *self.memory.posted), diff, change.omitted)
        self.outdated = tuple(finding for finding in self.gone if finding in self.memory.posted)

    def decide(self) -> Decision:
        packed, services = self.packed, self.services
        if not packed.pieces and not packed.skipped and not packed.unchanged:
            return Decision(kind="review", subject=self.subject, abstained="empty", reason="the change is empty")
        if self.is_over:
            self.packed = packed = replace(packed, pieces=())
        self.contexts = [self.around.within(self.config.context_tokens, piece.files) for piece in packed.pieces]
        change = Change(
            title=self.pull.title,
            description=self.pull.body,
            repository=services.forge.repository,
            subject=self.subject.key,
            known_findings=tuple(f"{finding.path}: {finding.comment}" for finding in self.memory.findings),
            background=background(self.pull, packed, self.around, services) if packed.pieces else Background(),
            contexts=tuple(context.text for context in self.contexts),
        )
        look_around = self._look_around if self.config.investigate else None
        reviewer = Reviewer(services.model, services.prompts, self.config, self._look_up, look_around)
        result = reviewer.review(packed, change)
        self.doubting = Doubting(services.model, services.prompts, change, self._code, self.config.min_confidence)
        self.proving = Proving(services, self.pull, self.around.diff, packed.omitted)
        selected, suppressed = self._select(result)
        return self._decision(result, selected, suppressed)

    def _look_up(self, piece: Piece, phrases: Sequence[str]) -> str:
        context = self.around.within(self.config.context_tokens, piece.files, phrases)
        return context.text if context.looked_up else ""

    def _look_around(self, question: Question) -> Notes:
        services = self.services
        prompt = question.prompt(services.prompts, "review.single-shot")
        return investigation.investigate(
            services.model, services.prompts, prompt, services.forge, self.pull.head_sha
        )

    def _select(self, result: Result) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
        """Return the findings to post and the others, once all that are to be posted were verified and proven.

        A finding that is refuted makes room for the next one, which is then verified too.
        """
        config, memory = self.config, self.memory
        situation = Situation(
            posted=memory.posted,
            settled=(*memory.settled, *self.outdated),
            dismissed=memory.dismissed,
            unmoved=self.unmoved,
            unchanged=[finding.fingerprint for finding in result.findings if not self.scope.holds(finding)],
            remaining=max(0, config.max_total - len(memory.findings)),
            late=self.rounds.number >= LATE,
            proves=self.proves,
            muted=self.services.history.muted(self.services.forge.repository),
        )
        repairs = Repairs(self.packed.diff, self.around.text_of)
        while True:
            doubted = [finding.fingerprint for finding in result.findings if self.doubting.drops(finding)]
            findings = [self.proving.with_proof(self.doubting.with_chance(finding)) for finding in result.findings]
            selected, suppressed = select(findings, config, situation._replace(doubted=doubted), repairs.flaw)
            if self.doubting.ask([finding for finding in selected if config.doubts or finding.depends_on]):
                continue
            if not self.proves or not self.proving.prove(selected, self.doubting.doubts):
                return selected, suppressed

    def _code(self, finding: Finding) -> Code:
        """Return the code around a finding, with what it depends on looked up. No line comes twice."""
        packed, budget = self.packed, self.config.context_tokens
        is_short = sum(piece.tokens for piece in packed.pieces) <= budget
        source = None
        if self.around.sides is None:
            source = text_at(self.services.forge, finding.path, self.pull.head_sha)
        code = around(finding, packed.diff, source)
        paths = {finding.path, *(place.rpartition(":")[0] for place in finding.places)}
        files = [file for file in packed.files_shown if file.path in paths]
        visible = lines_shown(packed.files_shown) if is_short else code.visible
        context = self.around.within(budget, files, finding.depends_on, visible)
        whole = "\n\n".join(piece.text for piece in packed.pieces) if is_short else ""
        return replace(code, whole=whole, context=context.text)

    def _decision(
        self, result: Result, selected: tuple[Finding, ...], suppressed: tuple[Suppressed, ...]
    ) -> Decision:
        """Return the decision to post a review, a summary and the check, as far as there is something to say."""
        packed = self.packed
        asked_about = {path for piece in packed.pieces for path in piece.paths}
        record = self._record(result, selected, suppressed, asked_about)
        paths = asked_about - {file.path for file in result.unread}
        outcome = ReviewOutcome(
            verdict=self._verdict(result, selected),
            reason=self._reason(result, record),
            record=record,
            model=result.model,
            about=str(self.rounds.number) if self.rounds.again else "",
            max_total=self.config.max_total,
            memory=self.memory,
            gone=self.gone,
            lines=sum(self.scope.changed.get(path, 0) for path in paths),
            files=len(paths),
            all_files=len(self.around.diff.files),
            too_slow=tuple(dict.fromkeys(path for context in self.contexts for path in context.too_slow)),
        )
        page = Page(self.services.repository, self.pull, self.since)
        actions = texts.actions(outcome, page, is_explicit=self.request.is_explicit)
        return Decision(
            kind="review",
            subject=self.subject,
            verdict=outcome.verdict,
            actions=(*actions, *self._minimized(), texts.check(outcome, page)),
            reason=outcome.reason,
            record=record,
            only_open=not self.request.is_explicit,
            usage=result.usage + self.doubting.usage + self.proving.usage,
            model=result.model,
        )

    def _minimized(self) -> tuple[Minimize, ...]:
        """Return the actions that hide the comments whose code is no longer in the change."""
        if not any(finding.line is not None for finding in self.outdated):
            return ()
        comments = our_comments(self.pull.number, self.services.forge)
        return tuple(
            Minimize(node_id=comment.node_id, why="OUTDATED")
            for comment in comments
            if finding_of(comment, self.outdated)
        )

    def _verdict(self, result: Result, selected: Sequence[Finding]) -> str:
        """Return ``defects`` if there are new findings, ``clean`` if not; ``not_reviewed`` if nothing was read."""
        if selected:
            return "defects"
        is_old = bool(self.packed.unchanged) and not self.is_over
        return "clean" if result.replies or self.packed.reformatted or is_old else "not_reviewed"

    def _reason(self, result: Result, record: ReviewRecord) -> str:
        """Return the outcome in one sentence."""
        if self.packed.reformatted:
            return f"{self.packed.reformatted}: no model was asked"
        if self.is_over:
            count = amount(len(self.memory.findings), "finding was", "findings were")
            return f"{count} posted, review.max_total allows {self.config.max_total}"
        if not result.replies:
            is_old = self.packed.unchanged and self.since
            return f"nothing is new since {self.since}" if is_old else "there was nothing to review"
        count = amount(len(record.posted), "new finding")
        return f"{count}, {len(record.suppressed)} held back, {len(record.dropped)} dropped"

    def _record(
        self,
        result: Result,
        selected: tuple[Finding, ...],
        suppressed: tuple[Suppressed, ...],
        asked_about: set[str],
    ) -> ReviewRecord:
        """Return every finding with its outcome, and the counts."""
        packed, services = self.packed, self.services
        too_large = {file.path for file in packed.skipped if file.reason.endswith(BEYOND)}
        # Files that need no other review until they change.
        reviewed = {*packed.unchanged, *asked_about} - too_large - {file.path for file in result.unread}
        fates = Counter(f"suppressed:{finding.reason}" for finding in suppressed)
        fates.update(f"dropped:{finding.reason}" for finding in result.dropped)
        reported = len(selected) + sum(fates.values())
        return ReviewRecord(
            posted=selected,
            suppressed=suppressed,
            dropped=result.dropped,
            counts={"reported": reported, "posted": len(selected), **dict(sorted(fates.items()))},
            outdated=tuple(finding.fingerprint for finding in self.outdated),
            dismissed=tuple(finding.fingerprint for finding in self.memory.dismissed),
            skipped=(*packed.skipped, *result.unread),
            reviewed=line_hashes(self.around.diff, () if self.is_over else reviewed),
            base=self.pull.base_ref,
            rounds=len(result.replies),
            looks=result.looks,
            agreement=dict(sorted(Counter(str(finding.looks) for finding in result.findings).items())),
            proofs=dict(Counter(str(proof.outcome) for proof in self.proving.proofs.values())),
            doubts=tuple(self.doubting.doubts.values()),
            context=tuple(context.without_text() for context in self.contexts),
            tool_calls=result.tool_calls,
            tokens=tuple(piece.tokens for piece in packed.pieces),
            replies=result.replies,
            strategy=self.config.strategy,
            prompt=services.prompts.hash(f"review.{self.config.strategy}"),
            config=services.config.hash,
        )
