"""An issue or a patch from a file, as the event and the snapshot that a live repository would give.

The command line and the evaluation both hand these to ``router.decide``, so that what they show is what the
live handlers do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bot.core.events import IssueOpened, PullRequestOpened
from bot.core.model import Actor, Issue, PullRequest, Repository
from bot.errors import NotRecorded
from bot.forge.protocol import IssueLink, PullDiff, SourceTree
from bot.forge.replay import ReplayForge, Snapshot

AUTHOR = Actor(id=2, login="author")
BOUNCER = Actor(id=1, login="bouncer[bot]", is_bot=True)
#: The commit that a patch from a file is put on, where a checkout of it is at hand.
BASE_SHA = "0" * 40
REPOSITORY = Repository(id=1, owner="offline", name="files", html_url="https://offline.invalid/offline/files")


class OpenedIssue(NamedTuple):
    """An issue that was just opened, and what can be read about it."""

    event: IssueOpened
    snapshot: Snapshot


class OpenedPull(NamedTuple):
    """A pull request that was just opened, and what can be read about it."""

    event: PullRequestOpened
    snapshot: Snapshot


def issue_opened(title: str, body: str, repository: Repository = REPOSITORY, number: int = 1) -> OpenedIssue:
    """The opening of an issue on which nobody has commented yet."""
    return just_opened(Issue(number=number, title=title, body=body, author=AUTHOR), repository)


def just_opened(issue: Issue, repository: Repository) -> OpenedIssue:
    """The same for an issue of which more is known."""
    snapshot = Snapshot(
        repository=repository.full_name,
        about=repository,
        identity=BOUNCER,
        issues={issue.number: issue},
        comments={issue.number: ()},
    )
    return OpenedIssue(IssueOpened(sender=issue.author, repository=repository, issue=issue), snapshot)


def pull_request_opened(
    patch: str,
    *,
    title: str = "",
    body: str = "",
    issues: Sequence[Issue] = (),
    repository: Repository = REPOSITORY,
    number: int = 1,
    base_sha: str = BASE_SHA,
) -> OpenedPull:
    """The opening of a pull request with this patch on ``base_sha``, linked to ``issues``."""
    pull = PullRequest(
        number=number,
        title=title,
        body=body,
        author=AUTHOR,
        head_sha=hashlib.sha1(patch.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest(),
        head_ref="patch",
        head_repository=repository.full_name,
        base_sha=base_sha,
        base_ref=repository.default_branch,
        base_repository=repository.full_name,
    )
    return pull_just_opened(pull, PullDiff(text=patch), issues, repository)


def pull_just_opened(
    pull: PullRequest, diff: PullDiff, issues: Sequence[Issue], repository: Repository
) -> OpenedPull:
    """The same for a pull request of which more is known."""
    number = pull.number
    snapshot = Snapshot(
        repository=repository.full_name,
        about=repository,
        identity=BOUNCER,
        issues={issue.number: issue for issue in issues},
        comments={number: ()},
        pull_requests={number: pull},
        diffs={number: diff},
        linked_issues={
            number: tuple(IssueLink(repository=repository.full_name, number=issue.number) for issue in issues)
        },
        review_comments={number: ()},
        reviews={number: ()},
        resolved_threads={number: ()},
    )
    return OpenedPull(PullRequestOpened(sender=pull.author, repository=repository, pull_request=pull), snapshot)


class CheckedOut(ReplayForge):
    """A snapshot, and the files of a local checkout, which stand for one commit."""

    def __init__(self, snapshot: Snapshot, folder: Path, commit: str) -> None:
        super().__init__(snapshot)
        self._folder, self._commit = folder, commit

    def sources(self, ref: str) -> SourceTree:
        if ref != self._commit:
            raise NotRecorded(f"{self._folder} does not hold {ref}")
        from bot.forge.github.archive import FolderTree

        return FolderTree(self._folder, working=True)


def split_title(text: str) -> tuple[str, str]:
    """Title (the first line, without Markdown's heading marks) and body of an issue's Markdown file."""
    first, _, rest = text.lstrip("\ufeff\r\n").partition("\n")
    return first.strip().lstrip("#").strip(), rest.strip("\r\n")
