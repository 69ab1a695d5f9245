"""A repository's commits and, for each, the pull request that brought it in: the innermost one.

Read once per repository with one git process, then answered from memory.

How a commit is assigned, seen from a base commit: its first-parent chain is the trunk. Every merge on it,
oldest first, brings in the commits that were not there before; they belong to the pull request that the
merge names. The branch brought in is read the same way, so a merge inside it that names a pull request
keeps its own commits, and a merge that names none passes on the number it was given. A squashed commit
belongs to the number that ends its subject where no pull request's branch contains it, or where GitHub
itself committed it; elsewhere such a number is most likely an issue. Whatever is left (rebased, pushed by
hand) has no number.

Pull refs (``refs/pull/N/head``), where the clone has them, only refute: a number in a squash subject that
no pull request has is an issue, and a merge inside a pull request's branch whose number belongs to another
head was a merge in a fork, with the fork's own numbering.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from evaluation.git.repository import GitRepository

#: First lines of merge commits: GitHub's ``Merge pull request #N``, merge robots' ``Auto merge of #N`` and
#: ``Merge #N``. ``owner/name#N`` counts only where that is the repository itself.
_MERGE = re.compile(
    r"^(?:Merge pull request|Merge PR|Pull request|Auto merge of|Merge) "
    r"(?P<repo>[\w.-]+/[\w.-]+)?#(?P<number>\d+)\b(?! #\d)",
    re.IGNORECASE,
)
#: The number that GitHub appends when it squashes. Elsewhere in the line a number is most likely an issue's.
_ENDING = re.compile(r"\((?:#|GH-)(?P<number>\d+)\)\s*$")
_WEB_COMMITTER = "noreply@github.com"
_FORMAT = "%H%x00%P%x00%ce%x00%B"


def merge_number(subject: str, full_name: str) -> int | None:
    """The pull request that a merge commit with this first line merged; None if it names none."""
    match = _MERGE.search(subject)
    if match is None:
        return squash_number(subject)
    if match["repo"] and match["repo"].lower() != full_name.lower():
        return None
    return int(match["number"])


def squash_number(subject: str) -> int | None:
    """The pull request that a commit with this first line was squashed from; None if it names none."""
    match = _ENDING.search(subject)
    return int(match["number"]) if match else None


def bare_title(subject: str) -> str:
    """A squash subject without the number that GitHub appended."""
    return _ENDING.sub("", subject).rstrip()


@dataclass(frozen=True)
class Pulls:
    """The clone's pull refs: number -> head commit; empty if it was cloned without them."""

    heads: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def read(cls, repository: GitRepository) -> Pulls:
        """Every ``refs/pull/N/head``, also under ``refs/remotes/*/`` where a fetch put it."""
        heads: dict[int, str] = {}
        for name, sha in repository.refs("refs/pull", "refs/remotes").items():
            number, _, kind = name.rpartition("/pull/")[2].partition("/")
            if "/pull/" in name and number.isdecimal() and kind in ("", "head"):
                heads[int(number)] = sha
        return cls(heads)

    def may_exist(self, number: int) -> bool:
        """False only where the clone has pull refs and none for this number."""
        return not self.heads or number in self.heads

    def may_have_merged(self, number: int, head: str) -> bool:
        """False only where the clone has pull refs and that pull request's head is another commit."""
        return not self.heads or self.heads.get(number) == head


class Commit(NamedTuple):
    """A commit's parents, and the pull request that its message names, if any."""

    parents: tuple[str, ...]
    number: int | None
    by_github: bool


def read_commits(repository: GitRepository, tips: Iterable[str], full_name: str) -> dict[str, Commit]:
    """All ancestors of some commits by SHA, with one ``git log``. Raises GitError if history is incomplete."""
    commits: dict[str, Commit] = {}
    stdin = "".join(f"{tip}\n" for tip in tips).encode("ascii")
    if not stdin:
        return commits  # git would begin at HEAD
    log = repository.run("log", "--no-show-signature", "-z", f"--format={_FORMAT}", "--stdin", stdin=stdin)
    fields = log.split(b"\0")
    for at in range(0, len(fields) - 3, 4):
        sha, above, committer, message = (text.decode("utf-8", "replace") for text in fields[at : at + 4])
        parents = tuple(above.split())
        subject = message.lstrip("\n").partition("\n")[0]
        number = merge_number(subject, full_name) if len(parents) > 1 else squash_number(subject)
        commits[sha.strip()] = Commit(parents, number or None, committer == _WEB_COMMITTER)
    return commits


class Integration(NamedTuple):
    """How a commit came in: the pull request's number and the merge or squash commit that carries it."""

    number: int
    commit: str


class History:
    """Answers which pull request brought a commit into the history of a base commit. Thread-safe."""

    def __init__(self, commits: Mapping[str, Commit], pulls: Pulls) -> None:
        self._commits = commits
        self._pulls = pulls
        self._assigned: list[tuple[frozenset[str], dict[str, str | None]]] = []
        self._mutex = Lock()

    def integration_of(self, commit: str, base: str) -> Integration | None:
        """None for a commit that no pull request brought in. ``base`` must be one of the commits."""
        with self._mutex:
            owner = self._owners(base).get(commit)
        number = None if owner is None else self._commits[owner].number
        return None if owner is None or number is None else Integration(number, owner)

    def _owners(self, base: str) -> dict[str, str | None]:
        """For each commit the one that carries its pull request's number, or None.

        Owners do not change as a trunk grows, so one assignment serves every base on it.
        """
        for trunk, owners in self._assigned:
            if base in trunk:
                return owners
        owners = {}
        waiting: list[tuple[str, str | None]] = [(base, None)]
        while waiting:
            start, inherited = waiting.pop()
            merges = self._claim(start, inherited, owners)
            # The oldest merge ends up on top, and its whole branch is done before the next one is looked at.
            waiting += [
                (branch, owners[here]) for here in merges for branch in reversed(self._commits[here].parents[1:])
            ]
        self._assigned.append((frozenset(self._chain(base)), owners))
        return owners

    def _chain(self, start: str) -> Iterator[str]:
        yield start
        while parents := self._commits[start].parents:
            start = parents[0]
            yield start

    def _claim(self, start: str, inherited: str | None, owners: dict[str, str | None]) -> list[str]:
        """Assign one first-parent chain as far as it is new; returns its merges, newest first."""
        merges = []
        for here in self._chain(start):
            if here in owners:
                break
            owners[here] = here if self._believed(here, inherited) else inherited
            if len(self._commits[here].parents) > 1:
                merges.append(here)
        return merges

    def _believed(self, here: str, inherited: str | None) -> bool:
        """Return True if a commit's message names the pull request that it is the merge or the squash of."""
        parents, number, by_github = self._commits[here]
        if number is None:
            return False
        if len(parents) > 1:
            return inherited is None or self._pulls.may_have_merged(number, parents[1])
        return self._pulls.may_exist(number) and (inherited is None or by_github)


_AUTHOR = re.compile(rb"^author .*<(?P<email>[^<>\n]*)> (?P<time>-?\d+) [+-]\d+$", re.MULTILINE)

#: E-mail address and time of authorship, seconds since 1970.
Authorship = tuple[str, int]


class PullCommits:
    """Which pull requests hold a commit of an author and second, read from the clone's pull refs."""

    def __init__(self, repository: GitRepository, pulls: Pulls, bases: Iterable[str]) -> None:
        """Read what the pull refs hold beyond the branches and the history of ``bases``, with one git process."""
        merged = {*bases, *repository.refs("refs/heads").values(), repository.head()}
        self._repository = repository
        self._holders = _holders(repository, pulls.heads, merged)

    def number_of(self, commit: str) -> int | None:
        """The one pull request that holds this commit's authorship; None if none or several do."""
        match = _AUTHOR.search(self._repository.commit(commit).partition(b"\n\n")[0])
        if match is None:
            return None
        holders = self._holders.get((match["email"].decode("utf-8", "replace"), int(match["time"])), frozenset())
        return next(iter(holders)) if len(holders) == 1 else None


def _holders(
    repository: GitRepository, heads: Mapping[int, str], merged: Iterable[str]
) -> dict[Authorship, frozenset[int]]:
    present = {number: sha for number, sha in heads.items() if repository.has_commit(sha)}
    if not present:
        return {}
    stdin = "".join(f"{sha}\n" for sha in present.values()) + "".join(f"^{sha}\n" for sha in merged)
    listing = repository.run(
        "log", "--no-show-signature", "--format=%H%x00%P%x00%ae%x00%at", "--stdin", stdin=stdin.encode("ascii")
    )
    parents: dict[str, list[str]] = {}
    authorship: dict[str, Authorship] = {}
    for line in listing.decode("utf-8", "replace").split("\n"):
        sha, _, rest = line.partition("\0")
        if rest:
            above, email, time = rest.split("\0")
            parents[sha], authorship[sha] = above.split(), (email, int(time))
    holders: dict[Authorship, set[int]] = {}
    for number, head in present.items():
        for sha in _reachable(head, parents):
            holders.setdefault(authorship[sha], set()).add(number)
    return {key: frozenset(numbers) for key, numbers in holders.items()}


def _reachable(head: str, parents: Mapping[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [head]
    while waiting:
        sha = waiting.pop()
        if sha in parents and sha not in reached:
            reached.add(sha)
            waiting += parents[sha]
    return reached
