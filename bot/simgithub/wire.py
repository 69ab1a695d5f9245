"""Requests, answers and refusals of the simulated GitHub's API.

The types and the allowed values of fields are not checked here: tests hold every request against GitHub's own
description of its API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from bot.simgithub.operations import Operations
from bot.simgithub.render import Renderer
from bot.simgithub.state import App, InstallationState, IssueState, Json, Pull, RepositoryState, Token, User, World

MAX_BODY = 65_536


class ApiRefusal(Exception):
    """A refusal: status and message, and the errors that a 422 lists."""

    def __init__(self, status: int, message: str, errors: list[Any] | None = None, *, location: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.location = location

    def answer(self) -> ApiAnswer:
        body: Json = {"message": self.message}
        if self.errors is not None:
            body["errors"] = self.errors
        return ApiAnswer(self.status, body, {"Location": self.location} if self.location else {})


@dataclass
class ApiAnswer:
    """``body`` is JSON unless it is text or bytes."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json; charset=utf-8"

    def encoded(self) -> bytes:
        if self.body is None:
            return b""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass
class ApiCall:
    """One authenticated request."""

    operations: Operations
    base: str
    path: str
    args: Mapping[str, Any]
    query: Mapping[str, str]
    accept: str
    body: Any
    reads: bool = False
    app: App | None = None
    token: Token | None = None
    user: User | None = None

    @property
    def world(self) -> World:
        return self.operations.world

    @property
    def render(self) -> Renderer:
        return self.operations.render

    @property
    def installation(self) -> InstallationState:
        assert self.token is not None
        return self.token.installation

    @property
    def acting_app(self) -> App:
        """The app on whose behalf the request is made."""
        return self.app or self.installation.app

    @property
    def bot(self) -> User:
        return self.acting_app.bot

    @property
    def repository(self) -> RepositoryState:
        """The repository in the path. Answers 404 if the token may not read it. An archived one refuses writes."""
        name = f"{self.args['owner']}/{self.args['repo']}"
        repository = self.world.repository(name)
        if repository is not None and repository.full_name != name:
            below = self.path.removeprefix(f"/repos/{name}")
            query = f"?{urlencode(self.query)}" if self.query else ""
            location = f"{self.base}/repositories/{repository.id}{below}{query}"
            raise ApiRefusal(301 if self.reads else 307, "Moved Permanently", location=location)
        stranger = self.app is None and (self.token is None or name not in self.token.repositories)
        # Public repositories can be read with any token.
        if repository is None or (stranger and (repository.private or not self.reads)):
            raise ApiRefusal(404, "Not Found")
        if repository.archived and not self.reads:
            raise ApiRefusal(403, "Repository was archived so is read-only.")
        return repository

    @property
    def issue(self) -> IssueState:
        """The issue or pull request in the path."""
        repository, number = self.repository, self.args["number"]
        issue = repository.issues.get(number)
        if issue is not None:
            return issue
        if number not in repository.removed:
            raise ApiRefusal(404, "Not Found")
        if (place := repository.removed[number]) is None:
            raise ApiRefusal(410, "This issue was deleted")
        location = f"{self.base}/repos/{place[0]}/issues/{place[1]}"
        raise ApiRefusal(301, "Moved Permanently", location=location)

    def refuse_locked(self, noun: str) -> None:
        """Answer 403 if the conversation in the path is locked: an app may not write in it."""
        if self.issue.locked:
            raise ApiRefusal(403, f"Unable to create {noun} because issue is locked.")

    @property
    def pull(self) -> tuple[IssueState, Pull]:
        """The pull request in the path."""
        if self.issue.pull is None:
            raise ApiRefusal(404, "Not Found")
        return self.issue, self.issue.pull

    def field(self, name: str, default: Any = ...) -> Any:
        """Return a field of the JSON body; answers 422 if it is missing."""
        value = (self.body or {}).get(name, default)
        if value is ...:
            raise ApiRefusal(422, f'Invalid request.\n\n"{name}" wasn\'t supplied.')
        return value

    def text(self, name: str = "body", default: Any = ...) -> str:
        """Return a text field; answers 422 if it is empty or over GitHub's limit."""
        value = str(self.field(name, default))
        if default is ... and not value.strip():
            raise ApiRefusal(422, "Validation Failed", [{"field": name, "code": "missing_field"}])
        if len(value) > MAX_BODY:
            message = f"{name} is too long (maximum is {MAX_BODY} characters)"
            raise ApiRefusal(422, "Validation Failed", [{"field": name, "code": "custom", "message": message}])
        return value

    def page(self, items: list[Json], key: str = "") -> ApiAnswer:
        """Return one page of a list, with GitHub's Link header; ``key`` if the list is wrapped in an object."""
        size = min(max(int(self.query.get("per_page", 30)), 1), 100)
        number = max(int(self.query.get("page", 1)), 1)
        page = items[(number - 1) * size : number * size]
        body: Any = {"total_count": len(items), key: page} if key else page
        return ApiAnswer(body=body, headers=self.link(page=number + 1) if number * size < len(items) else {})

    def link(self, **query: object) -> dict[str, str]:
        """Return the Link header to the next page, which this query asks for."""
        address = f"{self.base}{self.path}?{urlencode({**self.query, **query})}"
        return {"Link": f'<{address}>; rel="next"'}


Respond = Callable[[ApiCall], ApiAnswer]


@dataclass(frozen=True)
class Route:
    """One operation.

    ``needs`` is ``permission:level``, ``app`` for a JWT, ``user`` for a person's token; empty: none.
    """

    method: str
    path: str
    respond: Respond
    needs: str = ""
