"""Pull requests of commits that carry no number: rebased, cherry-picked or squashed by hand.

Such a commit keeps the author and the author's time of a commit that still stands in the pull request's own
ref. Where exactly one pull request holds a commit of that author and second, it is taken for the origin;
where several do (a branch that was opened twice, one branch built on another), nothing is inferred.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from evaluation.git.history import Pulls
from evaluation.git.repository import GitRepository

_AUTHOR = re.compile(rb"^author .*<(?P<email>[^<>\n]*)> (?P<time>-?\d+) [+-]\d+$", re.MULTILINE)

#: E-mail address and time of authorship, seconds since 1970.
Authorship = tuple[str, int]


class PullCommits:
    """Which pull requests hold a commit of an author and second, read from the clone's pull refs."""

    def __init__(self, repository: GitRepository, pulls: Pulls, bases: Iterable[str]) -> None:
        """Reads what the pull refs hold beyond the branches and the history of ``bases``, with one git
        process."""
        merged = {*bases, *repository.refs("refs/heads").values(), repository.head()}
        self._repository = repository
        self._holders = _holders(repository, pulls.heads, merged)

    def number_of(self, commit: str) -> int | None:
        """The one pull request that holds this commit's authorship; None where none or several do."""
        found = _AUTHOR.search(self._repository.commit(commit).partition(b"\n\n")[0])
        if found is None:
            return None
        holders = self._holders.get((found["email"].decode("utf-8", "replace"), int(found["time"])), frozenset())
        return next(iter(holders)) if len(holders) == 1 else None


def _holders(
    repository: GitRepository, heads: Mapping[int, str], merged: Iterable[str]
) -> dict[Authorship, frozenset[int]]:
    present = {number: sha for number, sha in heads.items() if repository.has_commit(sha)}
    if not present:
        return {}
    given = "".join(f"{sha}\n" for sha in present.values()) + "".join(f"^{sha}\n" for sha in merged)
    listing = repository.run(
        "log", "--no-show-signature", "--format=%H%x00%P%x00%ae%x00%at", "--stdin", stdin=given.encode("ascii")
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
    seen: set[str] = set()
    waiting = [head]
    while waiting:
        sha = waiting.pop()
        if sha in parents and sha not in seen:
            seen.add(sha)
            waiting += parents[sha]
    return seen
