"""A run on disk: ``run.json`` says what was run, ``records.jsonl`` holds one line a task.

A folder outlives the process that fills it (``lines``): a kill loses no finished task, and one whose line was cut
in half is done once more. Scores are computed from the folder alone.

``tasks.txt`` lists the tasks that the run was to do, after ``--limit``. They are the denominator of every figure
(``due``, ``outcomes``): a task that was never reached counts as one without an answer, and the list never shrinks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import Field, ValidationError, field_validator

from bot.core.actions import Usage
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen, Lenient
from bot.features.shared.findings import Grade
from evaluation.dataset import choose, fingerprint, json_row, read_rows, validated
from evaluation.run.lines import Lines, locked, write_file

RUN_FILE = "run.json"
RECORDS_FILE = "records.jsonl"
TASKS_FILE = "tasks.txt"
LOCK_FILE = ".lock"

#: The error of a task that the run was to do and has no record of.
NOT_RUN = "not run: the run ended before it"

T = TypeVar("T")
Shape = TypeVar("Shape", bound=Lenient)


class Record(Frozen):
    """The result of one task: one line of ``records.jsonl``."""

    task_id: str
    decision: dict[str, Any] | None = Field(None, description="the handler's Decision as JSON; None = none came")
    raw_reply: str | None = Field(None, description="the last text that the model said, before parsing")
    usage: Usage = Usage()
    lost: Usage | None = Field(None, description="of the usage, what no cache of replies keeps; None = all of it")
    seconds: float = Field(0.0, description="wall time of this task, waiting for other tasks included")
    error: str | None = Field(None, description="why there is no usable answer; None = the task was answered")
    details: dict[str, Any] = Field(
        default_factory=dict, description="what the benchmark adds, JSON; in the file beside the other fields"
    )

    @field_validator("decision")
    @classmethod
    def _with_record(cls, decision: dict[str, Any] | None) -> dict[str, Any] | None:
        for name in ("record", "evidence"):
            if not isinstance((decision or {}).get(name) or {}, dict):
                raise ValueError(f"{name}: an object is needed")
        return decision

    @property
    def failed(self) -> bool:
        """True if the task may be tried again (``--retry-failed``)."""
        return self.error is not None

    @property
    def decision_record(self) -> dict[str, Any]:
        """The decision's record as JSON (``evidence`` in runs of version 0.2); empty if there is none."""
        decision = self.decision or {}
        return decision.get("record") or decision.get("evidence") or {}

    @property
    def recognised(self) -> Familiarity | None:
        """How well the model knows the task from elsewhere; None if it did not say."""
        places = [self.details, self.decision_record]
        try:
            reply = json.loads(self.raw_reply or "null")
        except (ValueError, RecursionError):
            reply = None
        for place in [*places, reply] if isinstance(reply, dict) else places:
            if (familiarity := Familiarity.said_in(place)) is not None:
                return familiarity
        return None


class Familiarity(Frozen):
    """How well a model knows a task from elsewhere, as it says itself."""

    grade: Grade = "no"
    published: bool = Field(False, description="it knows the text from a published data set")

    @classmethod
    def said_in(cls, answer: Mapping[str, Any]) -> Familiarity | None:
        """Read what an answer says; None if it says nothing. Answers of version 0.2 say True or False."""
        grade, published = answer.get("recognised"), answer.get("published")
        if grade is None and published is None:
            return None
        try:
            return cls(grade="no" if grade is None else grade, published=bool(published))
        except ValidationError:
            return None


class Tasks(Frozen):
    """The task list of a run, so that resuming and scoring use the same one."""

    source: str = Field(description="absolute path of the file, or the data set's id")
    sha256: str = Field("", description="of the file's bytes; empty for a data set that is not a file")
    limit: int | None = Field(None, description="how many of them, None = all")


class Totals(Frozen):
    """Counted from the records when a run ends or is stopped."""

    records: int = 0
    failed: int = 0
    usage: Usage = Usage()
    seconds: float = Field(0.0, description="sum over tasks; with several workers more than the wall time")


class RunFacts(Frozen):
    """``run.json``: everything needed to say what a number describes."""

    benchmark: str
    model: str
    prompts: dict[str, str] = Field(default_factory=dict, description="prompt name -> sha256 of its text")
    version: str = Field(description="of this package")
    config: dict[str, Any] = Field(default_factory=dict, description="what else shapes a decision, JSON")
    seed: int | None = None
    tasks: Tasks
    started_at: datetime
    finished_at: datetime | None = Field(None, description="None while tasks are missing")
    retried: Usage = Field(Usage(), description="of failed attempts that were repeated; part of the totals")
    totals: Totals = Totals()

    def part(self, name: str, shape: type[Shape]) -> Shape:
        """Return one part of the configuration. Raises OperatorError if it has another shape."""
        return validated(shape.model_validate, self.config.get(name) or {}, f"{RUN_FILE}: config.{name}")

    def identity(self) -> dict[str, Any]:
        """Return the facts that two sessions of one run share; a higher ``--limit`` continues it."""
        common = self.model_dump(mode="json", exclude={"started_at", "finished_at", "retried", "totals", "tasks"})
        return common | {"tasks": self.tasks.sha256 or self.tasks.source}


class RunFolder:
    """An open run. ``append`` is thread-safe; a lock keeps a second process from writing to the folder."""

    def __init__(self, path: Path, facts: RunFacts) -> None:
        self.path = path
        self.facts = facts
        self._lines = Lines(path / RECORDS_FILE)
        self._lock: BinaryIO | None = None

    @classmethod
    def read(cls, path: Path, benchmark: str | None = None) -> RunFolder:
        """Open a finished or interrupted run for scoring. Raises OperatorError if it is none of ``benchmark``."""
        facts = _read_facts(path)
        if benchmark not in (None, facts.benchmark):
            raise OperatorError(f"{path} is a run of {facts.benchmark}, not of {benchmark}")
        return cls(path, facts)

    @classmethod
    def resume(cls, path: Path, facts: RunFacts, tasks: Iterable[str] = ()) -> RunFolder:
        """Open ``path`` for writing, new or continued; ``close`` it afterwards.

        ``tasks`` are the ids that the run is to do, added to those that it was to do before. Raises
        OperatorError where the folder holds another run (other tasks, model, prompts, config or package
        version), or where another process is writing to it.
        """
        run = cls(path, facts)
        run._lock = locked(path / LOCK_FILE, path)
        try:
            run._continue_or_begin(tasks)
        except OperatorError:
            run._unlock()
            raise
        return run

    def _continue_or_begin(self, tasks: Iterable[str]) -> None:
        if (self.path / RUN_FILE).exists():
            facts = _read_facts(self.path)
            _require_same(self.path, facts, self.facts)
            before, now = facts.tasks.limit, self.facts.tasks.limit  # None = all tasks
            is_narrower = now is not None and (before is None or before > now)
            wider = facts.tasks if is_narrower else self.facts.tasks
            earlier = {"started_at": facts.started_at, "retried": facts.retried, "tasks": wider}
            self.facts = self.facts.model_copy(update=earlier)
            self._lines.cut()
        elif self._lines.path.exists():
            raise OperatorError(f"{self.path} has {RECORDS_FILE} but no {RUN_FILE}: it cannot be continued")
        identities = dict.fromkeys([*(_listed(self.path / TASKS_FILE) or ()), *tasks])
        if identities:
            write_file(self.path / TASKS_FILE, "".join(f"{identity}\n" for identity in identities))
        self._write_facts()

    def records(self) -> Iterator[Record]:
        """Every record in the order of finishing. Raises OperatorError with file and line for a bad one."""
        for where, line in self._lines.finished():
            yield _parse(line, where)

    def done(self) -> set[str]:
        """Ids of the recorded tasks. Raises OperatorError if one is recorded twice."""
        identities: set[str] = set()
        for record in self.records():
            if record.task_id in identities:
                raise OperatorError(f"{self._lines.path}: task {record.task_id} is recorded twice")
            identities.add(record.task_id)
        return identities

    def due(
        self, tasks: Sequence[T], identify: Callable[[T], str], absent: Callable[[str], T] | None = None
    ) -> list[T]:
        """The tasks that this run was to do, those of a file first: the denominator of every figure about it.

        ``absent`` makes a task that ``tasks`` lacks from its id. Without it such a task raises OperatorError.
        """
        identities = self._requested_ids()
        if identities is None:
            identities = list(choose(map(identify, tasks), self.facts.tasks.limit, self.facts.seed))
        due_ids = {**dict.fromkeys(identities), **dict.fromkeys(record.task_id for record in self.records())}
        in_file = {identify(task) for task in tasks}
        missing = [identity for identity in due_ids if identity not in in_file]
        if missing and absent is None:
            raise OperatorError(
                f"the task file lacks {len(missing)} of the {len(due_ids)} tasks of {self.path}, "
                f"{missing[0]} for one: score a run on the tasks that it was made from"
            )
        return [task for task in tasks if identify(task) in due_ids] + [
            absent(identity) for identity in missing if absent is not None
        ]

    def missing(self) -> list[str]:
        """Ids of the tasks that the run was to do and has no record of, in their order."""
        finished = self.done()
        return [identity for identity in self._requested_ids() or () if identity not in finished]

    def outcomes(self) -> Iterator[Record]:
        """Every record, then one that says so for each task that the run did not come to."""
        yield from self.records()
        for identity in self.missing():
            yield Record(task_id=identity, error=NOT_RUN)

    def _requested_ids(self) -> list[str] | None:
        """Ids that the run was to do; for a folder without the list as its task file and limit tell, else None."""
        identities = _listed(self.path / TASKS_FILE)
        if identities is not None:
            return identities
        source, tasks = self.facts.tasks.source, self.facts.tasks
        try:
            if not tasks.sha256 or fingerprint(source) != tasks.sha256:
                return None
            fields = ((row.data.get("instance_id"), row.data.get("candidate_id")) for row in read_rows(source))
            ids = ["/".join(str(side) for side in pair if side is not None) for pair in fields]
        except OperatorError:
            return None
        selection = choose(ids, tasks.limit, self.facts.seed)
        return [identity for identity in ids if identity in selection]

    def spent_usd(self) -> float:
        return sum((record.usage.cost_usd or 0.0 for record in self.records()), self.facts.retried.cost_usd or 0.0)

    def append(self, record: Record) -> None:
        """Write one record and force it to disk. Raises OperatorError if the disk refuses it."""
        self._lines.write(_line(record))

    def retry_failed(self) -> int:
        """Remove the records of failed tasks, so that they are done again; returns how many.

        The totals keep what they cost. Replies that the cache keeps are counted with the next attempt, which is
        given them again.
        """
        failed = (
            record.usage if record.lost is None else record.lost for record in self.records() if record.failed
        )
        self.facts = self.facts.model_copy(update={"retried": sum(failed, self.facts.retried)})
        self._write_facts()
        return self._lines.drop(lambda line: _parse(line, str(self._lines.path)).failed)

    def close(self, finished_at: datetime | None) -> None:
        """Count the records, write ``run.json``; ``finished_at`` counts only if no task is missing."""
        self._lines.close()
        totals = Totals(usage=self.facts.retried)
        for record in self.records():
            totals = Totals(
                records=totals.records + 1,
                failed=totals.failed + record.failed,
                usage=totals.usage + record.usage,
                seconds=totals.seconds + record.seconds,
            )
        is_complete = finished_at is not None and not self.missing()
        ending = {"finished_at": finished_at if is_complete else None, "totals": totals}
        self.facts = self.facts.model_copy(update=ending)
        self._write_facts()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _write_facts(self) -> None:
        write_file(self.path / RUN_FILE, self.facts.model_dump_json(indent=2) + "\n")


def _listed(file: Path) -> list[str] | None:
    try:
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{file}: cannot be read: {error}") from None


def _line(record: Record) -> bytes:
    """One line of pure ASCII: a lone surrogate in a reply must not make a record unwritable.

    What a benchmark adds stands beside what all records have, so that a line reads as one flat object.
    """
    data = record.model_dump(mode="python", exclude={"lost"} if record.lost is None else None)
    details = data.pop("details")
    clash = details.keys() & Record.model_fields.keys()
    if clash:
        raise ValueError(f"details of {record.task_id} repeat {', '.join(sorted(clash))}")
    return json.dumps({**data, **details}).encode("ascii") + b"\n"


def _parse(line: bytes, where: str) -> Record:
    data = json_row(line, where).data
    own = {name: value for name, value in data.items() if name in Record.model_fields}
    fields = {"details": {name: value for name, value in data.items() if name not in own}, **own}
    return validated(Record.model_validate, fields, f"{where}: not a record")


def _read_facts(path: Path) -> RunFacts:
    file = path / RUN_FILE
    try:
        return RunFacts.model_validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise OperatorError(f"{path} is not a run: no {RUN_FILE} in it") from error
    except (OSError, ValidationError) as error:
        raise OperatorError(f"{file}: cannot be read: {str(error).partition(chr(10))[0]}") from error


def _require_same(path: Path, existing: RunFacts, requested: RunFacts) -> None:
    old, new, place = existing.identity(), requested.identity(), ""
    while differing := next((key for key in {**old, **new} if old.get(key) != new.get(key)), None):
        place = f"{place}.{differing}".lstrip(".")
        before, now = old.get(differing), new.get(differing)
        if not (isinstance(before, dict) and isinstance(now, dict)):
            raise OperatorError(
                f"{path} holds another run ({place} was {_brief(before)}, is now {_brief(now)}): "
                "choose another --out folder"
            )
        old, new = before, now


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
