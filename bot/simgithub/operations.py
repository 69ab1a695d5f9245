"""Actions of people and apps on the simulated GitHub; each changes the world and notifies the subscribers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

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
    ReviewCommentState,
    User,
    World,
)


class Operations:
    """Callers hold the world's lock."""

    def __init__(self, world: World, render: Renderer, hooks: Hooks) -> None:
        self.world = world
        self.render = render
        self.hooks = hooks

    # Issues and the conversation

    def open_issue(
        self,
        repository: RepositoryState,
        title: str,
        body: str,
        author: User,
        labels: Sequence[str] = (),
        pull: Pull | None = None,
    ) -> IssueState:
        """Open an issue, or a pull request if ``pull`` is its other half."""
        number, now = _next(repository), self.world.now()
        issue = IssueState(repository, number, title, body, author, now, labels=list(labels), pull=pull)
        repository.issues[number] = issue
        self.announce(issue, "opened", author)
        return issue

    def set_state(self, issue: IssueState, state: Literal["open", "closed"], by: User, reason: str | None) -> None:
        issue.state = state
        issue.state_reason = reason
        issue.closed_at = self.world.now() if state == "closed" else None
        issue.closer = by if state == "closed" else None
        issue.reopened_at += [self.world.now()] if state == "open" else []
        self.announce(issue, "closed" if state == "closed" else "reopened", by)

    def transfer(self, issue: IssueState, target: RepositoryState, by: User) -> IssueState:
        """Move an issue to another repository, where it is opened under the next number."""
        moved = replace(issue, repository=target, number=_next(target))
        for comment in moved.comments:
            comment.issue = moved
        target.issues[moved.number] = moved
        self.remove(issue, (target.full_name, moved.number))
        self.announce(issue, "transferred", by, changes=self._place("new", moved))
        self.announce(moved, "opened", by, changes=self._place("old", issue))
        return moved

    def _place(self, word: str, issue: IssueState) -> Json:
        repository = self.render.repository(issue.repository)
        return {f"{word}_issue": self.render.issue(issue), f"{word}_repository": repository}

    def remove(self, issue: IssueState, to: tuple[str, int] | None = None) -> None:
        """Remove an issue with all links to it; ``to`` is its new place."""
        repository = issue.repository
        repository.removed[issue.number] = to
        del repository.issues[issue.number]
        link = (repository.full_name, issue.number)
        for place in self.world.repositories.values():
            for pull in place.pulls():
                pull.closes = [closed for closed in pull.closes if closed != link]

    def add_label(self, issue: IssueState, name: str, by: User) -> None:
        if name not in issue.labels:
            issue.labels.append(name)
            issue.labelled.append((name, self.world.now()))
            self.announce(issue, "labeled", by, label={"name": name})

    def remove_label(self, issue: IssueState, name: str, by: User) -> None:
        issue.labels.remove(name)
        self.announce(issue, "unlabeled", by, label={"name": name})

    def announce(self, issue: IssueState, action: str, by: User, **more: Any) -> None:
        if issue.pull:
            payload = {"number": issue.number, "pull_request": self.render.pull(issue), **more}
            self.hooks.emit(issue.repository, "pull_request", action, by, payload)
        else:
            payload = {"issue": self.render.issue(issue), **more}
            self.hooks.emit(issue.repository, "issues", action, by, payload)

    def add_comment(self, issue: IssueState, body: str, author: User, app: App | None = None) -> CommentState:
        comment = CommentState(issue, self.world.next_id(), body, author, self.world.now(), app)
        issue.comments.append(comment)
        self.announce_comment(comment, "created", author)
        return comment

    def edit_comment(self, comment: CommentState, body: str, by: User) -> None:
        before, comment.body = comment.body, body
        self.announce_comment(comment, "edited", by, changes={"body": {"from": before}})

    def announce_comment(self, comment: CommentState, action: str, by: User, **more: Any) -> None:
        issue = comment.issue
        payload = {"issue": self.render.issue(issue), "comment": self.render.comment(comment), **more}
        self.hooks.emit(issue.repository, "issue_comment", action, by, payload)

    def react(self, comment: CommentState, user: User, content: str) -> tuple[Reaction, bool]:
        """Return the reaction, and True if it is new."""
        for reaction in comment.reactions:
            if (reaction.user, reaction.content) == (user, content):
                return reaction, False
        comment.reactions.append(Reaction(self.world.next_id(), user, content))
        return comment.reactions[-1], True

    # Pull requests

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
        payload = {
            "ref": f"refs/heads/{branch}",
            "after": commit.sha,
            "forced": False,
            "commits": [{"id": commit.sha, "message": commit.message, **changes}],
        }
        self.hooks.emit(repository, "push", None, by, payload)
        self._move_pulls(repository, branch, commit.sha, by)
        return commit.sha

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
                    self.announce(issue, "synchronize", by, before=before, after=sha)

    def set_draft(self, issue: IssueState, draft: bool, by: User) -> None:
        assert issue.pull is not None
        issue.pull.draft = draft
        self.announce(issue, "converted_to_draft" if draft else "ready_for_review", by)

    def add_review_comment(self, comment: ReviewCommentState) -> None:
        assert comment.issue.pull is not None
        comment.issue.pull.comments.append(comment)
        self.announce_review_comment(comment, "created")

    def reply(
        self, first: ReviewCommentState, body: str, author: User, app: App | None = None
    ) -> ReviewCommentState:
        """Reply in the thread of a comment on a line."""
        reply = replace(
            first,
            id=self.world.next_id(),
            body=body,
            author=author,
            created_at=self.world.now(),
            app=app,
            in_reply_to=first.in_reply_to or first.id,
            reactions=[],
            resolved=False,
            minimized="",
        )
        self.add_review_comment(reply)
        return reply

    def announce_review_comment(self, comment: ReviewCommentState, action: str) -> None:
        payload = {
            "pull_request": self.render.pull(comment.issue),
            "comment": self.render.review_comment(comment),
        }
        repository = comment.issue.repository
        self.hooks.emit(repository, "pull_request_review_comment", action, comment.author, payload)

    def rerequest_check(self, repository: RepositoryState, check: CheckRunState, by: User) -> None:
        """Announce that a user pressed "Re-run", to the app that owns the check only."""
        for installation in self.world.installed(repository):
            if installation.app is check.app and "check_run" in installation.events:
                payload = {
                    "action": "rerequested",
                    "check_run": self.render.check_run(repository, check),
                    "repository": self.render.repository(repository),
                }
                self.hooks.deliver(installation, "check_run", by, payload)

    def rename(self, repository: RepositoryState, owner: User, name: str, by: User) -> None:
        """Rename a repository, or transfer it to an owner, whose installations it is not part of."""
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
            for pull in place.pulls():
                pull.head_repository = new if pull.head_repository == old else pull.head_repository
                pull.closes = [(new if name == old else name, number) for name, number in pull.closes]

    def _announce_removal(
        self, installation: InstallationState, repository: RepositoryState, name: str, by: User
    ) -> None:
        payload = {
            "action": "removed",
            "installation": self.render.installation(installation),
            "repositories_added": [],
            "repositories_removed": [{"id": repository.id, "full_name": name}],
        }
        self.hooks.deliver(installation, "installation_repositories", by, payload)

    def installed(self, installation: InstallationState, by: User) -> None:
        """Announce to the app that it was installed."""
        payload = {
            "action": "created",
            "installation": self.render.installation(installation),
            "repositories": [
                {"id": self.world.repositories[name].id, "full_name": name} for name in installation.repositories
            ],
        }
        self.hooks.deliver(installation, "installation", by, payload)

    def suspend(self, installation: InstallationState, by: User, suspended: bool) -> None:
        """Suspend an installation, or end that; there are no other events in between."""
        installation.suspended = suspended
        action = "suspend" if suspended else "unsuspend"
        payload = {"action": action, "installation": self.render.installation(installation)}
        self.hooks.deliver(installation, "installation", by, payload)


def _next(repository: RepositoryState) -> int:
    """Return the next number of an issue or pull request; no number is used twice."""
    return max((*repository.issues, *repository.removed), default=0) + 1
