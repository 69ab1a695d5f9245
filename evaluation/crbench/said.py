"""What a reviewer said about a task's pull request: taken from the decisions of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen
from bot.review.findings import Finding
from evaluation.dataset import read_rows, shaped
from evaluation.run.folder import Record

#: Which findings are judged: those that people would have seen, or also those that were held back.
Scope = Literal["posted", "reported"]


class Said(Frozen):
    """One review comment. Nothing in it tells which system wrote it."""

    task_id: str
    path: str
    line: int | None = Field(description="None where no line carries it")
    text: str

    @property
    def key(self) -> str:
        """The same for the same words on the same line of the same task, whoever wrote them."""
        content = f"{self.task_id}\0{self.path}\0{self.line}\0{self.text}"
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _Line(Frozen):
    instance_id: str
    path: str
    line: int | None = None
    comment: str = Field(min_length=1)


def said_in_file(source: str) -> Iterator[Said]:
    """Comments of any reviewer, one a line: instance_id, path, line (or null), comment.

    Raises OperatorError with file and line.
    """
    for row in read_rows(source):
        line = shaped(row, _Line)
        yield Said(task_id=line.instance_id, path=line.path, line=line.line, text=line.comment)


def said_in(records: Iterable[Record], scope: Scope) -> Iterator[Said]:
    """Every comment of a run, in its order."""
    for record in records:
        for finding in _findings(record, scope):
            yield Said(task_id=record.task_id, path=finding.path, line=finding.line, text=finding.comment)


def _findings(record: Record, scope: Scope) -> Iterator[Finding]:
    evidence = (record.decision or {}).get("evidence", {})
    yield from (Finding.model_validate(each) for each in evidence.get("posted", ()))
    if scope == "reported":
        yield from (Finding.model_validate(each["finding"]) for each in evidence.get("suppressed", ()))
