"""The benchmark's tasks, from any of the forms in which they are handed around (BouncerBench, II.A).

Read are our own JSON Lines, SWE-bench annotations, and the columns of the authors' CSV files and Hugging Face data
sets: ``underspecified``, ``input_quality`` or ``input_bounce`` for the annotation, ``output_bounce``,
``resolved``, ``pass_frac``, ``output_quality`` or ``tests_status`` for the outcome of a patch. Ground truth may be
missing: such tasks can be replayed, and scoring counts and shows them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field

from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from bot.features.shared.labels import InputLabel, OutputLabel
from evaluation.dataset import Row, read_rows, shaped, task_id, unique

Kind = Literal["bouncerbench-input", "bouncerbench-output"]
INPUT: Kind = "bouncerbench-input"
OUTPUT: Kind = "bouncerbench-output"
#: Best first.
LABEL_NAMES: dict[Kind, list[str]] = {
    INPUT: [label.value for label in InputLabel],
    OUTPUT: [label.value for label in OutputLabel],
}

#: Annotation levels from which on an issue should be turned away (BouncerBench, II.A.1).
VAGUE_FROM = 2
#: The longest ``tests_status`` literal that is read, characters.
MAX_STATUS = 8 * 1024 * 1024

#: The kinds of hidden tests that an incorrect patch fails (II.A.2).
Failing = Literal["fail-to-pass", "pass-to-pass", "both"]

_ID = re.compile(r"(?P<owner>[\w.-](?:(?!__)[\w.-])*+)__(?P<name>[\w.-]+)-(?P<number>\d+)")


def _blank_is_none(value: Any) -> Any:
    """CSV has no null: an empty cell and pandas' ``nan`` stand for it."""
    return None if isinstance(value, str) and value.strip().lower() in ("", "nan", "none") else value


Maybe = BeforeValidator(_blank_is_none)
Level = Annotated[int | None, Field(ge=0, le=3), BeforeValidator(lambda value: _level(value))]


def _level(value: Any) -> Any:
    """Annotations are written ``2``, ``2.0`` and ``"2.0"``."""
    value = _blank_is_none(value)
    try:
        return int(value) if isinstance(value, str) and float(value).is_integer() else value
    except ValueError:
        return value


class _Ticket(Frozen):
    """An issue, and how clear three people found it: the most severe of their labels."""

    instance_id: str
    repo: str
    problem_statement: str | None = Field(None, description="title and text; None if only labels are at hand")
    base_commit: str = Field("", description="SHA of the code that the issue is about; empty = not known")
    quality: int | None = Field(None, ge=0, le=3, description="0 clear to 3 impossible; None = not annotated")
    input_bounce: bool | None = Field(None, description="the annotators' verdict without their label")

    @classmethod
    def absent(cls, identity: str) -> Self:
        """A task of which nothing but the id is known."""
        return cls(instance_id=identity, repo=repository_of(identity))

    @property
    def vague(self) -> bool | None:
        """True if a bouncer should turn the issue away; None if it is not known."""
        return self.input_bounce if self.quality is None else self.quality >= VAGUE_FROM


class InputTask(_Ticket):
    """An issue that a bouncer judges."""

    test_validity: int | None = Field(
        None, ge=0, le=3, description="of the hidden tests: 0 perfect to 3 about something else (Table I)"
    )
    other_issues: bool | None = Field(
        None, description="whether people noted other major issues; None = not known"
    )

    @property
    def bounce(self) -> bool | None:
        """The right verdict, named as in OutputTask."""
        return self.vague


class OutputTask(_Ticket):
    """An issue with a patch that some agent wrote for it, and whether the hidden tests pass with it."""

    patch: str | None = None
    bounce: bool | None = Field(None, description="whether the patch fails any test; None = not known")
    pass_fraction: float | None = Field(
        None, ge=0, le=1, description="passed / all of Fail-to-Pass and Pass-to-Pass; None = not known"
    )
    failing: Failing | None = Field(None, description="which tests an incorrect patch fails; None = not known")


class _InputRow(Frozen):
    underspecified: Level = None
    input_quality: Level = None
    false_negative: Level = None
    other_major_issues: Annotated[float | bool | None, Maybe] = None
    input_bounce: Annotated[bool | None, Maybe] = None
    repo: Annotated[str | None, Maybe] = None
    problem_statement: Annotated[str | None, Maybe] = None
    base_commit: Annotated[str | None, Maybe] = None


class _OutputRow(_InputRow):
    patch: Annotated[str | None, Maybe] = None
    model_patch: Annotated[str | None, Maybe] = None
    output_bounce: Annotated[bool | None, Maybe] = None
    resolved: Annotated[bool | None, Maybe] = None
    output_quality: Annotated[float | None, Maybe] = None
    pass_frac: Annotated[float | None, Maybe] = None
    failing: Annotated[Failing | None, Maybe] = None
    tests_status: Any = None


def input_tasks(source: str) -> Iterator[InputTask]:
    """Stream the input tasks of a data set. Raises OperatorError with file and line."""
    return unique((task.instance_id, row.where, task) for row in read_rows(source) for task in (input_task(row),))


def output_tasks(source: str) -> Iterator[OutputTask]:
    """Stream the output tasks of a data set. Raises OperatorError with file and line."""
    return unique((task.instance_id, row.where, task) for row in read_rows(source) for task in (output_task(row),))


def input_task(row: Row) -> InputTask:
    """One row as an input task. Raises OperatorError."""
    fields = shaped(row, _InputRow)
    return InputTask(
        **_ticket(row, fields),
        test_validity=fields.false_negative,
        other_issues=None if fields.other_major_issues is None else bool(fields.other_major_issues),
    )


def _ticket(row: Row, fields: _InputRow) -> dict[str, Any]:
    """The fields that all tasks have. Raises OperatorError."""
    identity = task_id(row)
    quality = fields.underspecified if fields.input_quality is None else fields.input_quality
    if None not in (quality, fields.input_bounce) and (quality or 0) // VAGUE_FROM != fields.input_bounce:
        raise OperatorError(f"{row.where}: input_bounce contradicts the annotation {quality}")
    return {
        "instance_id": identity,
        "repo": fields.repo or repository_of(identity),
        "problem_statement": fields.problem_statement,
        "base_commit": fields.base_commit or "",
        "quality": quality,
        "input_bounce": fields.input_bounce,
    }


def output_task(row: Row) -> OutputTask:
    """One row as an output task. Raises OperatorError."""
    fields = shaped(row, _OutputRow)
    fraction, failing = _outcome(fields, row.where)
    bounce = fields.output_bounce
    if bounce is None and fields.resolved is not None:
        bounce = not fields.resolved
    if bounce is None and fraction is not None:
        bounce = fraction < 1
    if bounce is False:
        fraction = 1.0  # correct means that every test passes (BouncerBench, II.B.2)
    return OutputTask(
        **_ticket(row, fields),
        patch=fields.patch if fields.model_patch is None else fields.model_patch,
        bounce=bounce,
        pass_fraction=fraction,
        failing=failing if bounce else None,
    )


def repository_of(identity: str) -> str:
    """``owner/name`` from an id like ``astropy__astropy-1234``; ``unknown/unknown`` if it has another form."""
    match = _ID.fullmatch(identity)
    return f"{match['owner']}/{match['name']}" if match else "unknown/unknown"


def number_of(identity: str) -> int:
    """The number in an id like ``astropy__astropy-1234``; 1 if it has another form."""
    match = _ID.fullmatch(identity)
    return int(match["number"]) if match else 1


def _outcome(fields: _OutputRow, where: str) -> tuple[float | None, Failing | None]:
    """The share of tests that pass, and which kinds fail; None if the row does not say."""
    status = _blank_is_none(fields.tests_status)
    fraction, failing = (None, None) if status is None else _counted(status, where)
    for value in (fields.output_quality, fields.pass_frac):
        if value is not None:
            if not 0 <= value <= 1:
                raise OperatorError(f"{where}: a pass fraction of {value} is not between 0 and 1")
            return value, fields.failing or failing
    return fraction, fields.failing or failing


def _counted(status: Any, where: str) -> tuple[float, Failing | None]:
    """Passed tests by all tests, and what fails: ``tests_status`` is a dict, or its literal as in CSV files."""
    try:
        if isinstance(status, str):
            if len(status) > MAX_STATUS:
                raise OperatorError(f"{where}: tests_status of more than {MAX_STATUS} characters")
            status = ast.literal_eval(status)  # literals only: no name is looked up, nothing is called
        (mended, broken), (unbroken, lost) = (
            (len(status[kind]["success"]), len(status[kind]["failure"]))
            for kind in ("FAIL_TO_PASS", "PASS_TO_PASS")
        )
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise OperatorError(f"{where}: tests_status: {type(error).__name__}: {str(error)[:80]}") from None
    total = mended + broken + unbroken + lost
    failing: Failing | None = "both" if broken and lost else "fail-to-pass" if broken else None
    return (mended + unbroken) / total if total else 0.0, "pass-to-pass" if lost and not broken else failing
