"""Writes on GitHub: one call each, without retries.

Every method raises the errors of a ``Forge``. After a TransientError the write may have been applied, so the
caller checks first. Methods that create something return its id.
"""

from __future__ import annotations

import base64
from typing import Any, Literal
from urllib.parse import quote

from bot.core.actions import Conclusion, InlineComment
from bot.core.errors import ForgeError, NotFound
from bot.github.http import Client, below, segment
from bot.github.payloads import read

TO_DRAFT = """
mutation ($id: ID!) {
  convertPullRequestToDraft(input: {pullRequestId: $id}) { pullRequest { isDraft } }
}
"""
TO_READY = TO_DRAFT.replace("convertPullRequestToDraft", "markPullRequestReadyForReview")

MINIMIZE = """
mutation ($id: ID!, $why: ReportedContentClassifiers!) {
  minimizeComment(input: {subjectId: $id, classifier: $why}) { minimizedComment { isMinimized } }
}
"""


class GitHubWriter:
    def __init__(self, client: Client, contents: Client, repository: str) -> None:
        self._client = client
        #: Another token, the only one that may change files; minted when a test pull request is first opened.
        self._contents = contents
        self._owner = repository.partition("/")[0]
        self._path = f"/repos/{quote(repository)}"

    def create_comment(self, number: int, body: str) -> int:
        return _id(self._send("POST", f"/issues/{number}/comments", {"body": body}))

    def reply(self, number: int, comment_id: int, body: str) -> int:
        """Reply in the thread of a comment on a line of a pull request."""
        return _id(self._send("POST", f"/pulls/{number}/comments/{comment_id}/replies", {"body": body}))

    def edit_comment(self, comment_id: int, body: str) -> None:
        self._send("PATCH", f"/issues/comments/{comment_id}", {"body": body})

    def add_labels(self, number: int, labels: tuple[str, ...]) -> None:
        self._send("POST", f"/issues/{number}/labels", {"labels": list(labels)})

    def remove_label(self, number: int, label: str) -> None:
        """Remove a label; a missing label is no error."""
        try:
            self._send("DELETE", f"/issues/{number}/labels/{segment(label)}")
        except NotFound as error:
            if "label does not exist" not in str(error).lower():
                raise

    def set_issue_state(self, number: int, state: Literal["open", "closed"]) -> None:
        """Close as not planned, or reopen; no error if it is in that state already."""
        reason = "not_planned" if state == "closed" else "reopened"
        self._send("PATCH", f"/issues/{number}", {"state": state, "state_reason": reason})

    def set_draft(self, node_id: str, draft: bool) -> None:
        """Convert a pull request to a draft or back. GitHub demands ``contents: write`` for it."""
        self._contents.graphql(TO_DRAFT if draft else TO_READY, {"id": node_id})

    def minimize(self, node_id: str, why: Literal["RESOLVED", "OUTDATED"]) -> None:
        """Hide a comment on a line behind a reason. Nothing changes if it is hidden already."""
        self._client.graphql(MINIMIZE, {"id": node_id, "why": why})

    def create_review(self, number: int, commit_id: str, body: str, comments: tuple[InlineComment, ...]) -> int:
        """Post one review with event COMMENT; the comments' ``body`` is posted unchanged."""
        review: dict[str, Any] = {
            "commit_id": commit_id,
            "event": "COMMENT",
            "comments": [_inline(comment) for comment in comments],
        }
        if body:
            review["body"] = body
        return _id(self._send("POST", f"/pulls/{number}/reviews", review))

    def create_check(
        self,
        name: str,
        head_sha: str,
        external_id: str,
        conclusion: Conclusion,
        title: str,
        summary: str,
        text: str,
    ) -> int:
        check = {
            "name": name,
            "head_sha": head_sha,
            "external_id": external_id,
            **_completed(conclusion, title, summary, text),
        }
        return _id(self._send("POST", "/check-runs", check))

    def edit_check(self, check_id: int, conclusion: Conclusion, title: str, summary: str, text: str) -> None:
        self._send("PATCH", f"/check-runs/{check_id}", _completed(conclusion, title, summary, text))

    def create_branch(self, branch: str, sha: str) -> None:
        """Create a branch; an existing one is no error."""
        try:
            self._write_contents("POST", "/git/refs", {"ref": f"refs/heads/{branch}", "sha": sha})
        except ForgeError as error:
            if error.status != 422 or "already exists" not in str(error):
                raise

    def put_file(self, branch: str, path: str, content: str, message: str) -> None:
        """Commit one added or replaced file; equal content is no error."""
        new_content = content.encode()
        body = {"message": message, "branch": branch, "content": base64.b64encode(new_content).decode()}
        try:
            current = self._contents.value(f"{self._path}/contents/{below(path)}", {"ref": branch})
        except NotFound:
            current = None
        if current is not None:
            if not isinstance(current, dict) or current.get("type") != "file":
                raise ForgeError(f"{path}: not a file on {branch}")
            if read(lambda file: base64.b64decode(file.get("content") or ""), current) == new_content:
                return
            body["sha"] = read(lambda file: str(file["sha"]), current)
        self._write_contents("PUT", f"/contents/{below(path)}", body)

    def create_draft_pull(self, branch: str, base: str, title: str, body: str) -> int:
        """Open a draft pull request and return its number."""
        pull = {"title": title, "body": body, "head": branch, "base": base, "draft": True}
        return read(_number, self._write_contents("POST", "/pulls", pull))

    def find_pull(self, branch: str) -> int | None:
        """Return the number of the pull request (open or closed) whose head is that branch of this repository."""
        query = {"head": f"{self._owner}:{branch}", "state": "all"}
        value = next(self._client.pages(f"{self._path}/pulls", query), None)
        return read(_number, value) if value else None

    def react(self, comment_id: int, content: str, *, review: bool = False) -> None:
        comments = "pulls/comments" if review else "issues/comments"
        self._send("POST", f"/{comments}/{comment_id}/reactions", {"content": content})

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        return self._client.send(method, self._path + path, body)

    def _write_contents(self, method: str, path: str, body: Any) -> Any:
        return self._contents.send(method, self._path + path, body)


def _id(value: Any) -> int:
    return read(lambda answer: int(answer["id"]), value)


def _number(value: Any) -> int:
    return int(value["number"])


def _inline(comment: InlineComment) -> dict[str, Any]:
    value: dict[str, Any] = {
        "path": comment.path,
        "line": comment.line,
        "side": comment.side,
        "body": comment.body,
    }
    if comment.start_line is not None and comment.start_line != comment.line:
        value |= {"start_line": comment.start_line, "start_side": comment.side}
    return value


def _completed(conclusion: Conclusion, title: str, summary: str, text: str) -> dict[str, Any]:
    # GitHub requires a summary with a title.
    output = {"title": title, "summary": summary or title}
    return {"status": "completed", "conclusion": conclusion, "output": output | ({"text": text} if text else {})}
