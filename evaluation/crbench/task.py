"""A review task: a pull request that brought a bug in, and the bug. One line of what a build writes."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from bot.core.actions import Usage
from bot.review.diff import FileDiff
from evaluation.crbench.context import PullContext
from evaluation.crbench.fix import FixError, parse_fix
from evaluation.crbench.mapping import Instance, MappedInstance
from evaluation.crbench.steps import Judged, Known, Preventability
from evaluation.dataset import read_rows, shaped, unique


class ReviewTask(MappedInstance):
    """One instance after every step of the algorithm that it reached; kept ones are complete."""

    base_commit: str = Field(description="the commit that the fix applies to")
    fix: str = Field("", description="the fix, a unified diff; never shown to a reviewer")
    preventable: Preventability | None = None
    bugs: tuple[Known, ...] = Field((), description="what is wrong with the pull request: one in CR-Bench")
    pull: PullContext | None = Field(None, description="what a reviewer is shown; None where discarded")
    usage: Usage = Field(Usage(), description="of the construction")
    model: str = Field("", description="who was asked in the construction")

    @property
    def fixed_files(self) -> tuple[str, ...]:
        """Paths that the fix changes, as a judge is shown them."""
        return tuple(file.path for file in _files(self.fix))

    @property
    def fixed_lines(self) -> int:
        """Lines that the fix removes and adds."""
        return sum(file.added + file.removed for file in _files(self.fix))


def begin(fix: Instance, mapped: MappedInstance) -> ReviewTask:
    """A task as far as blame and mapping bring it."""
    return ReviewTask(**mapped.model_dump(), base_commit=fix.base_commit, fix=fix.patch)


def finish(task: ReviewTask, pull: PullContext, judged: Judged) -> ReviewTask:
    """The task after the model's steps: discarded where no review could have prevented the bug."""
    reason = None
    if judged.bug is None and judged.preventable is not None:
        reason = f"not preventable: {judged.preventable.reasoning}"
    return task.model_copy(
        update={
            "preventable": judged.preventable,
            "bugs": () if judged.bug is None else (judged.bug,),
            "pull": None if reason else pull,
            "usage": judged.usage,
            "model": judged.model,
            "kept": reason is None,
            "reason": reason,
        }
    )


def read_tasks(source: str) -> Iterator[ReviewTask]:
    """The kept tasks of a build. Raises OperatorError with file and line."""
    rows = ((str(row.data.get("instance_id")), row.where, shaped(row, ReviewTask)) for row in read_rows(source))
    return (task for task in unique(rows) if task.kept and task.pull is not None and task.bugs)


def _files(fix: str) -> tuple[FileDiff, ...]:
    try:
        return parse_fix(fix)
    except FixError:
        return ()
