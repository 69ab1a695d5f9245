"""The pull request that brought a bug in, as its reviewer saw it: title, description, diff, and nothing later."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from pydantic import Field

from bot.core.errors import BouncerError
from bot.core.frozen import Frozen
from bot.github.protocol import Forge
from evaluation.git.history import History, Pulls
from evaluation.git.pull_numbers import bare_title
from evaluation.git.repository import GitRepository

#: Bytes of the largest diff that becomes a task; a task is one line of a file.
MAX_DIFF = 4 << 20


class ContextError(BouncerError):
    """The pull request's own text or diff cannot be had."""


class PullContext(Frozen):
    """A pull request before anybody had reviewed it."""

    number: int
    title: str
    body: str = Field("", description="its description, Markdown")
    base_sha: str = Field(description="the merge base: the diff is against this commit")
    head_sha: str = Field(description="its last commit; the squashed one if the branch is gone")
    merge_sha: str = Field("", description="the commit that brought it in: what comes after it did not exist yet")
    merged_at: datetime | None = None
    diff: str
    comments: int | None = Field(None, description="comments it got from people; None if that is not known")


class ContextFinder(Protocol):
    """Finds a pull request's context; ``commit`` is one that it brought into the history of ``base``."""

    def context_of(self, number: int, commit: str, base: str) -> PullContext:
        """Raises ContextError if it cannot be had, TransientError if a later try may succeed."""
        ...


class ClonedContext:
    """Contexts from merge and squash commits: GitHub copies the title, often the description, into them."""

    def __init__(self, repository: GitRepository, history: History, pulls: Pulls) -> None:
        self._repository = repository
        self._history = history
        self._pulls = pulls

    def context_of(self, number: int, commit: str, base: str) -> PullContext:
        integration = self._history.integration_of(commit, base)
        carrier = commit if integration is None else integration.commit
        headers, message = _read_commit(self._repository.commit(carrier))
        parents = headers["parent"]
        if len(parents) > 1:
            head = parents[1]
            start = self._merge_base(parents[0], head)
            title, body = _merged_text(message)
        else:
            head = carrier if integration is not None else self._pulls.heads[number]
            start = self._merge_base(parents[0], head) if parents else ""
            subject, _, rest = message.partition("\n")
            title, body = bare_title(subject), rest.strip()
        if not start:
            raise ContextError(f"pull request #{number} has no common history with its base")
        return PullContext(
            number=number,
            title=title,
            body=body,
            base_sha=start,
            head_sha=head,
            merge_sha=carrier,
            merged_at=datetime.fromtimestamp(int(headers["committer"][0].split()[-2]), UTC),
            diff=read_diff(self._repository, start, head, number),
        )

    def _merge_base(self, first: str, second: str) -> str:
        return self._repository.run("merge-base", first, second).decode("ascii").strip()


class ForgeContext:
    """Contexts as GitHub shows them; only how many comments it got is taken from what came later."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge

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
    """The unified diff between two commits, as GitHub shows it. Raises ContextError if it is too large."""
    raw = repository.run("diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M", base, head, "--")
    return _bounded(raw.decode("utf-8", "replace"), number)


def _bounded(diff: str, number: int) -> str:
    if len(diff) > MAX_DIFF:
        raise ContextError(f"pull request #{number} is too large: its diff has {len(diff)} characters")
    return diff


def _read_commit(raw: bytes) -> tuple[dict[str, list[str]], str]:
    head, _, message = raw.decode("utf-8", "replace").partition("\n\n")
    headers: dict[str, list[str]] = {"parent": []}
    for line in head.split("\n"):
        key, _, value = line.partition(" ")
        headers.setdefault(key, []).append(value)
    return headers, message.strip("\n")


def _merged_text(message: str) -> tuple[str, str]:
    """``Merge pull request #N from x`` is followed by the title; a subject of one's own is the title."""
    subject, _, rest = message.partition("\n")
    if not subject.lower().startswith(("merge ", "auto merge ", "merged pr ")):
        return bare_title(subject), rest.strip()
    title, _, body = rest.strip().partition("\n")
    return (title, body.strip()) if title else (subject, "")
