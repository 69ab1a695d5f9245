"""Actions of people on the simulated GitHub: issues, conversations, pull requests, reviews and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from bot.simgithub.operations import Operations
from bot.simgithub.state import (
    CheckRunState,
    CommentState,
    IssueState,
    Pull,
    RepositoryState,
    ReviewCommentState,
    User,
)

Text = Mapping[str, str | bytes | None]
P = ParamSpec("P")
R = TypeVar("R")


def _action(act: Callable[Concatenate[People, P], R]) -> Callable[Concatenate[People, P], R]:
    """Hold the world's lock during an action, then wait until every webhook was answered or given up."""

    @wraps(act)
    def perform(people: People, /, *arguments: P.args, **options: P.kwargs) -> R:
        with people.world.lock:
            result = act(people, *arguments, **options)
        people.settle()
        return result

    return perform


class People:
    """Repositories are named ``owner/name`` and people by login; without ``by`` the author acts.

    Each action is announced to the apps and returns once they have answered.
    """

    def __init__(self, operations: Operations) -> None:
        self.world = operations.world
        self._operations = operations

    def settle(self) -> None:
        """Wait until every webhook was answered or given up."""
        self.world.outbox.join()

    def find(self, repository: str, number: int) -> IssueState:
        """Return the record of an issue or pull request."""
        return self.world.repositories[repository].issues[number]

    def _find_pull(self, repository: str, number: int) -> tuple[IssueState, Pull]:
        issue = self.find(repository, number)
        assert issue.pull is not None
        return issue, issue.pull

    def _comment(self, repository: str, comment_id: int) -> CommentState:
        comment = self.world.repositories[repository].comment(comment_id)
        return comment or self._review_comment(repository, comment_id)

    def _review_comment(self, repository: str, comment_id: int) -> ReviewCommentState:
        comment = self.world.repositories[repository].review_comment(comment_id)
        assert comment is not None
        return comment

    def _actor(self, by: str, issue: IssueState) -> User:
        return self.world.user(by) if by else issue.author

    # Issues and conversations

    @_action
    def open_issue(
        self, repository: str, title: str, body: str = "", author: str = "alice", labels: Sequence[str] = ()
    ) -> int:
        place = self.world.repositories[repository]
        return self._operations.open_issue(place, title, body, self.world.user(author), labels).number

    @_action
    def edit(self, /, repository: str, number: int, *, by: str = "", **new: str) -> None:
        """Change ``title`` or ``body``; an edit that changes nothing is still an event without changes."""
        issue = self.find(repository, number)
        changes = {name: {"from": getattr(issue, name)} for name in new if getattr(issue, name) != new[name]}
        # The history holds all versions but the present one.
        issue.titles += [issue.title] if "title" in changes else []
        issue.bodies += [issue.body] if "body" in changes else []
        for name, value in new.items():
            setattr(issue, name, value)
        self._operations.announce(issue, "edited", self._actor(by, issue), changes=changes)

    @_action
    def close(self, repository: str, number: int, *, by: str = "", reason: str | None = "completed") -> None:
        issue = self.find(repository, number)
        self._operations.set_state(issue, "closed", self._actor(by, issue), None if issue.pull else reason)

    @_action
    def reopen(self, repository: str, number: int, *, by: str = "") -> None:
        issue = self.find(repository, number)
        self._operations.set_state(issue, "open", self._actor(by, issue), "reopened")

    @_action
    def lock(self, repository: str, number: int, *, by: str) -> None:
        issue = self.find(repository, number)
        issue.locked = True
        self._operations.announce(issue, "locked", self.world.user(by))

    @_action
    def delete(self, repository: str, number: int, *, by: str) -> None:
        issue = self.find(repository, number)
        self._operations.remove(issue)
        self._operations.announce(issue, "deleted", self.world.user(by))

    @_action
    def transfer(self, repository: str, number: int, to: str, *, by: str) -> int:
        """Transfer an issue to another repository and return its number there."""
        issue = self.find(repository, number)
        return self._operations.transfer(issue, self.world.repositories[to], self.world.user(by)).number

    @_action
    def unlabel(self, repository: str, number: int, name: str, *, by: str) -> None:
        self._operations.remove_label(self.find(repository, number), name, self.world.user(by))

    @_action
    def label(self, repository: str, number: int, name: str, *, by: str) -> None:
        self._operations.add_label(self.find(repository, number), name, self.world.user(by))

    @_action
    def assign(self, repository: str, number: int, *logins: str, by: str) -> None:
        """Replace the assignees."""
        issue = self.find(repository, number)
        issue.assignees = [self.world.user(login) for login in logins]
        self._operations.announce(issue, "assigned" if logins else "unassigned", self.world.user(by))

    @_action
    def milestone(self, repository: str, number: int, title: str, *, by: str) -> None:
        """Plan an issue for a milestone; for none if the title is empty."""
        issue = self.find(repository, number)
        issue.milestone = title
        self._operations.announce(issue, "milestoned" if title else "demilestoned", self.world.user(by))

    @_action
    def comment(self, repository: str, number: int, body: str, author: str = "alice") -> int:
        issue = self.find(repository, number)
        return self._operations.add_comment(issue, body, self.world.user(author)).id

    @_action
    def edit_comment(self, repository: str, comment_id: int, body: str, *, by: str) -> None:
        self._operations.edit_comment(self._comment(repository, comment_id), body, self.world.user(by))

    @_action
    def delete_comment(self, repository: str, comment_id: int, *, by: str) -> None:
        comment = self._comment(repository, comment_id)
        comment.issue.comments.remove(comment)
        self._operations.announce_comment(comment, "deleted", self.world.user(by))

    @_action
    def react(self, repository: str, comment_id: int, content: str, *, by: str) -> None:
        """React to a comment of either type; GitHub announces no reactions."""
        self._operations.react(self._comment(repository, comment_id), self.world.user(by), content)

    # Pull requests

    @_action
    def open_pull(
        self,
        repository: str,
        title: str,
        body: str = "",
        author: str = "alice",
        *,
        files: Text,
        branch: str = "",
        base: str = "main",
        draft: bool = False,
        fork: bool = False,
        closes: Sequence[int] = (),
        closes_elsewhere: Sequence[tuple[str, int]] = (),
    ) -> int:
        """Change ``files`` on a branch (of the author's fork), open a pull request, and return its number."""
        place, user = self.world.repositories[repository], self.world.user(author)
        head = self._fork(place, user) if fork else place
        branch = branch or f"patch-{len(place.issues) + 1}"
        head.branches[branch] = place.branches[base]
        sha = self._operations.push(head, branch, as_bytes(files), user)
        pull = Pull(branch, head.full_name, sha, base, place.branches[base], draft)
        pull.closes = [*((repository, number) for number in closes), *closes_elsewhere]
        return self._operations.open_issue(place, title, body, user, pull=pull).number

    def _fork(self, upstream: RepositoryState, user: User) -> RepositoryState:
        name = f"{user.login}/{upstream.name}"
        if name not in self.world.repositories:
            fork = RepositoryState(self.world.next_id(), user, upstream.name, upstream.private)
            fork.branches = dict(upstream.branches)
            self.world.repositories[name] = fork
        return self.world.repositories[name]

    @_action
    def push(self, repository: str, number: int, files: Text, *, by: str = "") -> str:
        """Push one more commit to a pull request's head and return its SHA."""
        issue, pull = self._find_pull(repository, number)
        assert pull.head_repository is not None
        head = self.world.repositories[pull.head_repository]
        return self._operations.push(head, pull.head_ref, as_bytes(files), self._actor(by, issue))

    @_action
    def commit(self, repository: str, files: Text, *, branch: str = "main", by: str = "") -> str:
        """Commit directly to a branch and return the SHA."""
        place = self.world.repositories[repository]
        user = self.world.user(by) if by else place.owner
        return self._operations.push(place, branch, as_bytes(files), user)

    def tag(self, repository: str, name: str) -> None:
        """Tag the head of the default branch."""
        with self.world.lock:
            place = self.world.repositories[repository]
            place.tags[name] = place.branches[place.default_branch]

    @_action
    def make_draft(self, repository: str, number: int, *, by: str = "") -> None:
        issue = self.find(repository, number)
        self._operations.set_draft(issue, True, self._actor(by, issue))

    @_action
    def ready(self, repository: str, number: int, *, by: str = "") -> None:
        issue = self.find(repository, number)
        self._operations.set_draft(issue, False, self._actor(by, issue))

    @_action
    def merge(self, repository: str, number: int, *, by: str) -> None:
        """Merge a pull request; into the default branch this closes the issues that it is linked to."""
        issue, pull = self._find_pull(repository, number)
        place, user = issue.repository, self.world.user(by)
        base = place.branches[pull.base_ref]
        pull.merged, pull.merged_at = True, self.world.now()
        place.contributors.add(issue.author.login)
        message = f"Merge pull request #{number}\n\n{issue.title}\n\n{issue.body}"
        files = self.world.commits[pull.head_sha].files
        pull.merge_sha = self.world.commit(files, message, (base, pull.head_sha)).sha
        place.branches[pull.base_ref] = pull.merge_sha
        self._operations.set_state(issue, "closed", user, None)
        if pull.base_ref != place.default_branch:
            return
        for name, linked_number in pull.closes:
            linked = place.issues.get(linked_number)
            if name == place.full_name and linked is not None and linked.pull is None:
                linked.closed_by.append(number)
                if linked.state == "open":
                    self._operations.set_state(linked, "closed", user, "completed")

    def revert(self, repository: str, number: int, *, by: str) -> int:
        """Press "Revert" on a merged pull request, merge the new one, and return its number."""
        with self.world.lock:
            issue, pull = self._find_pull(repository, number)
            before = self.world.commits[self.world.commits[pull.merge_sha].parents[0]].files
            now = self.world.commits[issue.repository.branches[pull.base_ref]].files
        changed_paths = {path for path in {*before, *now} if before.get(path) != now.get(path)}
        revert = self.open_pull(
            repository,
            f'Revert "{issue.title}"',
            f"Reverts {repository}#{number}",
            by,
            files={path: before.get(path) for path in changed_paths},
            branch=f"revert-{number}",
        )
        self.merge(repository, revert, by=by)
        return revert

    # Repositories

    @_action
    def rename(self, repository: str, to: str) -> None:
        """Rename a repository, or transfer it to another owner."""
        owner, _, name = to.partition("/")
        place = self.world.repositories[repository]
        self._operations.rename(place, self.world.user(owner), name, place.owner)

    # Reviews and checks

    @_action
    def reply(self, repository: str, comment_id: int, body: str, *, by: str) -> int:
        first = self._review_comment(repository, comment_id)
        return self._operations.reply(first, body, self.world.user(by)).id

    @_action
    def resolve(self, repository: str, comment_id: int, *, by: str) -> None:
        """Resolve the thread that a review comment began."""
        first, render = self._review_comment(repository, comment_id), self._operations.render
        issue, first.resolved = first.issue, True
        comments = self.review_comments(repository, issue.number)
        thread = [comment for comment in comments if first.id in (comment.id, comment.in_reply_to)]
        payload = {
            "pull_request": render.pull(issue),
            "thread": {"comments": [render.review_comment(comment) for comment in thread]},
        }
        event = "pull_request_review_thread"
        self._operations.hooks.emit(issue.repository, event, "resolved", self.world.user(by), payload)

    @_action
    def rerequest(self, repository: str, check_id: int, *, by: str) -> None:
        place = self.world.repositories[repository]
        check = next(run for run in place.checks if run.id == check_id)
        self._operations.rerequest_check(place, check, self.world.user(by))

    def checks(self, repository: str, name: str = "") -> list[CheckRunState]:
        with self.world.lock:
            return [check for check in self.world.repositories[repository].checks if name in ("", check.name)]

    def review_comments(self, repository: str, number: int) -> list[ReviewCommentState]:
        with self.world.lock:
            pull = self.find(repository, number).pull
            return list(pull.comments) if pull else []


def as_bytes(files: Text) -> dict[str, bytes | None]:
    """Return file contents as they are stored; None removes a file."""
    return {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
