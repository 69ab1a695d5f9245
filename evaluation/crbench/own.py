"""The bug fixes in a repository's own history, in the form of SWE-bench's instances.

Every commit on the first-parent chain of HEAD since a date is one integrated change. It counts as a fix
if its message closes an issue with one of GitHub's keywords, if an issue that it closes carries a
label for bugs (asked of GitHub, unless offline), or if its subject says so. Whether the bug could have
been prevented is left to the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from bot.core.errors import NotFound
from bot.core.subjects import Issue
from bot.features.shared.links import closing_links
from bot.github.protocol import Forge
from evaluation.crbench.mapping import Instance, is_code
from evaluation.git.history import merge_number, squash_number
from evaluation.git.repository import GitRepository

#: Bytes of the largest change that is taken for one fix; SWE-bench's largest are near 100 KB.
MAX_FIX = 200_000

_FIX = re.compile(
    r"\b(fix(es|ed|ing)?|bug(s|fix)?|hotfix|regression|crash(es|ed)?|broken|segfault)\b", re.IGNORECASE
)
_NO_FIX = re.compile(
    r"^(docs?|tests?|ci|style|chore|build|tst|doc)\b|\b(typos?|flake8|lint(ing|er)?|changelog|docstrings?|spelling)\b",
    re.IGNORECASE,
)
_BUG_LABEL = re.compile(r"\b(bug|defect|regression|crash)\b", re.IGNORECASE)
_MERGE_LINE = re.compile(r"^merge[d ]", re.IGNORECASE)


@dataclass(frozen=True)
class Change:
    """One commit of the trunk: what it integrated, against its first parent."""

    commit: str
    parent: str
    is_merge: bool
    message: str
    at: datetime

    @property
    def text(self) -> str:
        """The commit's message without the line that GitHub's merge button adds."""
        first, _, rest = self.message.partition("\n")
        return rest.strip() if self.is_merge and _MERGE_LINE.match(first) and rest.strip() else self.message

    @property
    def title(self) -> str:
        """The pull request's title, also if GitHub's merge button put it below the first line."""
        return self.text.partition("\n")[0]

    def number(self, full_name: str) -> int | None:
        """The pull request that it integrated, as far as its first line says."""
        first = self.message.partition("\n")[0]
        return merge_number(first, full_name) if self.is_merge else squash_number(first)


def own_fixes(
    repository: GitRepository, full_name: str, since: datetime, web_url: str, forge: Forge | None = None
) -> Iterator[Instance]:
    """The fixes since a moment, newest first; ``forge`` gives the issues' texts and labels.

    Raises GitError if the history cannot be read, TransientError or ForgeError if GitHub does not
    answer.
    """

    @cache
    def issue_of(number: int) -> Issue | None:
        try:
            return None if forge is None else forge.issue(number)
        except NotFound:
            return None

    for change in trunk(repository, since):
        links = closing_links(change.message, full_name, web_url)
        numbers = [link.number for link in links if link.repository.lower() == full_name.lower()]
        closed = [issue for number in numbers if (issue := issue_of(number)) is not None]
        if not is_fix(change, numbers, closed):
            continue
        patch = code_change(repository, change)
        if not patch or len(patch) > MAX_FIX:
            continue
        text = "\n\n".join(f"{issue.title}\n\n{issue.body}" for issue in closed)
        yield instance_of(change, full_name, patch, text if closed else change.message)


def instance_of(change: Change, full_name: str, patch: str, statement: str) -> Instance:
    """A fix in the form of SWE-bench's instances."""
    return Instance(
        instance_id=f"{full_name.replace('/', '__')}-{change.number(full_name) or change.commit[:10]}",
        repo=full_name,
        base_commit=change.parent,
        patch=patch,
        problem_statement=statement,
    )


def trunk(repository: GitRepository, since: datetime) -> Iterator[Change]:
    """The first-parent chain of HEAD as far as it was committed since a moment, newest first."""
    listing = repository.run(
        "log", "--no-show-signature", "--first-parent", "-z", "--format=%H%x00%P%x00%ct%x00%B", repository.head()
    )
    fields = listing.decode("utf-8", "replace").split("\0")
    for at in range(0, len(fields) - 3, 4):
        commit, parents, time, message = fields[at : at + 4]
        above = parents.split()
        if above and int(time) >= since.timestamp():
            moment = datetime.fromtimestamp(int(time), UTC)
            yield Change(commit, above[0], len(above) > 1, message.strip("\n"), moment)


def is_fix(change: Change, closes: list[int], issues: list[Issue]) -> bool:
    """Return True if a change mends a bug, judging by its words; ``issues`` are those that it closes,
    if they are known."""
    if issues:
        labels = [label for issue in issues for label in issue.labels]
        if any(_BUG_LABEL.search(label) for label in labels):
            return True
        if labels:
            return False
    if _NO_FIX.search(change.title):
        return False
    return bool(closes) or _FIX.search(change.title) is not None


def code_change(repository: GitRepository, change: Change) -> str:
    """The change without its tests and documentation: a unified diff, empty if nothing is left."""
    code = [path for path in paths(repository, change) if is_code(path)]
    return difference(repository, change, code)


def paths(repository: GitRepository, change: Change) -> list[str]:
    raw = repository.run("diff", "--name-only", "-z", "--no-renames", change.parent, change.commit, "--")
    return [path for path in raw.decode("utf-8", "surrogateescape").split("\0") if path]


def difference(repository: GitRepository, change: Change, of: Sequence[str]) -> str:
    """Return a change's unified diff of some files; empty without files."""
    return repository.diff(change.parent, change.commit, *of) if of else ""
