"""What the records of a run say about each bug. Pure but for reading the folder.

Two kinds of run end up here. One that judged given candidates has a record a candidate
(``instance_id/candidate_id``). One that drafted has a record a case, with its judged drafts and the order in which
they would be shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evaluation.brt.rankings import Ranking
from evaluation.run.folder import Record


def drafted(records: Iterable[Record]) -> bool:
    """Whether the run drafted its tests itself."""
    return any("drafts" in record.details for record in records)


def reproduced(records: Iterable[Record]) -> dict[str, bool]:
    """For each bug whether any of its tests reproduces it; one without a usable answer is not reproduced."""
    found: dict[str, bool] = {}
    for record in records:
        bug = str(record.details.get("instance_id") or _bug_of(record))
        found[bug] = found.get(bug, False) or any(each["brt"] for each in _judgements(record))
    return found


def rankings(records: Iterable[Record]) -> tuple[tuple[Ranking, ...], tuple[Ranking, ...]]:
    """What was suggested, and what was generated, as rankings; from a run that drafted.

    Suggested are the bugs for which tests were shown, with the rank of the first right one. Generated are all
    bugs with a test that fails on the buggy version: the pool from which selection chose.
    """
    suggested: list[Ranking] = []
    generated: list[Ranking] = []
    for record in records:
        if "drafts" not in record.details:
            continue
        right = {each["candidate_id"]: bool(each["brt"]) for each in _judgements(record)}
        shown = [str(each) for each in record.details.get("shown", ())]
        if shown:
            suggested.append(_ranking(record, [right.get(each, False) for each in shown]))
        failing = [bool(each["brt"]) for each in _judgements(record) if each.get("fate") == "failed"]
        if failing:
            # The pool as a whole has no order of its own: the right ones are put first.
            generated.append(_ranking(record, sorted(failing, reverse=True)))
    return tuple(suggested), tuple(generated)


def _ranking(record: Record, right: list[bool]) -> Ranking:
    return Ranking(
        bug_id=record.task_id,
        first_success_rank=right.index(True) + 1 if any(right) else None,
        total_success_fibs=sum(right),
        num_clusters=len(right),
    )


def _judgements(record: Record) -> list[dict[str, Any]]:
    if "drafts" in record.details:
        return list(record.details["drafts"])
    return [{"brt": bool(record.details.get("brt")), "candidate_id": record.task_id}]


def _bug_of(record: Record) -> str:
    """A record that failed has no details: its task id names bug and candidate."""
    return record.task_id.partition("/")[0]
