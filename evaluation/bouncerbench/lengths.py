"""How bouncing depends on the length of an issue or a patch (BouncerBench, IV.F, figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.tasks import InputTask, OutputTask
from evaluation.statistics import Estimate, wilson

#: Upper ends of the bins, inclusive. The paper's issue bins are ``PAPER_ISSUE_WORDS``; ours split 201-500.
ISSUE_WORDS = (100, 200, 300, 500)
PAPER_ISSUE_WORDS = (100, 200, 500)
PATCH_CHARACTERS = (1000, 2500)


@dataclass(frozen=True)
class Bin:
    """The tasks of one range of lengths."""

    name: str
    tasks: int
    to_bounce: int
    true_positive_rate: Estimate
    false_positive_rate: Estimate


def by_length(
    tasks: Sequence[InputTask | OutputTask], answers: Mapping[str, Answer], edges: Sequence[int]
) -> list[Bin]:
    """Rates per bin over the tasks with a known truth and a text; a missing answer is no bounce.

    The true positive rate is the bounced share of what should bounce, the false positive rate that of what
    should not; each with its Wilson interval.
    """
    cells = [[0, 0, 0, 0] for _ in range(len(edges) + 1)]
    for task in tasks:
        size = length(task)
        if task.bounce is None or size is None:
            continue
        answer = answers.get(task.instance_id)
        bounced = answer is not None and answer.bounce is True
        index = next((place for place, edge in enumerate(edges) if size <= edge), len(edges))
        cells[index][2 * task.bounce + bounced] += 1
    return [
        Bin(
            name=name,
            tasks=kept + wrongly + missed + caught,
            to_bounce=missed + caught,
            true_positive_rate=wilson(caught, missed + caught),
            false_positive_rate=wilson(wrongly, kept + wrongly),
        )
        for name, (kept, wrongly, missed, caught) in zip(_names(edges), cells, strict=True)
    ]


def length(task: InputTask | OutputTask) -> int | None:
    """Words of an issue, characters of a patch; None where the text is not at hand."""
    if isinstance(task, OutputTask):
        return None if task.patch is None else len(task.patch)
    return None if task.problem_statement is None else len(task.problem_statement.split())


def _names(edges: Sequence[int]) -> list[str]:
    starts = [None, *(edge + 1 for edge in edges)]
    middle = [f"≤ {end}" if start is None else f"{start}–{end}" for start, end in zip(starts, edges, strict=False)]
    return [*middle, f"> {edges[-1]}"]
