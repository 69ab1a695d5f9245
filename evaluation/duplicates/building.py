"""``bouncer-eval build own --duplicates``: the issues of an index as tasks."""

from __future__ import annotations

from pathlib import Path

from bot import settings
from bot.core.errors import OperatorError
from bot.pipeline.store import Ledger, migrated
from evaluation.duplicates.tasks import build
from evaluation.report.terminal import print_json, say


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
