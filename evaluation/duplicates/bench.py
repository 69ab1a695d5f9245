"""A task is opened as a new issue, and the live feature compares it with the issues before it.

A task file has one line for each issue of a repository's index. Some of them are tasks; all are candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydantic import Field

from bot import app, settings
from bot.calibration.risk import SuggestionPromise, suggestion_promise
from bot.cli.files import print_json
from bot.core.errors import OperatorError
from bot.core.frozen import Lenient
from bot.core.subjects import Issue
from bot.core.text import amount
from bot.features.duplicates.handler import best
from bot.features.duplicates.record import DuplicatesRecord
from bot.features.services import IndexedIssue
from bot.github.offline import AUTHOR, issue_opened
from bot.models.protocol import Model
from bot.pipeline.store import Database, Ledger, migrated
from bot.pipeline.store.issues import FirstPass, Issues, says_duplicate
from evaluation.benchmark import Benchmark, Scoring, Session
from evaluation.dataset import read_shaped, validated
from evaluation.report.cutoff import Sample
from evaluation.report.page import Cell, Section, Table, percentage
from evaluation.report.terminal import say
from evaluation.run.folder import Record, RunFolder
from evaluation.run.lines import write_result
from evaluation.run.replay import ReplayRequest
from evaluation.run.runner import Outcome
from evaluation.run.staging import Staged, repository_named, through_handler
from evaluation.statistics import Array, Counts, bootstrap, ratio


class HistoryIssue(IndexedIssue):
    """An issue of a repository. ``root`` says which issue it repeats; its own number: none."""

    instance_id: str
    repository: str = Field(description="owner/name")
    task: bool = Field(description="it is compared with the issues before it; the others are only candidates")

    @property
    def repeats(self) -> int | None:
        """The issue that it repeats; None if it repeats none."""
        return None if self.root == self.number else self.root


def read_history(source: str) -> Iterator[HistoryIssue]:
    """All issues of a file. Raises OperatorError, naming the row."""
    return read_shaped(source, HistoryIssue)


def read_tasks(source: str) -> Iterator[HistoryIssue]:
    """The issues of a file that are tasks. Raises OperatorError, naming the row."""
    return (issue for issue in read_history(source) if issue.task)


def fill(database: Database, history: Sequence[HistoryIssue]) -> Issues:
    """Index the issues as ``bouncer index`` does. A search sees only those before the issue that is looked up."""
    index = Issues(database)
    by_repository: dict[str, list[HistoryIssue]] = {}
    for issue in history:
        by_repository.setdefault(issue.repository, []).append(issue)
    for repository, issues in by_repository.items():
        index.begin(repository)
        roots = {issue.number: issue.root for issue in issues if issue.repeats or issue.unnamed}
        index.add(repository, map(_as_issue, issues), roots, FirstPass(complete=True))
    return index


def _as_issue(issue: HistoryIssue) -> Issue:
    closed_at = datetime.now(UTC) if issue.state == "closed" else None
    fields = issue.model_dump(include={"number", "title", "body", "state"})
    return Issue(**fields, author=AUTHOR, closed_at=closed_at)


def build_from_index(repository: str, out: Path | None, overwrite: bool, as_json: bool) -> int:
    """Write the issues of an index as tasks, oldest first; returns the exit code.

    Tasks are the closed issues. An issue whose own text names the one that it repeats is no test, and of a
    duplicate of an issue that nothing names the right answer is not known. Raises OperatorError without an index.
    """
    path = out or Path(f"duplicates-{repository.replace('/', '+')}.jsonl")
    if path.exists() and not overwrite:
        raise OperatorError(f"{path} exists; --overwrite writes it again")
    with migrated(settings.load().database_url, must_exist=True) as database:
        history = Ledger(database).issues.history(repository)
    if history is None:
        raise OperatorError(f"DATABASE_URL has no index of {repository}: run bouncer index {repository}")
    rows = [
        HistoryIssue(
            **issue.model_dump(),
            instance_id=f"{repository.replace('/', '__')}-{issue.number}",
            repository=repository,
            task=issue.state == "closed"
            and not issue.unnamed
            and not says_duplicate(f"{issue.title} {issue.body}"),
        )
        for issue in sorted(history, key=lambda issue: issue.number)
    ]
    write_result(path, "".join(f"{row.model_dump_json()}\n" for row in rows))
    tasks = [row for row in rows if row.task]
    duplicates = sum(row.repeats is not None for row in tasks)
    if as_json:
        print_json({"out": str(path), "issues": len(rows), "tasks": len(tasks), "duplicates": duplicates})
    else:
        counts = amount(len(rows), "issue"), amount(len(tasks), "task"), amount(duplicates, "duplicate")
        say(f"{path}: {', '.join(counts)}")
    return 0


BENCHMARK = "duplicates"
#: The abstention if no earlier issue shares a word: an answer, which names nothing.
_UNIQUE = "skipped:unique"
#: Thresholds that are listed beside that of the run, percent.
_TENTHS = (50, 60, 70, 80, 90)
#: Share of wrong suggestions that is promised at most.
HARM = 0.05


@contextmanager
def opened(request: ReplayRequest, config: str | None, tasks: str) -> Iterator[Session[HistoryIssue]]:
    """The issues for the live feature, beside a search index of the whole file. Raises OperatorError."""
    full = app.repo_config(config, {"duplicates": {"mode": "shadow"}})
    with TemporaryDirectory(prefix="bouncer-") as folder, migrated(f"sqlite:///{folder}/issues.db") as database:
        index = fill(database, list(read_history(tasks)))

        def stage(task: HistoryIssue) -> Staged:
            opening = issue_opened(task.title, task.body, repository_named(task.repository), task.number)
            return Staged(task.instance_id, opening.event, opening.snapshot, issue_index=index)

        session = through_handler(
            stage,
            "duplicates",
            full,
            app.prompts(request.environment),
            prompt_names=("duplicates.compare",),
            parts=("duplicates",),
        )

        def run(task: HistoryIssue, model: Model) -> Outcome:
            outcome = session.run(task, model)
            is_answer = outcome.decision is not None and outcome.decision.abstained == _UNIQUE
            return replace(outcome, error=None) if is_answer else outcome

        yield replace(session, run=run)


@dataclass(frozen=True)
class Compared:
    """A task with the feature's answer; an error counts as an answer that finds nothing."""

    task: HistoryIssue
    record: DuplicatesRecord
    failed: bool
    retrieved: bool
    """The issue that it repeats, or another duplicate of it, is among the candidates."""
    roots: Mapping[int, int]

    def named(self, above: int) -> int | None:
        match = best(self.record.comparisons, above)
        return None if match is None else self.roots.get(match.number, match.number)


@dataclass(frozen=True)
class ScoredRun:
    """The tasks of a run, and the threshold at which precision is measured, percent."""

    name: str
    above: int
    tasks: tuple[Compared, ...]

    @property
    def promise(self) -> SuggestionPromise:
        """The threshold that ``bouncer calibrate`` would draw."""
        suggestions = [
            (match.p_same_cause, row.named(0) == row.task.repeats)
            for row in self.tasks
            if (match := best(row.record.comparisons, 0)) is not None
        ]
        return suggestion_promise(suggestions, HARM)

    def at(self, above: int) -> ScoredRun:
        return replace(self, above=above)

    def counts(self) -> dict[str, int]:
        return {name: int(values.sum()) for name, values in self._columns().items()}

    def figures(self, draws: Counts) -> dict[str, Array]:
        sums = {name: values[draws].sum(axis=1) for name, values in self._columns().items()}
        return {
            "recall_at_5": ratio(sums["retrieved"], sums["duplicates"]),
            "precision": ratio(sums["right"], sums["suggested"]),
            "named": ratio(sums["right"], sums["duplicates"]),
        }

    def _columns(self) -> dict[str, Array]:
        answers = [(row, row.named(self.above)) for row in self.tasks]
        columns = {
            "duplicates": [row.task.repeats is not None for row in self.tasks],
            "retrieved": [row.retrieved for row in self.tasks],
            "suggested": [number is not None for _, number in answers],
            "right": [number is not None and number == row.task.repeats for row, number in answers],
        }
        return {name: np.asarray(values, dtype=float) for name, values in columns.items()}


class _Comparing(Lenient):
    suggest_above: int | None = None


def score_run(run: RunFolder, name: str, source: str, scoring: Scoring) -> ScoredRun:
    """The tasks that the run was to do. Raises OperatorError if the file lacks one of them."""
    roots = {(issue.repository, issue.number): issue.root for issue in read_history(source)}
    records = {record.task_id: record for record in run.outcomes()}
    tasks = [_compared(task, records[task.instance_id], roots) for task in DUPLICATES.due(run, source)]
    return ScoredRun(name, run.facts.part("duplicates", _Comparing).suggest_above or 0, tuple(tasks))


def _compared(task: HistoryIssue, record: Record, roots: Mapping[tuple[str, int], int]) -> Compared:
    answer = validated(DuplicatesRecord.model_validate, record.decision_record, f"record of {record.task_id}")
    here = {number: roots.get((task.repository, number), number) for number in answer.candidates}
    retrieved = task.repeats is not None and task.repeats in here.values()
    return Compared(task, answer, record.failed, retrieved, here)


#: Figures by name, with their line in the table.
_FIGURES = {
    "recall_at_5": "recall at 5 %: the repeated issue is among the candidates",
    "precision": "precision %: a suggestion names the repeated issue",
    "named": "duplicates that are named %",
}


def sections(runs: Sequence[ScoredRun], scoring: Scoring) -> list[Section]:
    rows: list[tuple[Cell, ...]] = []
    others: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for run in runs:
        counts, estimates = run.counts(), bootstrap(run.figures, len(run.tasks), scoring.resampling)
        failed = sum(row.failed for row in run.tasks)
        rows += [
            (run.name, "tasks", len(run.tasks), ""),
            (run.name, "duplicates among them", counts["duplicates"], ""),
            (run.name, "tasks without an answer", failed, ""),
            (run.name, "threshold %", run.above, ""),
            (run.name, "suggestions", counts["suggested"], ""),
        ]
        rows += [(run.name, words, *estimates[figure].cells(100, 1)) for figure, words in _FIGURES.items()]
        data[run.name] = {
            "tasks": len(run.tasks),
            "without_answer": failed,
            "threshold": run.above,
            **counts,
            **{figure: estimate.as_json() for figure, estimate in estimates.items()},
            "promise": run.promise.model_dump(mode="json"),
        }
        for above in sorted({*_TENTHS, run.above}):
            at = run.at(above).counts()
            share = at["right"] / at["suggested"] if at["suggested"] else None
            wrong = at["suggested"] - at["right"]
            others.append((run.name, above, at["suggested"], wrong, percentage(share), at["right"]))
    table = Table(("run", "figure", "value", "95 % interval"), tuple(rows))
    header = ("run", "threshold %", "suggestions", "wrong", "precision %", "duplicates named")
    promises = tuple(_promised(run) for run in runs)
    return [
        Section("Duplicates", promises, (table,), data={"duplicates": data}),
        Section("Duplicates at other thresholds", tables=(Table(header, tuple(others)),)),
    ]


def _promised(run: ScoredRun) -> str:
    promise = run.promise
    if promise.suggest_above is None:
        suggestions = amount(promise.suggestions, "suggestion")
        bear = "bears" if promise.suggestions == 1 else "bear"
        return (
            f"{run.name}: {suggestions}, {promise.wrong} of them wrong, {bear} no promise that "
            f"at most {HARM:.0%} are wrong; it takes at least {promise.needed}."
        )
    return f"{run.name}: at or above {promise.suggest_above} % at most {HARM:.0%} of the suggestions are wrong."


DUPLICATES: Benchmark[HistoryIssue, ScoredRun] = Benchmark(
    BENCHMARK,
    read_tasks,
    lambda task: task.instance_id,
    score_run,
    sections,
    lambda run: Sample(run.name, [row.task.instance_id for row in run.tasks], run.figures),
)
