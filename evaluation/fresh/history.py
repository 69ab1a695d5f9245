"""The fixes with tests in a clone's own history, and what had been reported about each.

The report is the text of the issues that a fix closes, as an export has them; else what the fix itself adds to the
changelog; else what was written about the change. Only the first is sure not to know the answer, so every
task says which it has.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from bot.code.change.file_classes import is_test
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from bot.core.subjects import Issue
from bot.features.shared.links import closing_links
from bot.github.offline import AUTHOR
from bot.github.protocol import Past
from evaluation.brt.judge import added_tests
from evaluation.crbench.mapping import Instance
from evaluation.crbench.own import MAX_FIX, Change, code_change, difference, instance_of, is_fix, paths, trunk
from evaluation.dataset import read_json, read_rows, shaped
from evaluation.git.repository import GitRepository

Stated = Literal["issue", "changelog entry", "pull request", "commit"]

_CHANGELOG = re.compile(
    r"^(changes?|changelog|history|news|whatsnew|release[-_]?notes|newsfragments)\b", re.IGNORECASE
)
#: A news fragment by the issue that it is about, as towncrier names them: ``1234.bugfix.rst``.
_FRAGMENT = re.compile(r"^(?P<number>\d+)\.(?P<kind>[a-z_]+)(?:\.\d+)?(?:\.\w+)?$")
#: Kinds of fragments by which a project says that a change mends nothing.
_NO_BUG = frozenset(
    {
        "feature", "improvement", "enhancement", "change", "deprecation", "breaking", "removal", "doc", "docs",
        "documentation", "packaging", "vendor", "contrib", "new_check", "removed_check", "user_action",
        "performance",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Fix:
    """A change that mends a bug and brings tests along.

    ``tests`` are the files that it touches among tests, ``runnable_tests`` those that a command can be given.
    """

    instance: Instance
    commit: str
    fixed_at: datetime
    stated: Stated
    tests: tuple[str, ...]
    runnable_tests: tuple[str, ...]


class _Row(Frozen):
    number: int
    title: str
    body: Annotated[str, BeforeValidator(lambda value: value or "")] = ""
    labels: list[Any] = Field(default_factory=list)
    pull_request: Any = None


@dataclass(frozen=True)
class Export:
    """Issues and pull requests by number; ``closes`` maps a pull request to the issues that it closed."""

    issues: Mapping[int, Issue] = field(default_factory=dict)
    pulls: Mapping[int, str] = field(default_factory=dict)
    closes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def read_export(source: str) -> Export:
    """Read an export of ``bouncer calibrate``, or rows of GitHub's list of issues. Raises OperatorError."""
    whole = read_json(source) if source.endswith(".json") else None
    if isinstance(whole, dict):
        try:
            return _from_past(Past.model_validate(whole))
        except ValidationError as error:
            raise OperatorError(
                f"{source}: no export of bouncer calibrate: {error.error_count()} errors"
            ) from None
    issues: dict[int, Issue] = {}
    pulls: dict[int, str] = {}
    for row in read_rows(source):
        entry = shaped(row, _Row)
        if entry.pull_request:
            pulls[entry.number] = f"{entry.title}\n\n{entry.body}".strip()
            continue
        labels = tuple(
            str(label.get("name", "")) if isinstance(label, dict) else str(label) for label in entry.labels
        )
        issues[entry.number] = Issue(
            number=entry.number, title=entry.title, body=entry.body, author=AUTHOR, labels=labels
        )
    return Export(issues, pulls)


def _from_past(past: Past) -> Export:
    closes: dict[int, tuple[int, ...]] = {}
    for closed in past.issues:
        for number in closed.closed_by:
            closes[number] = (*closes.get(number, ()), closed.issue.number)
    issues = [issue.issue for issue in past.issues] + [issue for pull in past.pulls for issue in pull.issues]
    for merged in past.pulls:
        closes[merged.pull.number] = tuple(
            dict.fromkeys((*closes.get(merged.pull.number, ()), *(issue.number for issue in merged.issues)))
        )
    texts = {pull.pull.number: f"{pull.pull.title}\n\n{pull.pull.body}".strip() for pull in past.pulls}
    return Export({issue.number: issue for issue in issues}, texts, closes)


def fixes(
    repository: GitRepository, full_name: str, since: datetime, web_url: str, export: Export, steps: Counter[str]
) -> Iterator[Fix]:
    """The fixes with tests since a moment, newest first; ``steps`` counts what came that far.

    Raises GitError if the history cannot be read.
    """
    for change in trunk(repository, since):
        steps["changes"] += 1
        touched = paths(repository, change)
        news = [path for path in touched if any(_CHANGELOG.match(part) for part in PurePosixPath(path).parts)]
        number = change.number(full_name)
        closed = _closed(repository, change, number, news, full_name, web_url, export)
        issues = [export.issues[number] for number in closed if number in export.issues]
        if not _mends(change, news, closed, issues):
            continue
        steps["fixes"] += 1
        code = code_change(repository, change)
        tests = tuple(path for path in touched if is_test(path))
        if not code or not tests or len(code) > MAX_FIX:
            continue
        steps["with code and tests"] += 1
        test_files = _named(repository, change, tests)
        if not test_files:
            continue
        steps["with tests to name"] += 1
        text, stated = _statement(repository, change, number, news, issues, export)
        yield Fix(
            instance=instance_of(change, full_name, code, text),
            commit=change.commit,
            fixed_at=change.at,
            stated=stated,
            tests=tests,
            runnable_tests=test_files,
        )


def _mends(change: Change, news: Sequence[str], closed: list[int], issues: list[Issue]) -> bool:
    """Return True if a change mends a bug: by its news fragments where they say what it is, else by its words."""
    kinds = {match["kind"] for path in news if (match := _FRAGMENT.match(PurePosixPath(path).name))}
    return "bugfix" in kinds or (not (kinds and kinds <= _NO_BUG) and is_fix(change, closed, issues))


def _named(repository: GitRepository, change: Change, tests: Sequence[str]) -> tuple[str, ...]:
    """The test files that hold tests, and that pytest would collect where the project says which it does."""
    patterns = _collected(repository, change.commit)

    def collected(path: str) -> bool:
        name = PurePosixPath(path).name
        return not patterns or any(
            fnmatch(f"/{path}", f"*/{pattern}") if "/" in pattern else fnmatch(name, pattern)
            for pattern in patterns
        )

    return tuple(path for path in tests if collected(path) and _holds_tests(repository, change, path))


def _collected(repository: GitRepository, commit: str) -> tuple[str, ...]:
    """The project's ``python_files``, for pytest; empty if it has none."""
    for name in ("pytest.toml", "pyproject.toml"):
        try:
            content = tomllib.loads((repository.blob(commit, name) or b"").decode("utf-8", "replace"))
        except tomllib.TOMLDecodeError:
            continue
        tool = content.get("tool", {}).get("pytest", {})
        for place in (content.get("pytest", {}), tool, tool.get("ini_options", {})):
            if patterns := place.get("python_files"):
                return tuple(patterns.split() if isinstance(patterns, str) else map(str, patterns))
    for name, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        parser = ConfigParser(interpolation=None)
        try:
            parser.read_string((repository.blob(commit, name) or b"").decode("utf-8", "replace"))
        except ConfigError:
            continue
        if patterns := parser.get(section, "python_files", fallback=""):
            return tuple(patterns.split())
    return ()


def _holds_tests(repository: GitRepository, change: Change, path: str) -> bool:
    """Return True if a test file holds tests that a command can name; data beside tests has none."""
    before, after = (repository.blob(commit, path) for commit in (change.parent, change.commit))
    if after is None or not path.endswith((".py", ".java")):
        return False
    old = None if before is None else before.decode("utf-8", "replace")
    return added_tests(path, old, after.decode("utf-8", "replace")) is not None


def _closed(
    repository: GitRepository,
    change: Change,
    number: int | None,
    news: list[str],
    full_name: str,
    web_url: str,
    export: Export,
) -> list[int]:
    """Issues that a change closes: by its messages, its news fragments, and the export."""
    text = change.message
    if change.is_merge:
        branch = repository.run("log", "--no-show-signature", "--format=%B", f"{change.parent}..{change.commit}")
        text += "\n" + branch.decode("utf-8", "replace")
    if number is not None:
        text += "\n" + export.pulls.get(number, "")
    links = closing_links(text, full_name, web_url)
    numbers = [link.number for link in links if link.repository.lower() == full_name.lower()]
    fragments = [int(match["number"]) for path in news if (match := _FRAGMENT.match(PurePosixPath(path).name))]
    return list(dict.fromkeys((*numbers, *(() if number is None else export.closes.get(number, ())), *fragments)))


def _statement(
    repository: GitRepository,
    change: Change,
    number: int | None,
    news: list[str],
    issues: list[Issue],
    export: Export,
) -> tuple[str, Stated]:
    if issues:
        return "\n\n".join(f"{issue.title}\n\n{issue.body}".strip() for issue in issues), "issue"
    added = difference(repository, change, news).splitlines()
    entry = "\n".join(line[1:] for line in added if line.startswith("+") and not line.startswith("+++")).strip()
    if entry:
        return entry, "changelog entry"
    if number is not None:
        return export.pulls.get(number, change.text), "pull request"
    return change.text, "commit"
