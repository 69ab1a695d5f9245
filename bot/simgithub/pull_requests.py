"""Actions of people on pull requests, reviews and checks."""

from __future__ import annotations

from collections.abc import Sequence

from bot.simgithub.base import Base, Text, as_bytes
from bot.simgithub.state import CheckRunState, IssueState, Pull, RepositoryState, ReviewCommentState, User


class PullRequests(Base):
    """Each act is announced to the apps and returns once they have answered."""

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
    ) -> int:
        """Change ``files`` on a branch (of a fork of the author's) and open a pull request. Returns its number."""
        with self.world.lock:
            where, user = self.world.repositories[repository], self.world.user(author)
            home = self._fork(where, user) if fork else where
            branch = branch or f"patch-{len(where.issues) + 1}"
            home.branches[branch] = where.branches[base]
            sha = self._operations.push(home, branch, as_bytes(files), user)
            pull = Pull(branch, home.full_name, sha, base, where.branches[base], draft)
            pull.closes = [(repository, number) for number in closes]
            number = self._operations.open_pull(where, title, body, user, pull).number
        self.settle()
        return number

    def _fork(self, upstream: RepositoryState, user: User) -> RepositoryState:
        name = f"{user.login}/{upstream.name}"
        if name not in self.world.repositories:
            fork = RepositoryState(self.world.next_id(), user, upstream.name, upstream.private)
            fork.branches = dict(upstream.branches)
            self.world.repositories[name] = fork
        return self.world.repositories[name]

    def push(self, repository: str, number: int, files: Text, *, by: str = "") -> str:
        """Push one more commit to a pull request's head. Returns its SHA."""
        with self.world.lock:
            _, issue = self.find(repository, number)
            assert issue.pull is not None
            assert issue.pull.head_repository is not None
            home = self.world.repositories[issue.pull.head_repository]
            user = self.world.user(by) if by else issue.author
            sha = self._operations.push(home, issue.pull.head_ref, as_bytes(files), user)
        self.settle()
        return sha

    def commit(self, repository: str, files: Text, *, branch: str = "main", by: str = "") -> str:
        """Commit directly to a branch. Returns the SHA."""
        with self.world.lock:
            where = self.world.repositories[repository]
            user = self.world.user(by) if by else where.owner
            sha = self._operations.push(where, branch, as_bytes(files), user)
        self.settle()
        return sha

    def ready(self, repository: str, number: int, *, by: str = "") -> None:
        """Mark a draft as ready for review."""
        with self.world.lock:
            where, issue = self.find(repository, number)
            self._operations.set_draft(where, issue, False, self.world.user(by) if by else issue.author)
        self.settle()

    def merge(self, repository: str, number: int, *, by: str) -> None:
        """Merge a pull request: its files become the base branch's."""
        with self.world.lock:
            where, issue = self.find(repository, number)
            assert issue.pull is not None
            pull, user = issue.pull, self.world.user(by)
            pull.merged, pull.merged_at = True, self.world.now()
            tip = where.branches[pull.base_ref]
            files = self.world.commits[pull.head_sha].files
            message = f"Merge pull request #{number}\n\n{issue.title}\n\n{issue.body}"
            pull.merge_sha = self.world.commit(files, message, (tip, pull.head_sha)).sha
            where.branches[pull.base_ref] = pull.merge_sha
            self._operations.set_state(where, issue, "closed", user, None)
            self._close_linked(where, issue, user)
        self.settle()

    def _close_linked(self, where: RepositoryState, merged: IssueState, user: User) -> None:
        """A merge into the default branch closes the issues that it is linked to."""
        assert merged.pull is not None
        if merged.pull.base_ref != where.default_branch:
            return
        for name, number in merged.pull.closes:
            linked = where.issues.get(number)
            if name == where.full_name and linked is not None and linked.pull is None:
                linked.closed_by.append(merged.number)
                if linked.state == "open":
                    self._operations.set_state(where, linked, "closed", user, "completed")

    def revert(self, repository: str, number: int, *, by: str) -> int:
        """Press "Revert" on a merged pull request, and merge the new one. Returns its number."""
        with self.world.lock:
            where, issue = self.find(repository, number)
            assert issue.pull is not None
            before = self.world.commits[self.world.commits[issue.pull.merge_sha].parents[0]].files
            now = self.world.commits[where.branches[issue.pull.base_ref]].files
            files: Text = {path: before.get(path) for path in {*before, *now} if before.get(path) != now.get(path)}
            title = issue.title
        again = self.open_pull(
            repository,
            f'Revert "{title}"',
            f"Reverts {repository}#{number}",
            by,
            files=files,
            branch=f"revert-{number}",
        )
        self.merge(repository, again, by=by)
        return again

    def reply(self, repository: str, comment_id: int, body: str, *, by: str) -> int:
        """Answer in the thread of a review comment. Returns the answer's id."""
        with self.world.lock:
            where = self.world.repositories[repository]
            issue, first = self._review_comment(where, comment_id)
            comment = ReviewCommentState(
                id=self.world.next_id(),
                body=body,
                author=self.world.user(by),
                created_at=self.world.now(),
                path=first.path,
                line=first.line,
                side=first.side,
                commit_id=first.commit_id,
                review=first.review,
                in_reply_to=first.in_reply_to or first.id,
            )
            self._operations.add_review_comment(where, issue, comment)
        self.settle()
        return comment.id

    def resolve(self, repository: str, comment_id: int, *, by: str) -> None:
        """Resolve the thread that a review comment began."""
        with self.world.lock:
            where = self.world.repositories[repository]
            self._operations.resolve_thread(where, *self._review_comment(where, comment_id), self.world.user(by))
        self.settle()

    def react(self, repository: str, comment_id: int, content: str, *, by: str) -> None:
        """Put a reaction on a comment of either kind; GitHub announces none."""
        with self.world.lock:
            where = self.world.repositories[repository]
            record = where.comment(comment_id) or where.review_comment(comment_id)
            if record is None:
                raise LookupError(f"no comment {comment_id}")
            self._operations.react(record[1], self.world.user(by), content)

    def rerequest(self, repository: str, check_id: int, *, by: str) -> None:
        """Press "Re-run" on a check."""
        with self.world.lock:
            where = self.world.repositories[repository]
            check = next(run for run in where.checks if run.id == check_id)
            self._operations.rerequest_check(where, check, self.world.user(by))
        self.settle()

    def checks(self, repository: str, name: str = "") -> list[CheckRunState]:
        """Check runs, oldest first."""
        with self.world.lock:
            return [check for check in self.world.repositories[repository].checks if name in ("", check.name)]

    def review_comments(self, repository: str, number: int) -> list[ReviewCommentState]:
        """Inline comments, oldest first."""
        with self.world.lock:
            pull = self.find(repository, number)[1].pull
            return list(pull.comments) if pull else []

    def _review_comment(self, where: RepositoryState, comment_id: int) -> tuple[IssueState, ReviewCommentState]:
        record = where.review_comment(comment_id)
        if record is None:
            raise LookupError(f"no review comment {comment_id}")
        return record
