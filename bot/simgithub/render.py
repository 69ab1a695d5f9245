"""The simulated GitHub's records as the JSON that GitHub sends, in REST answers and in webhooks alike.

Of GitHub's fields, those that Bouncer reads are rendered.
"""

from __future__ import annotations

from datetime import datetime

from bot.simgithub import diffs
from bot.simgithub.state import (
    App,
    CheckRunState,
    CommentState,
    InstallationState,
    IssueState,
    Json,
    Reaction,
    RepositoryState,
    Review,
    ReviewCommentState,
    User,
    World,
)


class Renderer:
    """Converts records to JSON; ``api`` and ``web`` are the addresses in them."""

    def __init__(self, world: World, api: str, web: str) -> None:
        self.world = world
        self.api = api
        self.web = web

    def time(self, moment: datetime | None) -> str | None:
        return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def user(self, user: User) -> Json:
        return {"login": user.login, "id": user.id, "type": user.type}

    def repository(self, repository: RepositoryState) -> Json:
        return {
            "id": repository.id,
            "name": repository.name,
            "full_name": repository.full_name,
            "private": repository.private,
            "owner": self.user(repository.owner),
            "html_url": f"{self.web}/{repository.full_name}",
            "default_branch": repository.default_branch,
        }

    def page(self, issue: IssueState) -> str:
        """Return the address of an issue's or pull request's page."""
        return f"{self.web}/{issue.repository.full_name}/{'pull' if issue.pull else 'issues'}/{issue.number}"

    def issue(self, issue: IssueState) -> Json:
        value: Json = {
            "html_url": self.page(issue),
            "node_id": f"I_{issue.repository.id}_{issue.number}",
            "number": issue.number,
            "title": issue.title,
            "user": self.user(issue.author),
            "labels": [{"name": name} for name in issue.labels],
            "state": issue.state,
            "state_reason": issue.state_reason,
            "locked": issue.locked,
            "assignees": [self.user(user) for user in issue.assignees],
            "milestone": {"title": issue.milestone} if issue.milestone else None,
            "comments": len(issue.comments),
            "created_at": self.time(issue.created_at),
            "closed_at": self.time(issue.closed_at),
            "author_association": self.association(issue.repository, issue.author),
            "body": issue.body or None,
        }
        if issue.pull:
            url = f"{self.api}/repos/{issue.repository.full_name}/pulls/{issue.number}"
            value["pull_request"] = {"url": url, "html_url": value["html_url"]}
        return value

    @staticmethod
    def association(repository: RepositoryState, user: User) -> str:
        if user.login == repository.full_name.partition("/")[0]:
            return "OWNER"
        if repository.roles.get(user.login, "none") not in ("none", "read"):
            return "COLLABORATOR"
        return "CONTRIBUTOR" if user.login in repository.contributors else "NONE"

    def comment(self, comment: CommentState) -> Json:
        issue = comment.issue
        return {
            "html_url": f"{self.page(issue)}#issuecomment-{comment.id}",
            "issue_url": f"{self.api}/repos/{issue.repository.full_name}/issues/{issue.number}",
            "id": comment.id,
            "user": self.user(comment.author),
            "created_at": self.time(comment.created_at),
            "author_association": self.association(issue.repository, comment.author),
            "body": comment.body,
            "performed_via_github_app": self.app(comment.app) if comment.app else None,
        }

    def pull(self, issue: IssueState) -> Json:
        pull, base = issue.pull, issue.repository
        assert pull is not None
        head = self.world.repositories.get(pull.head_repository or "")
        value = self.issue(issue)
        del value["pull_request"], value["state_reason"]
        return {
            **value,
            "merged_at": self.time(pull.merged_at),
            "draft": pull.draft,
            "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": self.repository(head) if head else None},
            "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": self.repository(base)},
            "merged": pull.merged,
            "review_comments": len(pull.comments),
            "changed_files": len(diffs.changes(*self.world.pull_files(pull))),
        }

    def review(self, review: Review) -> Json:
        return {
            "id": review.id,
            "user": self.user(review.author),
            "body": review.body,
            "commit_id": review.commit_id,
        }

    def review_comment(self, comment: ReviewCommentState) -> Json:
        value: Json = {
            "id": comment.id,
            "node_id": comment.node_id,
            "diff_hunk": comment.diff_hunk,
            "path": comment.path,
            "commit_id": comment.commit_id,
            "user": self.user(comment.author),
            "body": comment.body,
            "created_at": self.time(comment.created_at),
            "html_url": f"{self.page(comment.issue)}#discussion_r{comment.id}",
            "line": comment.line,
            "original_line": comment.original_line,
            "side": comment.side,
        }
        return value | ({"in_reply_to_id": comment.in_reply_to} if comment.in_reply_to else {})

    def check_run(self, repository: RepositoryState, check: CheckRunState) -> Json:
        pulls = [
            {"number": issue.number}
            for issue in repository.issues.values()
            # As on GitHub, the pull requests of forks are not named.
            if issue.pull
            and issue.pull.head_sha == check.head_sha
            and issue.pull.head_repository == repository.full_name
        ]
        return {
            "id": check.id,
            "name": check.name,
            "head_sha": check.head_sha,
            "external_id": check.external_id,
            "status": check.status,
            "conclusion": check.conclusion,
            "app": self.app(check.app),
            "pull_requests": pulls,
        }

    def app(self, app: App) -> Json:
        return {
            "id": app.id,
            "slug": app.slug,
            "client_id": app.client_id,
            "html_url": f"{self.web}/apps/{app.slug}",
            "permissions": dict(app.permissions),
            "events": list(app.events),
        }

    def installation(self, installation: InstallationState) -> Json:
        return {
            "id": installation.id,
            "account": self.user(installation.account),
            "permissions": dict(installation.permissions),
            "events": list(installation.events),
            "suspended_at": self.time(self.world.now()) if installation.suspended else None,
        }

    def reaction(self, reaction: Reaction) -> Json:
        return {"id": reaction.id, "user": self.user(reaction.user), "content": reaction.content}
