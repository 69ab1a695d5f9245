"""Algorithm 1 over many instances: in their order, several at a time, each with its reason if discarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from bot.errors import BudgetExceeded, ForgeError, ModelError, NotRecorded, TransientError
from evaluation.crbench.blame import BlameOptions
from evaluation.crbench.clones import Clones
from evaluation.crbench.context import ContextError, PullContext
from evaluation.crbench.mapping import Instance, MappedInstance, Unmapped, discarded, map_instance
from evaluation.crbench.steps import Steps, describe
from evaluation.crbench.task import ReviewTask, begin, finish
from evaluation.git.repository import GitError

T = TypeVar("T")


@dataclass(frozen=True)
class MappingOptions:
    """The policies of blame and mapping."""

    blame: BlameOptions = field(default_factory=BlameOptions)
    unmapped: Unmapped = "ignore"
    workers: int = 2


def map_instances(
    instances: Sequence[Instance], clones: Clones, options: MappingOptions
) -> Iterator[MappedInstance]:
    """Lines 3 to 7 of the algorithm for every instance, in their order."""
    return _in_order(lambda fix: _mapped(fix, clones, options), instances, options.workers)


def build_tasks(
    instances: Sequence[Instance], clones: Clones, options: MappingOptions, steps: Steps
) -> Iterator[ReviewTask]:
    """The whole algorithm for every instance, in their order.

    Raises BudgetExceeded where the next question may not be asked; what was yielded before stands.
    """
    return _in_order(lambda fix: _built(fix, clones, options, steps), instances, options.workers)


def tally(mapped: Iterable[MappedInstance]) -> Counter[str]:
    """How many instances were kept, and how many went for each kind of reason."""
    return Counter("kept" if each.kept else _kind(each.reason or "") for each in mapped)


def _mapped(fix: Instance, clones: Clones, options: MappingOptions) -> MappedInstance:
    clone = clones.of(fix.repo)
    if clone is None:
        # Looked at again once there is one.
        return discarded(fix, f"no clone of {fix.repo}").model_copy(update={"unfinished": True})
    try:
        return map_instance(fix, clone.repository, clone.finder, options.blame, options.unmapped)
    except NotRecorded:
        raise
    except (TransientError, ForgeError) as error:
        return discarded(fix, f"unfinished: {error}").model_copy(update={"unfinished": True})


def _built(fix: Instance, clones: Clones, options: MappingOptions, steps: Steps) -> ReviewTask:
    task = begin(fix, _mapped(fix, clones, options))
    if not task.kept:
        return task
    try:
        return finish(task, _context(task, clones), describe(steps, fix))
    except (BudgetExceeded, NotRecorded):
        raise
    except ContextError as error:
        return task.model_copy(update={"kept": False, "reason": str(error)})
    except (ModelError, TransientError, ForgeError) as error:
        reason = f"unfinished: {error}"
        return task.model_copy(update={"kept": False, "reason": reason, "unfinished": True})


def _context(task: ReviewTask, clones: Clones) -> PullContext:
    clone = clones.of(task.repo)
    assert clone is not None, "a kept task was mapped in a clone"
    [number] = task.prs
    brought_in = next(
        commit for commit in task.blame_commits if number in clone.finder.pulls_of(commit, task.base_commit)
    )
    try:
        return clone.contexts.context_of(number, brought_in, task.base_commit)
    except GitError as error:
        raise ContextError(f"pull request #{number}: {error}") from error


def _in_order(work: Callable[[Instance], T], instances: Sequence[Instance], workers: int) -> Iterator[T]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="build")
    try:
        yield from pool.map(work, instances)
    finally:
        pool.shutdown(cancel_futures=True)


def _kind(reason: str) -> str:
    head = reason.partition(":")[0]
    return "several pull requests" if head.endswith("pull requests") and head[:1].isdecimal() else head
