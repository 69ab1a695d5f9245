"""The simulated GitHub's records as the JSON that GitHub sends, in REST answers and in webhooks alike."""

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

    def time(self, moment: datetime) -> str:
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def user(self, user: User) -> Json:
        login = user.login
        return {
            "login": login,
            "id": user.id,
            "node_id": f"U_{user.id}",
            "avatar_url": f"{self.web}/avatars/{user.id}",
            "url": f"{self.api}/users/{login}",
            "html_url": f"{self.web}/{login}",
            "type": user.type,
            "site_admin": False,
        }

    def repository(self, repository: RepositoryState) -> Json:
        return {
            "id": repository.id,
            "node_id": f"R_{repository.id}",
            "name": repository.name,
            "full_name": repository.full_name,
            "private": repository.private,
            "owner": self.user(repository.owner),
            "html_url": f"{self.web}/{repository.full_name}",
            "description": None,
            "fork": False,
            "url": f"{self.api}/repos/{repository.full_name}",
            "default_branch": repository.default_branch,
            "visibility": "private" if repository.private else "public",
            "archived": repository.archived,
            "disabled": False,
        }

    def label(self, repository: RepositoryState, name: str) -> Json:
        return {
            "id": sum(name.encode()) + repository.id,
            "node_id": f"LA_{name}",
            "url": f"{self.api}/repos/{repository.full_name}/labels/{name}",
            "name": name,
            "color": repository.labels.get(name, "ededed"),
            "default": False,
            "description": None,
        }

    def issue(self, repository: RepositoryState, issue: IssueState) -> Json:
        kind = "pull" if issue.pull else "issues"
        value: Json = {
            "url": f"{self.api}/repos/{repository.full_name}/issues/{issue.number}",
            "repository_url": f"{self.api}/repos/{repository.full_name}",
            "html_url": f"{self.web}/{repository.full_name}/{kind}/{issue.number}",
            "id": repository.id * 1000 + issue.number,
            "node_id": f"I_{repository.id}_{issue.number}",
            "number": issue.number,
            "title": issue.title,
            "user": self.user(issue.author),
            "labels": [self.label(repository, name) for name in issue.labels],
            "state": issue.state,
            "state_reason": issue.state_reason,
            "locked": issue.locked,
            "assignees": [self.user(user) for user in issue.assignees],
            "milestone": self.milestone(repository, issue),
            "comments": len(issue.comments),
            "created_at": self.time(issue.created_at),
            "updated_at": self.time(self.world.now()),
            "closed_at": self.time(self.world.now()) if issue.state == "closed" else None,
            "author_association": self.association(repository, issue.author),
            "body": issue.body or None,
        }
        if issue.pull:
            url = f"{self.api}/repos/{repository.full_name}/pulls/{issue.number}"
            value["pull_request"] = {"url": url, "html_url": value["html_url"]}
        return value

    def milestone(self, repository: RepositoryState, issue: IssueState) -> Json | None:
        if not issue.milestone:
            return None
        time = self.time(issue.created_at)
        url = f"{self.api}/repos/{repository.full_name}/milestones/1"
        return {
            "url": url,
            "html_url": f"{self.web}/{repository.full_name}/milestone/1",
            "labels_url": f"{url}/labels",
            "id": 1,
            "node_id": "MI_1",
            "number": 1,
            "state": "open",
            "title": issue.milestone,
            "description": None,
            "creator": None,
            "open_issues": 1,
            "closed_issues": 0,
            "created_at": time,
            "updated_at": time,
            "closed_at": None,
            "due_on": None,
        }

    @staticmethod
    def association(repository: RepositoryState, user: User) -> str:
        if user.login == repository.full_name.partition("/")[0]:
            return "OWNER"
        if repository.roles.get(user.login, "none") not in ("none", "read"):
            return "COLLABORATOR"
        return "CONTRIBUTOR" if user.login in repository.contributors else "NONE"

    def comment(self, repository: RepositoryState, issue: IssueState, comment: CommentState) -> Json:
        kind = "pull" if issue.pull else "issues"
        page = f"{self.web}/{repository.full_name}/{kind}/{issue.number}"
        return {
            "url": f"{self.api}/repos/{repository.full_name}/issues/comments/{comment.id}",
            "html_url": f"{page}#issuecomment-{comment.id}",
            "issue_url": f"{self.api}/repos/{repository.full_name}/issues/{issue.number}",
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "user": self.user(comment.author),
            "created_at": self.time(comment.created_at),
            "updated_at": self.time(self.world.now()),
            "author_association": self.association(repository, comment.author),
            "body": comment.body,
            "performed_via_github_app": self.app(comment.app) if comment.app else None,
        }

    def pull(self, repository: RepositoryState, issue: IssueState) -> Json:
        pull = issue.pull
        assert pull is not None
        head = self.world.repositories.get(pull.head_repository or "")
        changed = diffs.changes(*self.world.pull_files(pull))
        value = self.issue(repository, issue)
        del value["pull_request"], value["repository_url"], value["comments"], value["state_reason"]
        return {
            **value,
            "url": f"{self.api}/repos/{repository.full_name}/pulls/{issue.number}",
            "diff_url": f"{value['html_url']}.diff",
            "merged_at": value["closed_at"] if pull.merged else None,
            "draft": pull.draft,
            "head": {
                "label": f"{head.owner.login if head else 'unknown'}:{pull.head_ref}",
                "ref": pull.head_ref,
                "sha": pull.head_sha,
                "user": self.user(head.owner) if head else None,
                "repo": self.repository(head) if head else None,
            },
            "base": {
                "label": f"{repository.owner.login}:{pull.base_ref}",
                "ref": pull.base_ref,
                "sha": pull.base_sha,
                "user": self.user(repository.owner),
                "repo": self.repository(repository),
            },
            "merged": pull.merged,
            "mergeable": True,
            "comments": len(issue.comments),
            "review_comments": len(pull.comments),
            "commits": 1,
            "additions": sum(file.additions for file in changed),
            "deletions": sum(file.deletions for file in changed),
            "changed_files": len(changed),
        }

    def review(self, repository: RepositoryState, issue: IssueState, review: Review) -> Json:
        page = f"{self.web}/{repository.full_name}/pull/{issue.number}"
        return {
            "id": review.id,
            "node_id": f"PRR_{review.id}",
            "user": self.user(review.author),
            "body": review.body,
            "state": review.state,
            "html_url": f"{page}#pullrequestreview-{review.id}",
            "pull_request_url": f"{self.api}/repos/{repository.full_name}/pulls/{issue.number}",
            "submitted_at": self.time(self.world.now()),
            "commit_id": review.commit_id,
            "author_association": "NONE",
        }

    def review_comment(self, repository: RepositoryState, issue: IssueState, comment: ReviewCommentState) -> Json:
        page = f"{self.web}/{repository.full_name}/pull/{issue.number}"
        value: Json = {
            "url": f"{self.api}/repos/{repository.full_name}/pulls/comments/{comment.id}",
            "pull_request_review_id": comment.review,
            "id": comment.id,
            "node_id": f"PRRC_{comment.id}",
            "diff_hunk": comment.diff_hunk,
            "path": comment.path,
            "commit_id": comment.commit_id,
            "original_commit_id": comment.commit_id,
            "user": self.user(comment.author),
            "body": comment.body,
            "created_at": self.time(comment.created_at),
            "updated_at": self.time(self.world.now()),
            "html_url": f"{page}#discussion_r{comment.id}",
            "pull_request_url": f"{self.api}/repos/{repository.full_name}/pulls/{issue.number}",
            "author_association": "NONE",
            "line": comment.line,
            "original_line": comment.original_line,
            "side": comment.side,
            "start_line": comment.start_line,
            "start_side": comment.side if comment.start_line else None,
            "subject_type": "line",
        }
        return value | ({"in_reply_to_id": comment.in_reply_to} if comment.in_reply_to else {})

    def check_run(self, repository: RepositoryState, check: CheckRunState) -> Json:
        pulls = [
            {"number": issue.number, "head": {"sha": issue.pull.head_sha}, "base": {"ref": issue.pull.base_ref}}
            for issue in repository.issues.values()
            # As on GitHub, the pull requests of forks are not named.
            if issue.pull
            and issue.pull.head_sha == check.head_sha
            and issue.pull.head_repository == repository.full_name
        ]
        return {
            "id": check.id,
            "node_id": f"CR_{check.id}",
            "name": check.name,
            "head_sha": check.head_sha,
            "external_id": check.external_id,
            "url": f"{self.api}/repos/{repository.full_name}/check-runs/{check.id}",
            "html_url": f"{self.web}/{repository.full_name}/runs/{check.id}",
            "status": check.status,
            "conclusion": check.conclusion,
            "started_at": self.time(self.world.now()),
            "completed_at": self.time(self.world.now()) if check.status == "completed" else None,
            "output": {"title": None, "summary": None, "text": None, "annotations_count": 0} | check.output,
            "check_suite": {"id": check.id + 1},
            "app": self.app(check.app),
            "pull_requests": pulls,
        }

    def app(self, app: App) -> Json:
        return {
            "id": app.id,
            "slug": app.slug,
            "node_id": f"A_{app.id}",
            "client_id": app.client_id,
            "owner": self.user(app.owner),
            "name": app.name,
            "description": None,
            "external_url": f"{self.web}/apps/{app.slug}",
            "html_url": f"{self.web}/apps/{app.slug}",
            "created_at": self.time(self.world.now()),
            "updated_at": self.time(self.world.now()),
            "permissions": dict(app.permissions),
            "events": list(app.events),
        }

    def installation(self, installation: InstallationState) -> Json:
        return {
            "id": installation.id,
            "account": self.user(installation.account),
            "repository_selection": "selected",
            "access_tokens_url": f"{self.api}/app/installations/{installation.id}/access_tokens",
            "repositories_url": f"{self.api}/installation/repositories",
            "html_url": f"{self.web}/settings/installations/{installation.id}",
            "app_id": installation.app.id,
            "app_slug": installation.app.slug,
            "target_id": installation.account.id,
            "target_type": installation.account.type,
            "permissions": dict(installation.permissions),
            "events": list(installation.events),
            "created_at": self.time(self.world.now()),
            "updated_at": self.time(self.world.now()),
            "single_file_name": None,
            "suspended_at": self.time(self.world.now()) if installation.suspended else None,
        }

    def reaction(self, reaction: Reaction) -> Json:
        return {
            "id": reaction.id,
            "node_id": f"REA_{reaction.id}",
            "user": self.user(reaction.user),
            "content": reaction.content,
            "created_at": self.time(self.world.now()),
        }
