"""A review task: a pull request that brought a bug in, and the bug; and the three questions that describe the bug.

One line of what a build writes. The questions are those of CR-Bench's construction (Algorithm 1, lines 8 to 12;
listings 1 to 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, field_validator

from bot.code.change.diff import FileDiff
from bot.core.actions import Usage
from bot.core.frozen import Frozen
from bot.features.shared.findings import Category, Impact, Severity
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt, Reply
from evaluation.crbench.mapping import FixError, Instance, MappedInstance, parse_fix
from evaluation.crbench.pulls import PullContext
from evaluation.dataset import read_shaped

T = TypeVar("T", bound=BaseModel)

#: A paraphrase has fewer words than this (CR-Bench, listing 2).
MAX_WORDS = 100

PREVENTABLE = "crbench.preventable"
PARAPHRASE = "crbench.paraphrase"
TAGS = "crbench.tags"


class Preventability(Frozen):
    """Could a careful review of the change that brought it in have prevented the bug?"""

    reasoning: str = Field(description="briefly: what was wrong, and whether it came with an earlier change")
    category: Literal["PREVENTABLE", "UNPREVENTABLE"]
    confidence: float = Field(ge=0, le=1, description="0 = a guess, 1 = certain")


class Paraphrase(Frozen):
    """The bug in a few technical sentences: what a reviewer should have written."""

    description: str = Field(min_length=1, description="what is wrong, the code at fault, why; under 100 words")

    @field_validator("description")
    @classmethod
    def _short(cls, value: str) -> str:
        words = len(value.split())
        if words >= MAX_WORDS:
            raise ValueError(f"{words} words; it must have fewer than {MAX_WORDS}")
        return value.strip()


class PaperSeverity(StrEnum):
    """The severity of a bug as the paper tags it (listing 3): a level more than a reviewer tells apart."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @classmethod
    def _missing_(cls, value: object) -> PaperSeverity | None:
        plain = str(value).strip().lower()
        return next((severity for severity in cls if severity.value == plain), None)


class Tags(Frozen):
    """The bug's place in the taxonomy (CR-Bench, Table 2)."""

    reasoning: str = Field(description="briefly: why this category, impact and severity")
    category: Category = Field(description="root cause")
    impact: Impact = Field(description="what it compromises")
    severity: PaperSeverity


#: Days without a repair after which a merged pull request counts as clean.
CLEAN_DAYS = 180
#: What has to be read to make a comment: the change, its files, or the repository (AACR-Bench).
Level = Literal["diff", "file", "repository"]
#: What a comment asks for, as a judge decided once.
Kind = Literal["defect", "hardening", "style"]


class Remark(Frozen):
    """A review comment that people rejected."""

    description: str
    path: str = ""
    line: int | None = None


class Known(Remark):
    """A bug as a judge and a reader need it, or a review comment that people confirmed."""

    description: str = Field(description="what a reviewer should have said")
    category: Category | None = Field(None, description="None if its data set does not say, as below")
    impact: Impact | None = None
    severity: Severity | None = Field(None, description="as reviewers tell it; the paper's critical is high")
    paper_severity: PaperSeverity | None = Field(None, description="as the paper tags it, critical kept")
    level: Level | None = None
    kind: Kind | None = None


class ReviewTask(MappedInstance):
    """One instance after every step of the algorithm that it reached; kept ones are complete."""

    base_commit: str = Field(description="the commit that the fix applies to")
    fix: str = Field("", description="the fix, a unified diff; never shown to a reviewer")
    preventable: Preventability | None = None
    bugs: tuple[Known, ...] = Field((), description="what is wrong with the pull request: one in CR-Bench")
    pull: PullContext | None = Field(None, description="what a reviewer is shown; None if discarded")
    rejected: tuple[Remark, ...] = Field((), description="comments on it that people rejected")
    clean: bool = Field(False, description="no line of it was repaired within 180 days after it was merged")
    language: str = Field("", description="the project's main language, if the data set says so")
    command: tuple[str, ...] = Field((), description="runs its tests, {tests} in it; empty = as the replay says")
    env: dict[str, str] = Field(default_factory=dict, description="variables of its tests")
    usage: Usage = Field(Usage(), description="of the construction")
    model: str = Field("", description="who was asked in the construction")

    @property
    def fixed_files(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.fixed)

    @property
    def fixed(self) -> tuple[FileDiff, ...]:
        """The fix, file by file; empty if it cannot be read."""
        try:
            return parse_fix(self.fix)
        except FixError:
            return ()

    @property
    def fixed_lines(self) -> int:
        """Lines that the fix removes and adds."""
        return sum(file.added + file.removed for file in self.fixed)


def describe(model: Model, prompts: Prompts, fix: Instance, task: ReviewTask) -> ReviewTask:
    """The task with its bug; discarded if no review could have prevented it.

    Asks three questions about the fix, the last two only if the bug was preventable. Raises ModelError or
    TransientError.
    """

    def ask(name: str, schema: type[T], **more: object) -> Reply[T]:
        system, user = prompts.render(name, issue=fix.problem_statement, fix=fix.patch, **more)
        subject = f"{fix.instance_id}/{name.removeprefix('crbench.')}"
        return model.complete(Prompt(purpose=name, system=system, user=user, subject=subject), schema)

    first = ask(PREVENTABLE, Preventability)
    task = task.model_copy(update={"preventable": first.value, "usage": first.usage, "model": first.model})
    if first.value.category == "UNPREVENTABLE":
        reason = f"not preventable: {first.value.reasoning}"
        return task.model_copy(update={"kept": False, "reason": reason, "pull": None})
    text = ask(PARAPHRASE, Paraphrase)
    tags = ask(TAGS, Tags, categories=tuple(Category), impacts=tuple(Impact))
    bug = Known(
        description=text.value.description,
        category=tags.value.category,
        impact=tags.value.impact,
        severity=Severity(tags.value.severity),
        paper_severity=tags.value.severity,
    )
    return task.model_copy(update={"bugs": (bug,), "usage": first.usage + text.usage + tags.usage})


def read_tasks(source: str, *, remarked: bool = False) -> Iterator[ReviewTask]:
    """The kept tasks of a build. Raises OperatorError with file and line.

    ``remarked``: also pull requests that have rejected comments alone, which are no task for a reviewer.
    """
    tasks = (task for task in read_shaped(source, ReviewTask) if task.kept and task.pull is not None)
    return (task for task in tasks if task.bugs or task.clean or (remarked and task.rejected))
