"""Actions of people and apps on the simulated GitHub; each changes the world and notifies the subscribers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from bot.simgithub.hooks import Hooks
from bot.simgithub.render import Renderer
from bot.simgithub.state import (
    App,
    CheckRunState,
    CommentState,
    InstallationState,
    IssueState,
    Json,
    Pull,
    Reaction,
    RepositoryState,
    Review,
    ReviewCommentState,
    User,
    World,
)

T = TypeVar("T")


class Operations:
    """Callers hold the world's lock."""

    def __init__(self, world: World, render: Renderer, hooks: Hooks) -> None:
        self.world = world
        self.render = render
        self.hooks = hooks

    # Issues and the conversation

    def open_issue(
        self, repository: RepositoryState, title: str, body: str, author: User, labels: Sequence[str] = ()
    ) -> IssueState:
        issue = self._new(repository, title, body, author, labels)
        self.announce(repository, issue, "opened", author)
        return issue

    def _new(
        self, repository: RepositoryState, title: str, body: str, author: User, labels: Sequence[str] = ()
    ) -> IssueState:
        issue = IssueState(_next(repository), title, body, author, self.world.now(), labels=list(labels))
        repository.issues[issue.number] = issue
        return issue

    def edit(self, repository: RepositoryState, issue: IssueState, by: User, **new: str) -> None:
        """Change title or body; an edit that changes nothing is still an event without changes."""
        changes = {name: {"from": getattr(issue, name)} for name in new if getattr(issue, name) != new[name]}
        # The history holds all versions but the present one.
        issue.titles += [issue.title] if "title" in changes else []
        issue.bodies += [issue.body] if "body" in changes else []
        for name, value in new.items():
            setattr(issue, name, value)
        self.announce(repository, issue, "edited", by, changes=changes)

    def set_state(
        self,
        repository: RepositoryState,
        issue: IssueState,
        state: Literal["open", "closed"],
        by: User,
        reason: str | None,
    ) -> None:
        issue.state = state
        issue.state_reason = reason
        issue.closed_at = self.world.now() if state == "closed" else None
        issue.closer = by if state == "closed" else None
        issue.reopened_at += [self.world.now()] if state == "open" else []
        self.announce(repository, issue, "closed" if state == "closed" else "reopened", by)

    def lock(self, repository: RepositoryState, issue: IssueState, by: User) -> None:
        issue.locked = True
        self.announce(repository, issue, "locked", by)

    def delete(self, repository: RepositoryState, issue: IssueState, by: User) -> None:
        self._remove(repository, issue, None)
        self.announce(repository, issue, "deleted", by)

    def transfer(
        self, repository: RepositoryState, issue: IssueState, target: RepositoryState, by: User
    ) -> IssueState:
        """Move an issue to another repository, where it is opened under the next number."""
        moved = replace(issue, number=_next(target))
        target.issues[moved.number] = moved
        self._remove(repository, issue, (target.full_name, moved.number))
        new = {"new_issue": self.render.issue(target, moved), "new_repository": self.render.repository(target)}
        self.announce(repository, issue, "transferred", by, changes=new)
        old = {
            "old_issue": self.render.issue(repository, issue),
            "old_repository": self.render.repository(repository),
        }
        self.announce(target, moved, "opened", by, changes=old)
        return moved

    def _remove(self, repository: RepositoryState, issue: IssueState, to: tuple[str, int] | None) -> None:
        repository.removed[issue.number] = to
        del repository.issues[issue.number]
        link = (repository.full_name, issue.number)
        for place in self.world.repositories.values():
            for other in place.issues.values():
                if other.pull is not None:
                    other.pull.closes = [closed for closed in other.pull.closes if closed != link]

    def add_label(self, repository: RepositoryState, issue: IssueState, name: str, by: User) -> None:
        """Set a label and create it if the repository does not have it, as GitHub does."""
        repository.labels.setdefault(name, "ededed")
        if name not in issue.labels:
            issue.labels.append(name)
            issue.labelled.append((name, self.world.now()))
            self.announce(repository, issue, "labeled", by, label=self.render.label(repository, name))

    def remove_label(self, repository: RepositoryState, issue: IssueState, name: str, by: User) -> None:
        issue.labels.remove(name)
        self.announce(repository, issue, "unlabeled", by, label=self.render.label(repository, name))

    def plan(
        self,
        repository: RepositoryState,
        issue: IssueState,
        by: User,
        *,
        assignees: Sequence[User] | None = None,
        milestone: str | None = None,
    ) -> None:
        """Replace the assignees, or set or remove (empty) the milestone."""
        if assignees is not None:
            issue.assignees = list(assignees)
            self.announce(repository, issue, "assigned" if assignees else "unassigned", by)
        if milestone is not None:
            issue.milestone = milestone
            self.announce(repository, issue, "milestoned" if milestone else "demilestoned", by)

    def announce(self, repository: RepositoryState, issue: IssueState, action: str, by: User, **more: Any) -> None:
        if issue.pull:
            payload = {"number": issue.number, "pull_request": self.render.pull(repository, issue), **more}
            self.hooks.emit(repository, "pull_request", action, by, payload)
        else:
            payload = {"issue": self.render.issue(repository, issue), **more}
            self.hooks.emit(repository, "issues", action, by, payload)

    def add_comment(
        self, repository: RepositoryState, issue: IssueState, body: str, author: User, app: App | None = None
    ) -> CommentState:
        comment = CommentState(self.world.next_id(), body, author, self.world.now(), app)
        issue.comments.append(comment)
        self.announce_comment(repository, issue, comment, "created", author)
        return comment

    def edit_comment(self, repository: RepositoryState, comment_id: int, body: str, by: User) -> None:
        issue, comment = or_not_found(repository.comment(comment_id))
        before, comment.body = comment.body, body
        self.announce_comment(repository, issue, comment, "edited", by, changes={"body": {"from": before}})

    def delete_comment(self, repository: RepositoryState, comment_id: int, by: User) -> None:
        issue, comment = or_not_found(repository.comment(comment_id))
        issue.comments.remove(comment)
        self.announce_comment(repository, issue, comment, "deleted", by)

    def announce_comment(
        self,
        repository: RepositoryState,
        issue: IssueState,
        comment: CommentState,
        action: str,
        by: User,
        **more: Any,
    ) -> None:
        payload = {
            "issue": self.render.issue(repository, issue),
            "comment": self.render.comment(repository, issue, comment),
            **more,
        }
        self.hooks.emit(repository, "issue_comment", action, by, payload)

    def react(self, comment: CommentState, user: User, content: str) -> tuple[Reaction, bool]:
        """Return the reaction, and True if it is new."""
        for reaction in comment.reactions:
            if (reaction.user, reaction.content) == (user, content):
                return reaction, False
        comment.reactions.append(Reaction(self.world.next_id(), user, content))
        return comment.reactions[-1], True

    # Pull requests

    def open_pull(
        self, repository: RepositoryState, title: str, body: str, author: User, pull: Pull
    ) -> IssueState:
        issue = self._new(repository, title, body, author)
        issue.pull = pull
        self.announce(repository, issue, "opened", author)
        return issue

    def push(
        self,
        repository: RepositoryState,
        branch: str,
        files: Mapping[str, bytes | None],
        by: User,
        message: str = "",
    ) -> str:
        """Commit on a branch (None removes a file) and update the pull requests from that branch."""
        tip = repository.branches.get(branch)
        tree = dict(self.world.commits[tip].files) if tip else {}
        for path, content in files.items():
            if content is None:
                tree.pop(path, None)
            else:
                tree[path] = content
        commit = self.world.commit(tree, message or f"Change {', '.join(files)}", (tip,) if tip else ())
        repository.branches[branch] = commit.sha
        before = self.world.commits[tip].files if tip else {}
        changes = {
            "added": [path for path in tree if path not in before],
            "modified": [path for path in tree if path in before and tree[path] != before[path]],
            "removed": [path for path in before if path not in tree],
        }
        self._announce_push(repository, branch, tip, {"id": commit.sha, "message": commit.message, **changes}, by)
        self._move_pulls(repository, branch, commit.sha, by)
        return commit.sha

    def _announce_push(
        self, repository: RepositoryState, branch: str, before: str | None, commit: Json, by: User
    ) -> None:
        payload = {
            "ref": f"refs/heads/{branch}",
            "before": before or "0" * 40,
            "after": commit["id"],
            "created": before is None,
            "deleted": False,
            "forced": False,
            "pusher": {"name": by.login},
            "commits": [commit],
        }
        self.hooks.emit(repository, "push", None, by, payload)

    def _move_pulls(self, head: RepositoryState, branch: str, sha: str, by: User) -> None:
        for repository in self.world.repositories.values():
            for issue in repository.issues.values():
                pull = issue.pull
                if pull is None or (pull.head_repository, pull.head_ref) != (head.full_name, branch):
                    continue
                if issue.state == "open":
                    before, pull.head_sha = pull.head_sha, sha
                    pull.base_sha = repository.branches[pull.base_ref]
                    for comment in pull.comments:
                        comment.line = None
                    self.announce(repository, issue, "synchronize", by, before=before, after=sha)

    def set_draft(self, repository: RepositoryState, issue: IssueState, draft: bool, by: User) -> None:
        assert issue.pull is not None
        issue.pull.draft = draft
        self.announce(repository, issue, "converted_to_draft" if draft else "ready_for_review", by)

    def add_review(
        self,
        repository: RepositoryState,
        issue: IssueState,
        review: Review,
        comments: Sequence[ReviewCommentState],
    ) -> None:
        assert issue.pull is not None
        issue.pull.reviews.append(review)
        for comment in comments:
            self.add_review_comment(repository, issue, comment)

    def add_review_comment(
        self, repository: RepositoryState, issue: IssueState, comment: ReviewCommentState
    ) -> None:
        assert issue.pull is not None
        issue.pull.comments.append(comment)
        payload = self.about_review_comment(repository, issue, comment)
        self.hooks.emit(repository, "pull_request_review_comment", "created", comment.author, payload)

    def resolve_thread(
        self, repository: RepositoryState, issue: IssueState, first: ReviewCommentState, by: User
    ) -> None:
        assert issue.pull is not None
        first.resolved = True
        thread = [comment for comment in issue.pull.comments if first.id in (comment.id, comment.in_reply_to)]
        payload = {
            "pull_request": self.render.pull(repository, issue),
            "thread": {"comments": [self.render.review_comment(repository, issue, comment) for comment in thread]},
        }
        self.hooks.emit(repository, "pull_request_review_thread", "resolved", by, payload)

    def about_review_comment(
        self, repository: RepositoryState, issue: IssueState, comment: ReviewCommentState
    ) -> Json:
        return {
            "pull_request": self.render.pull(repository, issue),
            "comment": self.render.review_comment(repository, issue, comment),
        }

    def rerequest_check(self, repository: RepositoryState, check: CheckRunState, by: User) -> None:
        """Announce that a user pressed "Re-run", to the app that owns the check only."""
        for installation in self.world.installed(repository):
            if installation.app is check.app and "check_run" in installation.events:
                payload = {
                    "action": "rerequested",
                    "check_run": self.render.check_run(repository, check),
                    "repository": self.render.repository(repository),
                }
                self.hooks.deliver(installation, "check_run", "rerequested", by, payload, repository)

    def rename(self, repository: RepositoryState, owner: User, name: str, by: User) -> None:
        """Rename a repository, or transfer it to an owner, with whose installation it is only if it is of all."""
        old, previous = repository.full_name, repository.owner
        del self.world.repositories[old]
        self.world.former[old] = repository.id
        repository.owner, repository.name = owner, name
        new = repository.full_name
        self.world.repositories[new] = repository
        self.world.former.pop(new, None)
        for installation in self.world.installations.values():
            if old in installation.repositories:
                installation.repositories.remove(old)
                if owner is previous:
                    installation.repositories.append(new)
                else:
                    self._announce_removal(installation, repository, old, by)
            elif installation.account is owner and installation.all_repositories:
                installation.repositories.append(new)
        for token in self.world.tokens.values():
            renamed = (new,) if owner is previous else ()
            names = [renamed if place == old else (place,) for place in token.repositories]
            token.repositories = tuple(place for group in names for place in group)
        self._rename_in_pulls(old, new)
        changes: Json = {"repository": {"name": {"from": old.partition("/")[2]}}}
        if owner is not previous:
            changes = {"owner": {"from": {"user": self.render.user(previous)}}}
        action = "renamed" if owner is previous else "transferred"
        self.hooks.emit(repository, "repository", action, by, {"changes": changes})

    def _rename_in_pulls(self, old: str, new: str) -> None:
        for place in self.world.repositories.values():
            for pull in (issue.pull for issue in place.issues.values() if issue.pull):
                pull.head_repository = new if pull.head_repository == old else pull.head_repository
                pull.closes = [(new if name == old else name, number) for name, number in pull.closes]

    def _announce_removal(
        self, installation: InstallationState, repository: RepositoryState, name: str, by: User
    ) -> None:
        short = {"id": repository.id, "name": name.partition("/")[2], "full_name": name}
        payload = {
            "action": "removed",
            "installation": self.render.installation(installation),
            "repository_selection": "selected",
            "repositories_added": [],
            "repositories_removed": [{**short, "private": repository.private}],
        }
        self.hooks.deliver(installation, "installation_repositories", "removed", by, payload)

    def delete_repository(self, repository: RepositoryState, by: User) -> None:
        self.hooks.emit(repository, "repository", "deleted", by, {})
        del self.world.repositories[repository.full_name]
        for holder in self.world.installations.values():
            holder.repositories = [name for name in holder.repositories if name != repository.full_name]
        for token in self.world.tokens.values():
            token.repositories = tuple(name for name in token.repositories if name != repository.full_name)

    def installed(self, installation: InstallationState, by: User) -> None:
        """Announce to the app that it was installed."""
        names = ("id", "name", "full_name", "private")
        payload = {
            "action": "created",
            "installation": self.render.installation(installation),
            "repositories": [
                {field: getattr(self.world.repositories[name], field) for field in names}
                for name in installation.repositories
            ],
        }
        self.hooks.deliver(installation, "installation", "created", by, payload)

    def suspend(self, installation: InstallationState, by: User, suspended: bool) -> None:
        """Suspend an installation, or end that; there are no other events in between."""
        installation.suspended = suspended
        action = "suspend" if suspended else "unsuspend"
        payload = {"action": action, "installation": self.render.installation(installation)}
        self.hooks.deliver(installation, "installation", action, by, payload)


def _next(repository: RepositoryState) -> int:
    """Return the next number of an issue or pull request; no number is used twice."""
    return max((*repository.issues, *repository.removed), default=0) + 1


def or_not_found(comment: T | None) -> T:
    """Return a comment that exists. Raises LookupError."""
    if comment is None:
        raise LookupError("no such comment")
    return comment
