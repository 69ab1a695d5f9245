"""Cases and candidates as they stand in files: a bug with two checkouts, and tests that may reproduce it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from bot.reproduction.protocol import TestCommand
from bot.reproduction.report import read_report
from evaluation.dataset import read_rows, shaped, task_id, unique


class Case(Frozen):
    """One bug: its report, the code with it and without it, and how tests are run."""

    instance_id: str
    problem_statement: str = ""
    base: Path = Field(description="checkout with the bug")
    fixed: Path = Field(description="checkout without it")
    command: tuple[str, ...] = Field(
        min_length=1, description="words, or one line; with {tests} where test ids or files belong"
    )
    env: dict[str, str] = Field(default_factory=dict)
    test_patch: str | None = Field(
        None,
        description="the developer's test as a unified diff; no draft ever sees it, a masked pair has to pass it",
    )

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        """Split a command that is written as one line, as typed in a shell."""
        return TestCommand.parse(value).argv if isinstance(value, str) else value

    @field_validator("command", "env")
    @classmethod
    def _for_a_program(cls, value: tuple[str, ...] | dict[str, str]) -> tuple[str, ...] | dict[str, str]:
        """Refuse what no program can be given: NUL, half of a surrogate pair, a variable's name with ``=``."""
        words = (*value, *value.values()) if isinstance(value, dict) else value
        if any("\0" in word or word != word.encode("utf-8", "ignore").decode() for word in words):
            raise ValueError("a NUL character, or half of a surrogate pair")
        if isinstance(value, dict) and any(not name or "=" in name for name in value):
            raise ValueError("no variable can have this name")
        return value


class Candidate(Frozen):
    """A change that adds tests: a unified diff, or one file's path and whole content."""

    instance_id: str
    candidate_id: str = Field(min_length=1, max_length=200)
    patch: str | None = None
    path: str | None = None
    content: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Candidate:
        whole = (self.path is None, self.content is None)
        if whole not in ((True, True), (False, False)) or (self.patch is None) == whole[0]:
            raise ValueError("either patch, or path and content")
        return self

    @property
    def task(self) -> str:
        return f"{self.instance_id}/{self.candidate_id}"


class Published(Frozen):
    """A bug as LIBRO's replication package lists it (GHRB, Defects4J): its report, and the test of its fix."""

    bug_id: str
    title: str
    description_html: str = ""
    test_diff: str | None = None
    invalid: bool = False


@dataclass(frozen=True)
class Checkouts:
    """Facts that a published list lacks: the folders of both versions of a bug, and the test command."""

    folder: Path
    command: tuple[str, ...]

    def case(self, bug: Published) -> Case | None:
        """The bug as a case; None for an invalid report and where ``folder`` has no versions of it."""
        place = self.folder.resolve() / bug.bug_id
        base, fixed = place / "base", place / "fixed"
        if bug.invalid or not base.is_dir() or not fixed.is_dir():
            return None
        return Case(
            instance_id=bug.bug_id,
            problem_statement=read_report(bug.title, bug.description_html).text,
            base=base,
            fixed=fixed,
            command=self.command,
            test_patch=bug.test_diff,
        )


def read_cases(source: str, checkouts: Checkouts | None = None) -> dict[str, Case]:
    """Cases by id, their folders made absolute (from the file's own folder).

    LIBRO's rows need ``checkouts``. Raises OperatorError, naming file and line, for a case that cannot be used.
    """
    folder = Path(source).resolve().parent
    entries = []
    for row in read_rows(source):
        if "bug_id" in row.data and "base" not in row.data:
            if checkouts is None:
                raise OperatorError(
                    f"{row.where}: base: missing (LIBRO's rows need --checkouts and --test-command)"
                )
            case = checkouts.case(shaped(row, Published))
            if case is None:
                continue
        else:
            task_id(row)
            case = shaped(row, Case)
            for name, path in (("base", case.base), ("fixed", case.fixed)):
                if not (folder / path).is_dir():
                    raise OperatorError(f"{row.where}: {name}: no folder {path}")
            case = case.model_copy(update={"base": folder / case.base, "fixed": folder / case.fixed})
        entries.append((case.instance_id, row.where, case))
    if not entries:
        raise OperatorError(
            f"{source}: no case in it" + (f" with checkouts in {checkouts.folder}" if checkouts else "")
        )
    return {case.instance_id: case for case in unique(iter(entries))}


def read_candidates(source: str, cases: dict[str, Case] | None = None) -> Iterator[Candidate]:
    """Candidates in their order. Raises OperatorError for one that is malformed, repeated, or of no known case."""

    def entries() -> Iterator[tuple[str, str, Candidate]]:
        for row in read_rows(source):
            task_id(row)
            task_id(row, "candidate_id")
            candidate = shaped(row, Candidate)
            if cases is not None and candidate.instance_id not in cases:
                raise OperatorError(f"{row.where}: instance_id: no case {candidate.instance_id}")
            yield candidate.task, row.where, candidate

    return unique(entries())
