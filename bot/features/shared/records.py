"""What a decision of each feature leaves for later ones. This is the only memory of the product.

Rows that an older version wrote are validated when they are read: every field has a default, unknown fields are
ignored.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from bot.calibration.fates import KnownFate
from bot.code.context import CodeContext
from bot.code.packing import Skipped
from bot.core.actions import Record
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.findings import Dropped, Finding
from bot.features.shared.investigation import Notes
from bot.features.shared.output_bouncer import ExecutedTest, OutputVerdict, Unjudged
from bot.models.protocol import Reply, Voice
from bot.reproduction.command import TestCommand

#: addressed: the line was changed or the thread resolved; dismissed: somebody said no; ignored: neither.
Outcome = Literal["addressed", "dismissed", "ignored"]


#: Why a finding that holds against the diff is not posted, in the order in which it is asked.
Reason = Literal[
    "duplicate", "out_of_scope", "dismissed", "already_posted", "muted", "below_severity", "unlikely", "doubted",
    "over_limit",
]  # fmt: skip


class Signal(Frozen):
    """One sign of what somebody made of one thing that was posted."""

    key: str = Field(description="what it is about: owner/name#number and, for a finding, its fingerprint")
    category: str = Field(description="a review category, or ``bounce``")
    outcome: Outcome
    source: str = Field(description="reaction, command, resolved, deleted, changed, not_planned or closed")
    by: str = Field("", description="login, where somebody did it")


class Suppressed(Frozen):
    """A finding that was held back."""

    finding: Finding
    reason: Reason


class Doubt(Frozen):
    """What became of a finding that was put to the second question."""

    fingerprint: str
    outcome: Literal["stands", "refuted", "not named", "not asked"]
    why: str = Field("", description="why it was dropped, or why nobody could be asked")
    breaks_when: str = ""
    quote: str = ""
    instead: str = ""
    p_holds: int | None = None
    prompt_hash: str = ""


class StoredTest(Frozen):
    """A test that reproduced a report, complete: enough to run it again on other code."""

    path: str
    name: str = Field(description="within the file: ``TestA::test_b``")
    content: str = Field(description="the whole file, as it was on the commit where the test was made")
    code: str = Field(description="what was added to the file, for people to read")
    new_file: bool
    command: tuple[str, ...] = Field(description="arguments with ``{tests}`` in them")
    branch: str
    sha: str = Field(description="the commit on which it failed")
    exception_type: str = ""
    message: str = ""

    @property
    def test_command(self) -> TestCommand:
        """The command as it was when the test was made, whatever the repository says now."""
        return TestCommand(argv=self.command)


class PlaceLookedAt(Lenient):
    """One look at the repository's code before a verdict."""

    action: str
    target: str
    line: int = 1


class ModelReply(Lenient):
    """What a model answered, and what it looked at before."""

    issue: str = Field("", description="``#12``: the issue that a question about a patch was about")
    prompt_hash: str = ""
    reply: str = Field("", description="as it came, cut to 20,000 characters")
    voices: tuple[Voice, ...] = Field((), description="answers of the single models behind a mean or cascade")
    disagreement: int | None = Field(None, description="largest difference between their chances, percent points")
    tool_calls: int = Field(0, description="looks at the code")
    looks: tuple[PlaceLookedAt, ...] = ()
    notes: str = ""


def model_reply(reply: Reply[Any], prompt_hash: str, notes: Notes, issue: str = "") -> ModelReply:
    """Return what is recorded of a reply and of what the model looked at before."""
    looks = tuple(PlaceLookedAt(action=look.action, target=look.target, line=look.line) for look in notes.looks)
    single = {"voices": reply.voices, "disagreement": reply.disagreement} if reply.voices else {}
    about = {"issue": issue} if issue else {}
    return ModelReply(
        prompt_hash=prompt_hash,
        reply=reply.text[:20_000],
        tool_calls=len(looks),
        looks=looks,
        notes=notes.text,
        **single,
        **about,
    )


class BouncerRecord(Record):
    """What both bouncers record."""

    bounced: bool = False
    p_bounce: int | None = Field(None, description="chance in percent that the subject should bounce")
    prompt: str = Field("", description="hash of the prompt's file")
    config: str = Field("", description="hash of the configuration")
    harm: int | None = Field(None, description="percent that was promised, as the configuration said")


class TriageRecord(BouncerRecord, ModelReply):
    """A verdict on an issue."""

    label: str = ""
    explanation: str = ""
    questions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    language: str = Field("", description="what the author is answered in")
    marked_by: str = Field("", description="the maintainer who asked for details by setting the label")
    answers: tuple[int, ...] = Field((), description="ids of the comments that were read")
    at: float | None = Field(None, description="seconds since 1970; None if nothing is ever closed here")
    reopened: bool = False


class VerifyRecord(BouncerRecord):
    """A verdict on a patch, for each issue that it says it solves."""

    verdicts: tuple[OutputVerdict, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    runs: tuple[ExecutedTest, ...] = ()
    replies: tuple[ModelReply, ...] = ()
    tool_calls: int = 0
    context: CodeContext = CodeContext()
    omitted: tuple[str, ...] = Field((), description="changed files that were named and not judged")
    judged: dict[str, str] = Field(default_factory=dict, description="issue number -> its revision")
    failure: str = Field("", description="why the model gave no answer")


class ReviewRecord(Record):
    """A review, or findings that a maintainer dismissed."""

    posted: tuple[Finding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict, description="findings by what became of them")
    outdated: tuple[str, ...] = Field((), description="fingerprints of findings whose code changed")
    dismissed: tuple[str, ...] = Field((), description="fingerprints of findings that were turned down")
    by: str = Field("", description="login of the maintainer who dismissed")
    why: str = Field("", description="reason of the dismissal")
    skipped: tuple[Skipped, ...] = ()
    rounds: int = 0
    looks: int = 0
    agreement: dict[str, int] = Field(default_factory=dict, description="looks that agreed -> findings")
    proofs: dict[str, int] = Field(default_factory=dict, description="outcome of a proof -> findings")
    doubts: tuple[Doubt, ...] = ()
    tokens: tuple[int, ...] = Field((), description="of each part of the change")
    replies: tuple[ModelReply, ...] = ()
    context: tuple[CodeContext, ...] = Field((), description="of each part of the change")
    tool_calls: int = 0
    strategy: str = ""
    prompt: str = Field("", description="hash of the prompt's file")
    config: str = Field("", description="hash of the configuration")


class DraftRecord(Lenient):
    """One drafted test and what became of it."""

    number: int
    fate: str
    why: str = ""
    repaired: bool = False
    inverted: bool = False
    flaky: bool = False
    exception_type: str | None = None
    message: str = ""
    code: str = ""


class ReproduceRecord(Record):
    """An attempt to reproduce a report."""

    state: str = ""
    test: StoredTest | None = None
    agreeing: int = Field(0, description="drafts that fail alike")
    drafted: int = 0
    sandbox: str = ""
    attempts: tuple[DraftRecord, ...] = ()
    prompt: str = Field("", description="hash of the prompt's file")
    config: str = Field("", description="hash of the configuration")


class CommandsRecord(Record):
    """Commands that were carried out."""

    done: tuple[str, ...] = ()
    by: str = Field("", description="login")
    comment: int | None = Field(None, description="id of the comment; None if it was no comment")
    at: float = Field(0.0, description="seconds since 1970")


class ClosingRecord(Record):
    """A warning, a closing, or an answer that took either back."""

    about: str = Field("", description="tells the comments of several warnings apart")
    taken_up_by: str = Field("", description="login of a person whose comment was deleted before the time was up")
    at: float | None = Field(None, description="seconds since 1970")


class FeedbackRecord(Record):
    """What people made of what was posted, and how judged subjects ended."""

    signals: tuple[Signal, ...] = ()
    fates: tuple[KnownFate, ...] = ()


class ConfigRecord(Record):
    """Problems of a version of ``bouncer.yml``."""

    problems: tuple[str, ...] = ()


class WhyRecord(Record):
    """An explanation that was asked for."""

    grounded: bool = Field(False, description="all that it quotes stands in what the model was given")
    reply: str = ""
    prompt_hash: str = ""
