"""The pull request that brought a commit in, and what its reviewer saw: title, description and diff."""

from __future__ import annotations

import re
from typing import Protocol

from pydantic import Field

from bot.core.errors import BouncerError
from bot.core.frozen import Lenient
from bot.github.protocol import Forge
from evaluation.git.history import History, PullCommits, Pulls, bare_title
from evaluation.git.repository import GitRepository

#: Bytes of the largest diff that becomes a task; a task is one line of a file.
MAX_DIFF = 4 << 20


class ContextError(BouncerError):
    """The pull request's own text or diff cannot be had."""


class PullContext(Lenient):
    """A pull request before anybody had reviewed it."""

    number: int
    title: str
    body: str = Field("", description="its description, Markdown")
    base_sha: str = Field(description="the merge base: the diff is against this commit")
    head_sha: str = Field(description="its last commit; the squashed one if the branch is gone")
    diff: str
    comments: int | None = Field(None, description="comments it got from people; None if that is not known")


class PullSource(Protocol):
    """Finds merged pull requests. Both methods raise TransientError if a later try may succeed."""

    def pulls_of(self, commit: str, base: str) -> tuple[int, ...]:
        """Numbers of the pull requests that brought ``commit`` into the history of ``base``."""
        ...

    def context_of(self, number: int, commit: str, base: str) -> PullContext:
        """The pull request of that number, which brought in ``commit``. Raises ContextError if it is unknown."""
        ...


class ClonedPulls:
    """Pull requests as merge and squash commits tell, without a network; see ``history`` for the rules.

    GitHub copies the title, often the description, into these commits.
    """

    def __init__(
        self, repository: GitRepository, history: History, pulls: Pulls, inferred: PullCommits | None
    ) -> None:
        self._repository = repository
        self._history = history
        self._pulls = pulls
        self._inferred = inferred

    def pulls_of(self, commit: str, base: str) -> tuple[int, ...]:
        integration = self._history.integration_of(commit, base)
        if integration is not None:
            return (integration.number,)
        inferred = None if self._inferred is None else self._inferred.number_of(commit)
        return () if inferred is None else (inferred,)

    def context_of(self, number: int, commit: str, base: str) -> PullContext:
        integration = self._history.integration_of(commit, base)
        if integration is None and number not in self._pulls.heads:
            raise ContextError(f"pull request #{number} did not bring {commit[:10]} in")
        carrier = commit if integration is None else integration.commit
        headers, _, message = self._repository.commit(carrier).decode("utf-8", "replace").partition("\n\n")
        parents = re.findall(r"^parent (\w+)$", headers, re.MULTILINE)
        subject, _, rest = message.strip("\n").partition("\n")
        title, body = bare_title(subject), rest.strip()
        if len(parents) < 2:
            head = carrier if integration is not None else self._pulls.heads[number]
        else:
            head = parents[1]
            # ``Merge pull request #N from x`` is followed by the title; a subject of one's own is the title.
            if subject.lower().startswith(("merge ", "auto merge ")):
                first, _, more = body.partition("\n")
                title, body = (first, more.strip()) if first else (subject, "")
        start = self._repository.run("merge-base", parents[0], head).decode("ascii").strip() if parents else ""
        if not start:
            raise ContextError(f"pull request #{number} has no common history with its base")
        return PullContext(
            number=number,
            title=title,
            body=body,
            base_sha=start,
            head_sha=head,
            diff=read_diff(self._repository, start, head, number),
        )


class ForgePulls:
    """Pull requests as GitHub shows them; only how many comments one got is taken from what came later."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge
        self._numbers: dict[str, tuple[int, ...]] = {}

    def pulls_of(self, commit: str, base: str) -> tuple[int, ...]:
        if commit not in self._numbers:
            pulls = self._forge.pulls_for_commit(commit)
            self._numbers[commit] = tuple(sorted(pull.number for pull in pulls if pull.merged))
        return self._numbers[commit]

    def context_of(self, number: int, commit: str, base: str) -> PullContext:
        pull = self._forge.pull_request(number)
        diff = self._forge.diff(number)
        if diff.omitted:
            raise ContextError(f"pull request #{number}: GitHub does not show all of its diff")
        comment_count = len(self._forge.comments(number)) + len(self._forge.review_comments(number))
        return PullContext(
            number=number,
            title=pull.title,
            body=pull.body,
            base_sha=pull.base_sha,
            head_sha=pull.head_sha,
            diff=_bounded(diff.text, number),
            comments=comment_count,
        )


def read_diff(repository: GitRepository, base: str, head: str, number: int) -> str:
    """The unified diff between two commits. Raises ContextError if it is too large."""
    return _bounded(repository.diff(base, head), number)


def _bounded(diff: str, number: int) -> str:
    if len(diff) > MAX_DIFF:
        raise ContextError(f"pull request #{number} is too large: its diff has {len(diff)} characters")
    return diff
