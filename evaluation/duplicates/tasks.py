"""Task files: one line for each issue of a repository's index. Some of them are tasks; all are candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from bot import settings
from bot.core.errors import OperatorError
from bot.core.subjects import Issue
from bot.features.services import IndexedIssue
from bot.github.offline import AUTHOR
from bot.pipeline.store import Database, Ledger, migrated
from bot.pipeline.store.issues import FirstPass, Issues, says_duplicate
from evaluation.dataset import read_shaped
from evaluation.report.terminal import print_json, say


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
    return Issue.model_validate(
        {
            **issue.model_dump(include={"number", "title", "body", "state"}),
            "author": AUTHOR,
            "closed_at": closed_at,
        }
    )


def build(history: Sequence[IndexedIssue], repository: str, out: Path) -> Mapping[str, int]:
    """Write the issues of an index as tasks, oldest first; return how many there are of each sort.

    Tasks are the closed issues. An issue whose own text names the one that it repeats is no test, and of a
    duplicate of an issue that nothing names the right answer is not known. Raises OperatorError.
    """
    owner, _, name = repository.partition("/")
    rows = [
        HistoryIssue(
            **issue.model_dump(),
            instance_id=f"{owner}__{name}-{issue.number}",
            repository=repository,
            task=issue.state == "closed"
            and not issue.unnamed
            and not says_duplicate(f"{issue.title} {issue.body}"),
        )
        for issue in sorted(history, key=lambda issue: issue.number)
    ]
    try:
        out.write_text("".join(f"{row.model_dump_json()}\n" for row in rows), encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"{out}: {error.strerror}") from None
    tasks = [row for row in rows if row.task]
    return {"issues": len(rows), "tasks": len(tasks), "duplicates": sum(row.repeats is not None for row in tasks)}


def build_from_index(repository: str, out: Path | None, overwrite: bool, as_json: bool) -> int:
    """Write the tasks; returns the exit code. Raises OperatorError without an index."""
    path = out or Path(f"duplicates-{repository.replace('/', '+')}.jsonl")
    if path.exists() and not overwrite:
        raise OperatorError(f"{path} exists; --overwrite writes it again")
    with migrated(settings.load().database_url, must_exist=True) as database:
        history = Ledger(database).issues.history(repository)
    if history is None:
        raise OperatorError(f"DATABASE_URL has no index of {repository}: run bouncer index {repository}")
    counts = build(history, repository, path)
    if as_json:
        print_json({"out": str(path), **counts})
    else:
        say(f"{path}: {counts['issues']} issues, {counts['tasks']} tasks, {counts['duplicates']} duplicates")
    return 0
