"""The comments of a review (on lines, above them, sticky summary) and its record. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from bot.code.diff import Diff
from bot.code.packing import BEYOND, REFORMATTED, SPACED, Packed
from bot.code.page import Skipped
from bot.core.actions import Action, InlineComment, SubmitReview, UpsertComment, Usage
from bot.core.markdown import clean, clean_line, code_span, fence
from bot.core.redaction import redact
from bot.core.subjects import PullRequest, Repository
from bot.core.text import cap, visible
from bot.features.review.anchoring import outdated
from bot.features.review.doubt import Doubting
from bot.features.review.proof import Proving
from bot.features.review.record import Doubt, ReviewRecord, Suppressed
from bot.features.review.rounds import Rounds, Scope, line_hashes
from bot.features.review.strategies import Result
from bot.features.shared.findings import Finding
from bot.features.shared.labels import ModelReply
from bot.features.shared.pull_requests import not_analysed
from bot.features.shared.review_history import PastFindings
from bot.models.protocol import caveat

#: Characters of a model's raw reply that are kept.
REPLY = 20_000


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The outcome of a review."""

    packed: Packed
    diff: Diff
    result: Result
    selected: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    gone: tuple[Finding, ...]
    memory: PastFindings
    doubting: Doubting
    rounds: Rounds
    scope: Scope
    max_total: int
    proving: Proving | None = None
    too_slow: tuple[str, ...] = ()

    @property
    def usage(self) -> Usage:
        """The usage of the looks, the second questions and the proofs."""
        return self.result.usage + self.doubting.usage + (self.proving.usage if self.proving else Usage())

    @property
    def dropped(self) -> int:
        """The number of findings that the second question refuted."""
        return sum(finding.reason == "doubted" for finding in self.suppressed)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Files that no model saw, or without a usable answer."""
        return (*self.packed.skipped, *self.result.unread)

    @property
    def is_over(self) -> bool:
        """True if no finding may be posted on the pull request any more."""
        return self.rounds.posted >= self.max_total

    @property
    def paths_read(self) -> frozenset[str]:
        """Files that need no other look until they change."""
        if self.is_over:
            return frozenset()
        too_large = {file.path for file in self.packed.skipped if file.reason.endswith(BEYOND)}
        unread = too_large | {file.path for file in self.result.unread}
        return frozenset({*self.packed.unchanged, *self.shown} - unread)

    @property
    def shown(self) -> set[str]:
        """Files that the model was asked about."""
        return {path for piece in self.packed.pieces for path in piece.paths}

    @property
    def verdict(self) -> str:
        """``defects`` if there are new findings, ``clean`` if not; ``not_reviewed`` if nothing was looked at."""
        if self.selected:
            return "defects"
        is_old = bool(self.packed.unchanged) and not self.is_over
        return "clean" if self.result.rounds or self.packed.reformatted or is_old else "not_reviewed"

    @property
    def reason(self) -> str:
        """The outcome in one sentence."""
        if self.packed.reformatted:
            return f"{self.packed.reformatted}: no model was asked"
        if self.is_over:
            return f"{self.rounds.posted} findings were posted, review.max_total allows {self.max_total}"
        if not self.result.rounds:
            new = self.packed.unchanged and self.rounds.since
            return f"nothing changed since {self.rounds.since[:7]}" if new else "there was nothing to review"
        count = "1 new finding" if len(self.selected) == 1 else f"{len(self.selected)} new findings"
        return f"{count}, {len(self.suppressed)} held back, {len(self.result.dropped)} dropped"


def actions(outcome: Conclusion, page: Page, *, is_explicit: bool) -> tuple[Action, ...]:
    """Return at most one review and one sticky comment; nothing if there is nothing to say.

    ``is_explicit``: a person asked for this review and gets an answer in any case.
    """
    review = _review(outcome, page)
    summary = _summary(outcome, page, is_explicit=is_explicit)
    if review is None and summary is not None and outcome.selected:
        block = handover(outcome.selected, outcome.doubting.doubts)
        summary = summary.model_copy(update={"body": f"{summary.body}\n\n{block}"})
    if note := not_analysed(outcome.too_slow):
        if review is not None:
            review = review.model_copy(update={"body": f"{review.body}\n\n{note}"})
        elif summary is not None:
            summary = summary.model_copy(update={"body": f"{summary.body}\n\n{note}"})
    return tuple(action for action in (review, summary) if action is not None)


def _review(outcome: Conclusion, page: Page) -> SubmitReview | None:
    placed = tuple(inline(finding, page) for finding in outcome.selected if finding.line is not None)
    if not placed:
        return None
    body = opening(len(placed), outcome.skipped, outcome.result.model, page, outcome.dropped)
    return SubmitReview(
        number=page.pull.number,
        commit_id=page.pull.head_sha,
        body=f"{body}\n\n{handover(outcome.selected, outcome.doubting.doubts)}",
        comments=placed,
    )


def _summary(outcome: Conclusion, page: Page, *, is_explicit: bool) -> UpsertComment | None:
    memory, number = outcome.memory, page.pull.number
    standing = (finding for finding in memory.posted if finding not in outcome.gone)
    unplaced = [finding for finding in (*standing, *outcome.selected) if finding.line is None]
    gone = (*outdated(memory.gone, outcome.diff, outcome.packed.omitted), *outcome.gone)
    body = summary(unplaced, outcome.skipped, gone, page)
    if body is None and is_explicit and not outcome.selected:
        over = enough(outcome.rounds.posted, page)
        body = over if outcome.is_over else nothing_found(page, outcome.result.model)
    if body is not None:
        return UpsertComment(task="review", number=number, body=body)
    if memory.summarised:
        return UpsertComment(task="review", number=number, body=settled(page), only_edit=True)
    return None


def record(outcome: Conclusion) -> ReviewRecord:
    """Return every finding with its outcome, and the counts."""
    result, proofs = outcome.result, outcome.proving.proofs if outcome.proving else {}
    return ReviewRecord(
        posted=outcome.selected,
        suppressed=outcome.suppressed,
        dropped=result.dropped,
        counts=_counts(outcome),
        outdated=tuple(finding.fingerprint for finding in outcome.gone),
        dismissed=tuple(finding.fingerprint for finding in outcome.memory.dismissed),
        skipped=outcome.skipped,
        reviewed=line_hashes(outcome.diff, outcome.paths_read),
        rounds=len(result.rounds),
        looks=result.looks,
        agreement=dict(sorted(Counter(str(finding.looks) for finding in result.findings).items())),
        proofs=dict(Counter(str(proof.outcome) for proof in proofs.values())),
        doubts=tuple(outcome.doubting.doubts.values()),
        tokens=tuple(piece.tokens for piece in outcome.packed.pieces),
        replies=tuple(
            ModelReply(prompt_hash=round_.prompt_hash, reply=round_.reply.text[:REPLY]) for round_ in result.rounds
        ),
    )


def _counts(outcome: Conclusion) -> dict[str, int]:
    """Return the number of reported findings, and of each outcome (``suppressed:muted``, ``dropped:...``)."""
    fates = Counter(f"suppressed:{finding.reason}" for finding in outcome.suppressed)
    fates.update(f"dropped:{finding.reason}" for finding in outcome.result.dropped)
    posted = len(outcome.selected)
    return {"reported": posted + sum(fates.values()), "posted": posted, **dict(sorted(fates.items()))}


#: Characters of one finding's text, of one name, and bullets of one list.
COMMENT = 1_200
NAME = 200
BULLETS = 20

#: Reasons to skip a file that are no news: the maintainers' globs, and files that no person reads.
EXPECTED = frozenset({"review.ignore", "pulls.paths", "binary", "lock file", "vendored", "generated"}) | {
    "minified",
    REFORMATTED,
    SPACED,
}


@dataclass(frozen=True, slots=True)
class Page:
    """The pull request of the texts, for the host and permalinks; ``since`` is the last reviewed head, if any."""

    repository: Repository
    pull: PullRequest
    since: str = ""

    @property
    def reviewed(self) -> str:
        """The reviewed head, and the head it is compared with, if any."""
        head = self.pull.head_sha[:7]
        return f"{head} (changes since {self.since[:7]})" if self.since else head

    def link(self, path: str) -> str:
        """Return the path as code, linked to the file at the reviewed commit."""
        name = path_span(path)
        if not self.repository.html_url:
            return name
        return f"[{name}]({self.repository.html_url}/blob/{self.pull.head_sha}/{quote(path)})"


def inline(finding: Finding, page: Page) -> InlineComment:
    """Return the comment with a finding on its line."""
    assert finding.line is not None
    parts = (
        clean(finding.comment, host=page.repository.host, limit=COMMENT),
        f"The same in {', '.join(map(path_span, finding.places))}." if finding.places else "",
        f"Severity: {finding.severity}. *AI review, may be wrong.*",
        _proven(finding),
    )
    return InlineComment(
        path=finding.path,
        line=finding.line,
        side=finding.side,
        start_line=finding.start_line,
        body="\n\n".join(filter(None, parts)),
        suggestion=finding.suggestion,
        fingerprint=finding.fingerprint,
    )


def _proven(finding: Finding) -> str:
    proof = finding.proof
    if proof is None or not finding.proven:
        return ""
    return "\n".join(
        [
            f"Proven: {code_span(proof.command, limit=COMMENT)} passes before the change and fails after it.",
            "",
            "<details><summary>Test and output</summary>",
            "",
            fence(redact(proof.test)),
            "",
            fence(redact(proof.output)),
            "",
            "</details>",
        ]
    )


def opening(count: int, skipped: Sequence[Skipped], model: str, page: Page, dropped: int = 0) -> str:
    """Return the text above the findings. ``dropped`` is the number that the second question refuted."""
    target = "if it is wrong" if count == 1 else "to any that is wrong"
    defects = amount(count, "possible defect")
    lines = [f"AI review of {page.reviewed}: {defects}. Reply `/bouncer dismiss` {target}. `{model}`"]
    if note := caveat(model):
        lines.append(f"_{note}_")
    if dropped:
        lines.append(f"Dropped after a second look: {dropped}.")
    if left_out := [file for file in skipped if file.reason in EXPECTED]:
        lines.append(f"Not reviewed: {_names(left_out)}.")
    return "\n\n".join(lines)


def summary(
    unplaced: Sequence[Finding], skipped: Sequence[Skipped], gone: Sequence[Finding], page: Page
) -> str | None:
    """Return the sticky summary; None if there is nothing to say."""
    if not (unplaced or gone or any(file.reason not in EXPECTED for file in skipped)):
        return None
    defects = (
        f"{page.link(finding.path)}: {clean_line(finding.comment, host=page.repository.host, limit=COMMENT)} "
        f"Severity: {finding.severity}."
        for finding in unplaced
    )
    unread = (f"{path_span(file.path)}: {clean_line(file.reason, limit=NAME)}" for file in skipped)
    resolved = (
        f"{path_span(finding.path)}: {_first_sentence(finding.comment, page.repository.host)}" for finding in gone
    )
    parts = (
        f"**AI review of {page.pull.head_sha[:7]}**",
        section("Possible defects that no single line shows:", defects),
        section("Not reviewed:", unread),
        section("No longer in the change:", resolved),
    )
    return "\n\n".join(filter(None, parts))


def settled(page: Page) -> str:
    """Return the sticky summary when nothing is left to say in it."""
    return f"**AI review of {page.pull.head_sha[:7]}**: nothing to add."


def nothing_found(page: Page, model: str) -> str:
    """Return the answer to a person who asked for a review without findings."""
    name = f" `{model}`" if model else ""
    note = caveat(model)
    text = f"**AI review of {page.reviewed}**: no defects found.{name}"
    return f"{text}\n\n_{note}_" if note else text


def enough(posted: int, page: Page) -> str:
    """Return the answer to a person who asked for a review when no finding may be posted any more."""
    head = page.pull.head_sha[:7]
    most = "the most for one pull request (`review.max_total`)"
    return f"**No AI review of {head}**: I have posted {posted} findings here, {most}."


def handover(findings: Sequence[Finding], doubts: Mapping[str, Doubt]) -> str:
    """Return the findings as one folded block of plain text, which tells a coding agent facts and no task."""
    items = (
        f"{number}. {_plain(finding.path)}, {_lines_of(finding)}\n"
        f"   Breaks: {_plain(finding.comment)}\n"
        f"   Check: {_plain(_how_to_check(finding, doubts.get(finding.fingerprint)))}"
        for number, finding in enumerate(findings, start=1)
    )
    return "\n".join(
        ["<details><summary>For a coding agent</summary>", "", fence("\n".join(items), "text"), "", "</details>"]
    )


def _lines_of(finding: Finding) -> str:
    if finding.line is None:
        return "no single line"
    removed = "removed " if finding.side == "LEFT" else ""
    if finding.start_line is not None:
        return f"{removed}lines {finding.start_line} to {finding.line}"
    return f"{removed}line {finding.line}"


def _how_to_check(finding: Finding, doubt: Doubt | None) -> str:
    if finding.proof is not None and finding.proven:
        return f"{finding.proof.command} (the test is in the comment) fails; before the change it passes."
    if doubt is not None and doubt.breaks_when and doubt.instead:
        return f"With {doubt.breaks_when}: {doubt.instead}"
    return f"Not executed. The code: {' '.join(finding.code)}"


def _plain(text: str) -> str:
    """Return a text on one line, for a fenced block."""
    return cap(" ".join(visible(redact(text)).split()), COMMENT)


def amount(number: int, noun: str) -> str:
    """Return ``1 file`` or ``2 files``."""
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def section(title: str, items: Iterable[str]) -> str:
    """Return a list below its title; empty if there are no items."""
    bullets = [f"- {item}" for item in items]
    more = len(bullets) - BULLETS
    if more > 0:
        bullets = [*bullets[:BULLETS], f"- and {more} more"]
    return "\n".join([title, *bullets]) if bullets else ""


def _names(skipped: Sequence[Skipped]) -> str:
    names = ", ".join(f"{path_span(file.path)} ({file.reason})" for file in skipped[:BULLETS])
    more = len(skipped) - BULLETS
    return f"{names} and {more} more" if more > 0 else names


def path_span(path: str) -> str:
    """Return a path as a code span, so that it cannot become markup."""
    path = redact(path)
    short = path if len(path) <= NAME // 2 else f"…{path[-NAME // 2 :]}"
    return code_span(short, limit=NAME)


def _first_sentence(text: str, host: str) -> str:
    first = text.replace("\n", " ").split(". ")[0]
    return clean_line(first, host=host, limit=NAME)
