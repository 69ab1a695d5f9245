"""The simulated GitHub as tests and the demonstration use it: its set-up, its faults, and its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Literal

from bot.simgithub import registry
from bot.simgithub.faults import InjectedFault, Kind
from bot.simgithub.hooks import Hooks
from bot.simgithub.operations import Operations
from bot.simgithub.people import People, Text, as_bytes
from bot.simgithub.render import Renderer
from bot.simgithub.server import PREFIX, ApiServer, RecordedRequest
from bot.simgithub.state import App, InstallationState, Permission, RepositoryState, World

#: What Bouncer's own app asks for.
PERMISSIONS = {
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "merge_queues": "read",
}
#: What the workflow in the documentation asks for.
WORKFLOW = {"contents": "read", "issues": "write", "pull_requests": "write", "checks": "write"}
EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "check_run",
    "check_suite",
    "push",
    "repository",
    "merge_group",
)


class SimulatedGitHub(People):
    """A GitHub that runs within a ``with`` block. People are created when they are first mentioned.

    Every action that GitHub would announce is delivered, signed, to the apps that are installed and subscribed.
    """

    def __init__(self) -> None:
        world = World()
        render = Renderer(world, "", "")
        self._hooks = Hooks(world, render)
        super().__init__(Operations(world, render, self._hooks))
        self._server = ApiServer(self._operations)
        self.web_url = f"http://127.0.0.1:{self._server.port}"
        self.api_url = self.web_url + PREFIX
        render.api, render.web = self.api_url, self.web_url

    def __enter__(self) -> SimulatedGitHub:
        self._server.start()
        self._hooks.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hooks.stop()
        self._server.stop()

    # Set-up

    def create_app(
        self,
        name: str = "bouncer",
        *,
        owner: str = "octo",
        webhook_url: str = "",
        webhook_secret: str = "",
        events: Sequence[str] = EVENTS,
        permissions: Mapping[str, str] = PERMISSIONS,
    ) -> App:
        """Register an app and return it, with its key and secrets."""
        manifest = {
            "name": name,
            "hook_attributes": {"url": webhook_url},
            "webhook_secret": webhook_secret,
            "default_events": list(events),
            "default_permissions": dict(permissions),
        }
        with self.world.lock:
            return registry.create_app(self.world, manifest, self.world.user(owner))

    def create_repository(self, name: str, files: Text | None = None, *, private: bool = False) -> RepositoryState:
        """Create a repository with one commit on its default branch."""
        owner, _, short = name.partition("/")
        with self.world.lock:
            repository = RepositoryState(self.world.next_id(), self.world.user(owner), short, private)
            self.world.repositories[name] = repository
            tree = files or {"README.md": f"# {short}\n"}
            self._operations.push(repository, repository.default_branch, as_bytes(tree), repository.owner)
            return repository

    def install(self, app: App, *repositories: str) -> InstallationState:
        """Install an app on repositories of one owner (all of its own if none is named)."""
        with self.world.lock:
            names = repositories or tuple(
                name for name, repository in self.world.repositories.items() if repository.owner is app.owner
            )
            members = [self.world.repositories[name] for name in names]
            account = members[0].owner if members else app.owner
            installation = registry.install(self.world, app, account, members)
            self._operations.installed(installation, account)
        self.settle()
        return installation

    def suspend(self, installation: InstallationState, *, suspended: bool = True) -> None:
        """Suspend an installation as its account does, or end that."""
        with self.world.lock:
            self._operations.suspend(installation, installation.account, suspended)
        self.settle()

    def token(self, repository: str, permissions: Mapping[str, str] = WORKFLOW) -> str:
        """Return a workflow's token for one repository, which acts as ``github-actions[bot]``."""
        with self.world.lock:
            actions = next(
                (candidate for candidate in self.world.apps.values() if candidate.slug == "github-actions"), None
            )
            actions = actions or self.create_app("github-actions", owner="github", permissions=permissions)
            owner = self.world.repositories[repository].owner
            # An installation that gets no events.
            silent = InstallationState(self.world.next_id(), actions, owner, [repository], permissions, ())
            return registry.create_token(self.world, silent, [repository], permissions).value

    def grant(self, repository: str, login: str, role: Permission) -> None:
        with self.world.lock:
            self.world.user(login)
            self.world.repositories[repository].roles[login] = role

    def join(self, organization: str, login: str, state: Literal["active", "pending"] = "active") -> None:
        """Make a person a member of an organisation, or invite them."""
        with self.world.lock:
            self.world.user(login)
            self.world.members[organization.lower(), login] = state

    def sign_in(self, login: str) -> None:
        """Make this person the one that opens pages."""
        with self.world.lock:
            self.world.user(login)
            self._server.pages.owner = login

    def advance(self, **time: float) -> None:
        """Move the simulated clock ahead, by the arguments of a ``timedelta``."""
        with self.world.lock:
            self.world.ahead += timedelta(**time)

    def fail(
        self,
        kind: Kind,
        method: str = "",
        path: str = "",
        *,
        times: int = 1,
        wait: float = 1.0,
        location: str = "",
        after: int = 0,
    ) -> InjectedFault:
        """Let the next ``times`` requests with that method and a path that matches the pattern fail.

        ``after`` such requests pass first; ``wait`` is what a limit asks for or a slow answer takes, seconds.
        """
        fault = InjectedFault(kind, method, path, times, wait, location, after)
        with self.world.lock:
            self._server.faults.append(fault)
        return fault

    # State

    def comments(self, repository: str, number: int, *, by: str = "") -> list[str]:
        """Return the comments of a conversation, oldest first; only those of one account if it is named."""
        with self.world.lock:
            comments = self.find(repository, number).comments
            return [comment.body for comment in comments if by in ("", comment.author.login)]

    def labels(self, repository: str, number: int) -> list[str]:
        with self.world.lock:
            return list(self.find(repository, number).labels)

    @property
    def requests(self) -> list[RecordedRequest]:
        with self.world.lock:
            return list(self._server.requests)

    @property
    def leaked_credentials(self) -> list[str]:
        """Return the paths on the archive host that were requested with credentials; there must be none."""
        with self.world.lock:
            return list(self._server.pages.leaked)
