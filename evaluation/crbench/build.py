"""Algorithm 1 over many instances: in their order, several at a time, each with its reason if discarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from evaluation.crbench.blame import BlameOptions
from evaluation.crbench.clones import Clones
from evaluation.crbench.mapping import Instance, MappedInstance, Unmapped, discarded, map_instance


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

    def one(instance: Instance) -> MappedInstance:
        clone = clones.of(instance.repo)
        if clone is None:
            return discarded(instance, f"no clone of {instance.repo}")
        return map_instance(instance, clone.repository, clone.finder, options.blame, options.unmapped)

    pool = ThreadPoolExecutor(options.workers, thread_name_prefix="blame")
    try:
        yield from pool.map(one, instances)
    finally:
        pool.shutdown(cancel_futures=True)


def tally(mapped: Iterable[MappedInstance]) -> Counter[str]:
    """How many instances were kept, and how many went for each kind of reason."""
    return Counter("kept" if each.kept else _kind(each.reason or "") for each in mapped)


def _kind(reason: str) -> str:
    head = reason.partition(":")[0]
    return "several pull requests" if head.endswith("pull requests") and head[:1].isdecimal() else head
