"""The comments of a review (on lines, above them, sticky summary) and its check run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from bot.core.actions import (
    REFORMATTED,
    SPACED,
    Action,
    Conclusion,
    InlineComment,
    SetCheck,
    Skipped,
    SubmitReview,
    UpsertComment,
)
from bot.core.markdown import clean, clean_line, code_span, details, fence
from bot.core.redaction import redact
from bot.core.subjects import PullRequest, Repository
from bot.core.text import amount, cap, visible
from bot.features.review.record import CHECK, LATE, Doubt, Reason, ReviewRecord
from bot.features.shared.findings import Finding
from bot.features.shared.pull_requests import not_analysed
from bot.features.shared.review_history import PastFindings
from bot.models.protocol import caveat


@dataclass(frozen=True, slots=True)
class ReviewOutcome:
    """The outcome of a review before any text is written."""

    verdict: str
    reason: str
    record: ReviewRecord
    model: str
    max_total: int
    about: str = ""
    """Tells several reviews of one commit apart."""
    memory: PastFindings = field(default_factory=PastFindings)
    """The findings of earlier rounds."""
    gone: tuple[Finding, ...] = ()
    """Those whose code is not in the change."""
    lines: int = 0
    """Changed lines that the model was asked about, in ``files`` of ``all_files`` files."""
    files: int = 0
    all_files: int = 0
    too_slow: tuple[str, ...] = ()
    """Files that took too long to parse."""

    @property
    def is_over(self) -> bool:
        """True if no finding may be posted on the pull request any more."""
        return len(self.memory.findings) >= self.max_total

    def standing(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return those earlier findings whose code is still in the change."""
        return [finding for finding in findings if finding not in self.gone]


def actions(outcome: ReviewOutcome, page: Page, *, is_explicit: bool) -> tuple[Action, ...]:
    """Return at most one review and one sticky comment; nothing if there is nothing to say.

    ``is_explicit``: a person asked for this review and gets an answer in any case.
    """
    review = _review(outcome, page)
    summary = _summary(outcome, page, is_explicit=is_explicit, is_alone=review is None)
    return tuple(action for action in (review, summary) if action is not None)


def _review(outcome: ReviewOutcome, page: Page) -> SubmitReview | None:
    record = outcome.record
    placed = tuple(inline(finding, page) for finding in record.posted if finding.line is not None)
    if not placed:
        return None
    refuted = sum(finding.reason == "doubted" for finding in record.suppressed)
    parts = (
        opening(len(placed), record.skipped, outcome.model, page, refuted),
        handover(record),
        not_analysed(outcome.too_slow),
    )
    return SubmitReview(
        number=page.pull.number,
        commit_id=page.pull.head_sha,
        body="\n\n".join(filter(None, parts)),
        comments=placed,
        about=outcome.about,
    )


def _summary(outcome: ReviewOutcome, page: Page, *, is_explicit: bool, is_alone: bool) -> UpsertComment | None:
    """Return the sticky comment. ``is_alone``: no review is posted that says the rest."""
    record, memory = outcome.record, outcome.memory
    unplaced = [finding for finding in (*outcome.standing(memory.posted), *record.posted) if finding.line is None]
    body = summary(unplaced, record.skipped, outcome.gone, page)
    if body is None and is_explicit and not record.posted:
        body = enough(len(memory.findings), page) if outcome.is_over else nothing_found(page, outcome.model)
    if body is None and not memory.summarised:
        return None
    parts = [body or settled(page)]
    if is_alone:
        parts += [handover(record) if record.posted else "", not_analysed(outcome.too_slow)]
    text = "\n\n".join(filter(None, parts))
    return UpsertComment(task="review", number=page.pull.number, body=text, only_edit=body is None)


#: Reasons not to post a finding, for the check.
_NOT_POSTED: Mapping[Reason, str] = {
    "duplicate": "repeats another",
    "out_of_scope": "no defect",
    "dismissed": "dismissed before",
    "already_posted": "posted before",
    "unchanged": "on lines that were reviewed before",
    "muted": "of a category that is muted here",
    "below_severity": "below `review.min_severity`",
    "late": f"neither of high severity nor proven, from review {LATE} on",
    "unlikely": "below `review.min_confidence`",
    "doubted": "not upheld by a second look",
    "over_total": "over `review.max_total`",
    "over_limit": "over `review.max_findings`",
    "repair_does_not_apply": "with a repair that does not apply",
    "repair_changes_nothing": "with a repair that changes nothing",
}
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
    """The pull request of the texts, for the host and permalinks.

    ``since`` says in words from when on its changes are reviewed; empty if all of them are.
    """

    repository: Repository
    pull: PullRequest
    since: str = ""

    @property
    def reviewed(self) -> str:
        """The reviewed head, and the head it is compared with, if any."""
        head = self.pull.head_sha[:7]
        return f"{head} (changes since {self.since})" if self.since else head

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
    command = code_span(proof.command, limit=COMMENT)
    folded = details("Test and output", f"{fence(redact(proof.test))}\n\n{fence(redact(proof.output))}")
    return f"Proven: {command} passes before the change and fails after it.\n\n{folded}"


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
        names = ", ".join(f"{path_span(file.path)} ({file.reason})" for file in left_out[:BULLETS])
        more = len(left_out) - BULLETS
        lines.append(f"Not reviewed: {names}{f' and {more} more' if more > 0 else ''}.")
    return "\n\n".join(lines)


def summary(
    unplaced: Sequence[Finding], skipped: Sequence[Skipped], outdated: Sequence[Finding], page: Page
) -> str | None:
    """Return the sticky summary; None if there is nothing to say."""
    if not (unplaced or outdated or any(file.reason not in EXPECTED for file in skipped)):
        return None
    host = page.repository.host
    defects = (
        f"{page.link(finding.path)}: {clean_line(finding.comment, host=host, limit=COMMENT)} "
        f"Severity: {finding.severity}."
        for finding in unplaced
    )
    unread = (f"{path_span(file.path)}: {clean_line(file.reason, limit=NAME)}" for file in skipped)
    sentences = (finding.comment.replace("\n", " ").split(". ")[0] for finding in outdated)
    resolved = (
        f"{path_span(finding.path)}: {clean_line(first, host=host, limit=NAME)}"
        for finding, first in zip(outdated, sentences, strict=True)
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
    return f"**No AI review of {head}**: I have posted {amount(posted, 'finding')} here, {most}."


def handover(record: ReviewRecord) -> str:
    """Return the findings as one folded block of plain text, which tells a coding agent facts and no task."""
    doubts = {doubt.fingerprint: doubt for doubt in record.doubts}
    items: list[str] = []
    for number, finding in enumerate(record.posted, start=1):
        place = "no single line" if finding.line is None else f"line {finding.line}"
        if finding.start_line is not None:
            place = f"lines {finding.start_line} to {finding.line}"
        if finding.line is not None and finding.side == "LEFT":
            place = f"removed {place}"
        items += [
            f"{number}. {_plain(finding.path)}, {place}",
            f"   Breaks: {_plain(finding.comment)}",
            f"   Check: {_plain(_how_to_check(finding, doubts.get(finding.fingerprint)))}",
        ]
    return details("For a coding agent", fence("\n".join(items), "text"))


def _how_to_check(finding: Finding, doubt: Doubt | None) -> str:
    if finding.proof is not None and finding.proven:
        return f"{finding.proof.command} (the test is in the comment) fails; before the change it passes."
    if doubt is not None and doubt.breaks_when and doubt.instead:
        return f"With {doubt.breaks_when}: {doubt.instead}"
    return f"Not executed. The code: {' '.join(finding.code)}"


def _plain(text: str) -> str:
    """Return a text on one line, for a fenced block."""
    return cap(" ".join(visible(redact(text)).split()), COMMENT)


def section(title: str, items: Iterable[str]) -> str:
    """Return a list below its title; empty if there are no items."""
    bullets = [f"- {item}" for item in items]
    more = len(bullets) - BULLETS
    if more > 0:
        bullets = [*bullets[:BULLETS], f"- and {more} more"]
    return "\n".join([title, *bullets]) if bullets else ""


def path_span(path: str) -> str:
    """Return a path as a code span, so that it cannot become markup."""
    path = redact(path)
    short = path if len(path) <= NAME // 2 else f"…{path[-NAME // 2 :]}"
    return code_span(short, limit=NAME)


def check(outcome: ReviewOutcome, page: Page) -> SetCheck:
    """Return the check run. It never fails: findings are advice."""
    record, model = outcome.record, outcome.model
    unread = [file for file in record.skipped if file.reason not in EXPECTED]
    conclusion: Conclusion = "neutral"
    if outcome.verdict == "not_reviewed":
        conclusion, title = "skipped", f"Not reviewed: {outcome.reason}"
    elif record.posted:
        title = amount(len(record.posted), "possible defect")
    elif open_findings := outcome.standing(outcome.memory.open):
        title = f"Nothing new; {amount(len(open_findings), 'earlier finding')} open"
    elif unread:
        title = f"No defects found, but {amount(len(unread), 'file')} not reviewed"
    else:
        conclusion, title = "success", "No defects found"
    reasons = Counter(_NOT_POSTED[finding.reason] for finding in record.suppressed)
    total = len(outcome.memory.findings) + len(record.posted)
    parts = (
        _looked_at(outcome, page),
        section("Findings that are not posted:", (f"{count} {reason}" for reason, count in reasons.items())),
        section(
            "Not reviewed:", (f"{path_span(file.path)}: {clean_line(file.reason)}" for file in record.skipped)
        ),
        "" if outcome.is_over else f"Posted so far: {total} of at most {outcome.max_total} findings.",
        not_analysed(outcome.too_slow),
        f"*An AI model's opinion; it may be wrong.* `{model}`" if model else "",
        f"_{note}_" if (note := caveat(model)) else "",
    )
    return SetCheck(
        name=CHECK,
        head_sha=page.pull.head_sha,
        conclusion=conclusion,
        title=title,
        summary="\n\n".join(filter(None, parts)),
    )


def _looked_at(outcome: ReviewOutcome, page: Page) -> str:
    if not outcome.record.rounds:
        return f"No model was asked: {outcome.reason.removesuffix(': no model was asked')}."
    lines = amount(outcome.lines, "changed line")
    if not page.since:
        return f"Looked at {lines} in {amount(outcome.files, 'file')}."
    files = f"{outcome.files} of {amount(outcome.all_files, 'file')}"
    return f"Looked at {lines} since {page.since}, and at lines of the change that depend on them, in {files}."
