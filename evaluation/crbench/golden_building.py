"""Review tasks from other people's golden comments, out of the clones of a folder."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from evaluation.cli.options import print_json, say
from evaluation.crbench.build import tally
from evaluation.crbench.golden import GoldenPull, GoldenSet, golden_task, read_golden
from evaluation.crbench.lines import LineFile
from evaluation.crbench.task import ReviewTask
from evaluation.dataset import fingerprint, read_rows
from evaluation.git.history import Pulls
from evaluation.git.repository import GitRepository, find_clone


def build_golden_command(
    kind: GoldenSet, source: str, repos: Path, out: Path, defects_only: bool, overwrite: bool, as_json: bool
) -> None:
    """Make review tasks of pull requests whose change a local clone holds, for replay and score crbench."""
    pulls = list(read_golden(read_rows(source), kind, defects_only=defects_only))
    question: dict[str, Any] = {"source": fingerprint(source) or source, "set": kind, "defects_only": defects_only}
    with LineFile(out, question, overwrite) as lines, _Mirror(repos) as mirror:
        done = {row.get("instance_id") for row in lines.rows()}
        for pull in pulls:
            if pull.instance_id not in done:
                lines.append(mirror.task(pull))
        counts = tally(ReviewTask.model_validate(row) for row in lines.rows())
    _print(counts, out, as_json)


class _Mirror:
    """The clones of a folder, opened when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._known: dict[str, tuple[GitRepository | None, Pulls]] = {}

    def __enter__(self) -> _Mirror:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def task(self, pull: GoldenPull) -> ReviewTask:
        """The pull request as a task. Raises OperatorError for a shallow clone."""
        if pull.repo not in self._known:
            path = find_clone(self._folder, pull.repo)
            clone = None if path is None else self._stack.enter_context(GitRepository(path))
            self._known[pull.repo] = (clone, Pulls() if clone is None else Pulls.read(clone))
        clone, pulls = self._known[pull.repo]
        return golden_task(pull, clone, pulls)


def _print(counts: Counter[str], out: Path, as_json: bool) -> None:
    if as_json:
        print_json({"out": str(out), **dict(counts.most_common())})
        return
    for reason, count in counts.most_common():
        say(f"{count:6}  {reason}")
