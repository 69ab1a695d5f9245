"""The raw material of the benchmark as people hand it around (BouncerBench, II.A).

Human annotations (one line an instance, or one line an annotator: then the most severe counts), SWE-bench
instances, and patches that agents submitted, each with its test outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator

from bot.core.frozen import Frozen
from bot.errors import OperatorError
from evaluation.bouncerbench.tasks import VAGUE_FROM, Level, Maybe, OutputTask, output_task, repository_of
from evaluation.dataset import Row, read_rows, shaped, task_id, unique

#: Annotations of the hidden tests from which on they cannot serve as the ground truth (II.A.2).
INVALID_TESTS_FROM = 2


class Annotation(Frozen):
    """What people said about one instance, the most severe of them (Table I)."""

    instance_id: str
    quality: int
    test_validity: int
    other_issues: bool

    @property
    def vague(self) -> bool:
        return self.quality >= VAGUE_FROM

    @property
    def evaluable(self) -> bool:
        """Whether the hidden tests can say if a patch is right."""
        return self.test_validity < INVALID_TESTS_FROM and not self.other_issues


class Patch(Frozen):
    """A patch that an agent submitted, with its outcome."""

    instance_id: str
    submission: str
    text: str
    resolved: bool
    pass_fraction: float | None
    applied: bool | None


class _AnnotationRow(Frozen):
    underspecified: Level = None
    false_negative: Level = None
    other_major_issues: Annotated[float | bool | None, Maybe] = None


class _PatchRow(Frozen):
    submission: Annotated[str | None, Maybe] = None
    agent: Annotated[str | None, Maybe] = None
    applied: Annotated[bool | None, Maybe] = None
    patch_successfully_applied: Annotated[bool | None, Maybe] = None


class _InstanceRow(Frozen):
    problem_statement: str
    repo: Annotated[str | None, Maybe] = None
    base_commit: Annotated[str | None, Maybe] = None
    created_at: Annotated[str | None, BeforeValidator(lambda value: value if value is None else str(value))] = None


def read_annotations(source: str) -> dict[str, Annotation]:
    """The most severe annotation of each instance. Raises OperatorError."""
    found: dict[str, Annotation] = {}
    for row in read_rows(source):
        identity, fields = task_id(row), shaped(row, _AnnotationRow)
        if fields.underspecified is None or fields.false_negative is None:
            raise OperatorError(f"{row.where}: underspecified and false_negative are needed")
        before = found.get(identity)
        found[identity] = Annotation(
            instance_id=identity,
            quality=max(fields.underspecified, before.quality if before else 0),
            test_validity=max(fields.false_negative, before.test_validity if before else 0),
            other_issues=bool(fields.other_major_issues) or (before is not None and before.other_issues),
        )
    return found


def read_instances(source: str) -> dict[str, dict[str, Any]]:
    """Issue text, repository and base commit by instance id. Raises OperatorError."""

    def entries() -> Iterator[tuple[str, str, tuple[str, dict[str, Any]]]]:
        for row in read_rows(source):
            identity, fields = task_id(row), shaped(row, _InstanceRow)
            facts = fields.model_dump() | {"repo": fields.repo or repository_of(identity)}
            yield identity, row.where, (identity, facts)

    return dict(unique(entries()))


def read_patches(source: str) -> Iterator[Patch]:
    """Submitted patches with a known outcome, in our columns or the authors'. Raises OperatorError."""
    for row in read_rows(source):
        yield _patch(row)


def _patch(row: Row) -> Patch:
    task: OutputTask = output_task(row)
    more = shaped(row, _PatchRow)
    if task.bounce is None:
        raise OperatorError(f"{row.where}: neither resolved nor a test outcome: the patch cannot be labelled")
    return Patch(
        instance_id=task.instance_id,
        submission=more.submission or more.agent or "",
        text=task.patch or "",
        resolved=not task.bounce,
        pass_fraction=task.pass_fraction,
        applied=more.patch_successfully_applied if more.applied is None else more.applied,
    )
