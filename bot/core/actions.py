"""The writes that Bouncer can make on GitHub, and the decision that asks for them.

The union is closed: text in an issue or a diff can at worst cause a wrong verdict, never another kind of write.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, field_serializer

from bot.core.frozen import Frozen, Lenient
from bot.core.subjects import Side, Subject

#: The name of a feature: the task a job runs, the kind of its decision, the word in its hidden marker.
Task = str

Conclusion = Literal["success", "neutral", "failure", "skipped"]


class UpsertComment(Frozen):
    """Write the one sticky comment of a task on a subject, or edit it in place."""

    type: Literal["upsert_comment"] = "upsert_comment"
    task: Task
    number: int
    body: str
    only_edit: bool = Field(False, description="edit an existing comment; if there is none, do nothing")
    about: str = Field("", description="tells several comments of one task apart; empty for its only one")
    thread: int | None = Field(None, description="answers this comment on a line, in its thread; written once")


class SetLabels(Frozen):
    """Add and remove labels; the publisher refuses any that the repository's config does not name."""

    type: Literal["set_labels"] = "set_labels"
    number: int
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class SetIssueState(Frozen):
    """Close an issue as not planned, or open it again."""

    type: Literal["set_issue_state"] = "set_issue_state"
    number: int
    state: Literal["open", "closed"]
    comments: int | None = Field(
        None, description="comments when it was decided; a new comment since then prevents closing"
    )


class SetDraft(Frozen):
    """Convert a pull request to a draft, or mark it as ready for review."""

    type: Literal["set_draft"] = "set_draft"
    number: int
    node_id: str = Field(description="GitHub's global id of the pull request: only GraphQL can change this")
    draft: bool


class InlineComment(Frozen):
    """One comment of a review, anchored to lines that the diff shows."""

    path: str
    line: int
    side: Side = "RIGHT"
    start_line: int | None = None
    body: str
    suggestion: str | None = Field(
        None, description="replaces the whole range; code, so it is fenced and not rewritten; RIGHT side only"
    )
    fingerprint: str = Field("", description="path + code + defect class; the same when lines shift")


class SubmitReview(Frozen):
    """One review with inline comments, always with event COMMENT, pinned to a commit."""

    type: Literal["submit_review"] = "submit_review"
    number: int
    commit_id: str
    body: str = ""
    comments: tuple[InlineComment, ...]
    about: str = Field("", description="tells several reviews of one commit apart; empty for its first")

    @property
    def identity(self) -> str:
        """The commit, and what tells its reviews apart."""
        return f"{self.commit_id}-{self.about}" if self.about else self.commit_id


class SetCheck(Frozen):
    """Create or complete a check run on a commit."""

    type: Literal["set_check"] = "set_check"
    name: str
    head_sha: str
    conclusion: Conclusion
    title: str
    summary: str = ""
    text: str = ""


class OpenDraftPull(Frozen):
    """Open a draft pull request that adds or replaces exactly one file: a test, or ``bouncer.yml``."""

    type: Literal["open_draft_pull"] = "open_draft_pull"
    number: int = Field(description="the issue that the test reproduces; 0 for bouncer.yml")
    base: str
    base_sha: str
    branch: str
    path: str
    content: str
    title: str
    body: str


class React(Frozen):
    """Acknowledge a comment with a reaction."""

    type: Literal["react"] = "react"
    comment_id: int
    on: Literal["issue", "review"] = "issue"
    content: Literal["+1", "-1", "eyes", "confused"] = "eyes"


class Minimize(Frozen):
    """Hide a comment of ours on a line behind a reason, as people can. Nothing depends on it."""

    type: Literal["minimize"] = "minimize"
    node_id: str = Field(description="GitHub's global id of the comment: only GraphQL can change this")
    why: Literal["RESOLVED", "OUTDATED"] = Field(description="dismissed by a person, or its code is gone")


Action = Annotated[
    UpsertComment
    | SetLabels
    | SetIssueState
    | SetDraft
    | SubmitReview
    | SetCheck
    | OpenDraftPull
    | React
    | Minimize,
    Field(discriminator="type"),
]


class Usage(Frozen):
    """Tokens, seconds and cost of model calls; values add up."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = Field(0, description="of the input: what the provider read from its prompt cache")
    seconds: float = 0.0
    cost_usd: float | None = Field(None, description="None if a model that was asked has no known price")

    @property
    def tokens(self) -> str:
        """``1,200 (800 cached) + 90``: input and output, for people to read."""
        cached = f" ({self.cached_tokens:,} cached)" if self.cached_tokens else ""
        return f"{self.input_tokens:,}{cached} + {self.output_tokens:,} tokens"

    @property
    def cost(self) -> str:
        """``0.0012 USD``, for people to read."""
        return "cost unknown" if self.cost_usd is None else f"{self.cost_usd:.4f} USD"

    def __add__(self, other: Usage) -> Usage:
        cost = self.cost_usd if self.calls else other.cost_usd
        if self.calls and other.calls:
            cost = None if cost is None or other.cost_usd is None else cost + other.cost_usd
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            seconds=self.seconds + other.seconds,
            cost_usd=cost,
        )


#: Reasons to skip a file with changed layout: compared by its grammar, or line by line without one.
REFORMATTED = "layout only, the code means the same"
SPACED = "layout only, white space inside lines"


class Skipped(Frozen):
    """A file, or a part of one, that no model sees."""

    path: str
    reason: str


class CodeContext(Frozen):
    """The code around a change, for a prompt. ``why`` is the reason if there is none, or not all."""

    text: str = ""
    tokens: int = 0
    parts: int = 0
    left_out: int = 0
    looked_up: tuple[str, ...] = ()
    """The phrases that name code for which something is shown."""
    not_shown: tuple[str, ...] = ()
    """Changed files that cannot be read or do not match the diff: not text, too large, of another commit."""
    too_slow: tuple[str, ...] = ()
    """Changed files whose functions are not shown because they took too long to parse."""
    why: str = ""

    def without_text(self) -> CodeContext:
        """Return the figures without the code, as a decision records them."""
        return self.model_copy(update={"text": ""})


class Record(Lenient):
    """The data that a decision leaves for later ones; each feature has its own type."""

    at: float | None = Field(None, description="seconds since 1970; None if no later decision needs it")

    def as_json(self) -> dict[str, Any]:
        """Return the fields that were set, as JSON values."""
        values = self.model_dump(mode="json")
        return {name: values[name] for name in values if name in self.model_fields_set}


AnyRecord = TypeVar("AnyRecord", bound=Record)


class Decision(Frozen):
    """A handler's answer to an event.

    No actions plus a reason is an explicit abstention: recorded, visible, and a good outcome.
    """

    kind: Task
    subject: Subject
    verdict: str | None = Field(None, description="a label of the task's own closed set; None = abstained")
    actions: tuple[Action, ...] = ()
    withheld: tuple[Action, ...] = Field((), description="what would have been done but for shadow mode")
    reason: str = Field("", description="one sentence; why nothing (more) was done, or what led to the verdict")
    abstained: str | None = Field(
        None, description="stable word for counting why no verdict was reached, e.g. ``model:refused``"
    )
    record: Record | None = Field(None, description="what later decisions read: the feature's own type")
    again_days: int | None = Field(
        None, description="the issue is looked at again after so many days, unless another decision came since"
    )
    affects: tuple[int, ...] = Field((), description="pull requests that are evaluated again because of it")
    only_open: bool = Field(False, description="nothing is posted once its subject is closed, locked, or a draft")
    usage: Usage = Usage()
    model: str = Field("", description="``provider:name`` of the model that answered; empty if none was asked")

    @field_serializer("record")
    def _record(self, record: Record | None) -> dict[str, Any] | None:
        return None if record is None else record.as_json()

    def record_of(self, record_type: type[AnyRecord]) -> AnyRecord:
        """Return the record if it is of that type; else an empty one."""
        return self.record if isinstance(self.record, record_type) else record_type()
