"""The record of a review: every finding and what happened to it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.actions import CodeContext, Record, Skipped
from bot.core.frozen import Frozen
from bot.features.shared.findings import Dropped, Finding, Grade
from bot.features.shared.labels import ModelReply

#: The name of the check run.
CHECK = "bouncer / review"
#: Reasons not to post a finding, in the order in which they are checked.
Reason = Literal[
    "duplicate", "out_of_scope", "dismissed", "already_posted", "unchanged", "muted", "below_severity", "late",
    "unlikely", "doubted", "over_total", "over_limit", "repair_does_not_apply", "repair_changes_nothing",
]  # fmt: skip
#: From this round on only findings of high severity and proven ones are posted.
LATE = 3
#: What can be wrong with the repair that a finding proposes.
RepairFlaw = Literal["repair_does_not_apply", "repair_changes_nothing"]


class Suppressed(Frozen):
    """A finding that is not posted, and the reason."""

    finding: Finding
    reason: Reason


class Doubt(Frozen):
    """The outcome of the second question about a finding."""

    fingerprint: str
    outcome: Literal["stands", "unsure", "refuted", "not named", "not asked"]
    why: str = Field("", description="why it was dropped, or why there was no answer")
    breaks_when: str = ""
    quote: str = ""
    instead: str = ""
    p_holds: int | None = None
    recognised: Grade | None = Field(None, description="if the model knew the defect; None: not asked")
    prompt_hash: str = ""


class ReviewRecord(Record):
    """A review, or findings that a maintainer dismissed."""

    posted: tuple[Finding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict, description="findings by outcome")
    outdated: tuple[str, ...] = Field((), description="fingerprints of findings whose code changed")
    dismissed: tuple[str, ...] = Field((), description="fingerprints of findings that a maintainer rejected")
    by: str = Field("", description="login of the maintainer who dismissed")
    why: str = Field("", description="reason of the dismissal")
    skipped: tuple[Skipped, ...] = ()
    reviewed: dict[str, str] = Field(
        default_factory=dict, description="changed lines that need no other look, by path: a hash of each"
    )
    base: str = Field("", description="base branch of the change; empty in older records")
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
