"""A review task as the event that a live repository would send: the pull request is opened."""

from __future__ import annotations

from bot.core.events import PullRequestOpened
from bot.core.model import PullRequest, Repository
from bot.errors import NotRecorded
from bot.forge.offline import AUTHOR, BOUNCER
from bot.forge.protocol import PullDiff
from bot.forge.replay import ReplayForge, Snapshot
from evaluation.crbench.context import PullContext
from evaluation.git.clones import ClonedForge
from evaluation.git.repository import GitError, GitRepository
from evaluation.run.staging import Staged


class PastForge(ClonedForge):
    """A snapshot, and the files of the commits that existed when the pull request was opened."""

    def __init__(self, snapshot: Snapshot, repository: GitRepository, pull: PullContext) -> None:
        super().__init__(snapshot, repository, (pull.base_sha, pull.head_sha))
        self._pull = pull

    def _seen(self, ref: str) -> str:
        commit = self._snapshot.heads.get(ref, ref)
        if commit not in self._visible:
            if not self._is_before(commit):
                raise NotRecorded(f"{ref} came after pull request #{self._pull.number}, or beside it")
            self._visible.add(commit)
        return commit

    def _is_before(self, commit: str) -> bool:
        try:
            self._clone.run("merge-base", "--is-ancestor", f"{commit}^{{commit}}", self._pull.head_sha)
        except GitError:
            return False
        return True


def stage(task_id: str, full_name: str, pull: PullContext, clone: GitRepository | None = None) -> Staged:
    """The pull request is opened on the repository as it was; nobody has said anything yet.

    ``clone`` lets a handler read files. Raises nothing; what a handler asks for beyond this raises
    NotRecorded.
    """
    owner, _, name = full_name.partition("/")
    repository = Repository(id=1, owner=owner, name=name or owner)
    opened = PullRequest(
        number=pull.number,
        title=pull.title,
        body=pull.body,
        author=AUTHOR,
        head_sha=pull.head_sha,
        head_ref="change",
        head_repository=full_name,
        base_sha=pull.base_sha,
        base_ref=repository.default_branch,
        base_repository=full_name,
    )
    snapshot = Snapshot(
        repository=full_name,
        about=repository,
        identity=BOUNCER,
        comments={pull.number: ()},
        pull_requests={pull.number: opened},
        diffs={pull.number: PullDiff(text=pull.diff)},
        linked_issues={pull.number: ()},
        review_comments={pull.number: ()},
        reviews={pull.number: ()},
        resolved_threads={pull.number: ()},
        heads={opened.base_ref: pull.base_sha, opened.head_ref: pull.head_sha},
    )
    event = PullRequestOpened(sender=AUTHOR, repository=repository, pull_request=opened)
    if clone is None:
        return Staged(task_id, event, snapshot, ReplayForge)
    return Staged(task_id, event, snapshot, lambda recorded: PastForge(recorded, clone, pull))
