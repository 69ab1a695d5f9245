"""Issues and pull requests by their address on GitHub: read over the API, judged, never written to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from bot.cli.judging import Judging, required_decision
from bot.core.errors import ForgeError, NotFound, OperatorError

if TYPE_CHECKING:
    from bot.app import Access
    from bot.core.actions import Decision, Task
    from bot.core.config import RepoConfig
    from bot.core.events import RepositoryEvent
    from bot.core.subjects import Repository
    from bot.github.http import Observe
    from bot.github.protocol import Forge
    from bot.github.reader import GitHubForge
    from bot.settings import Settings

_PLACE = re.compile(
    r"/(?P<repository>[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+)/(?:issues|pull)/(?P<number>\d{1,9})(?:[/?#].*)?"
)
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+")


def is_url(text: str | None) -> bool:
    """Return True if an argument is an address and not a file."""
    return text is not None and text.startswith(("http://", "https://"))


def _place(url: str, settings: Settings) -> tuple[str, int]:
    """Return repository and number of an address. Raises OperatorError if it is not on this GitHub."""
    web_url = settings.github_web_url
    match = _PLACE.fullmatch(url[len(web_url) :]) if url.lower().startswith(web_url.lower() + "/") else None
    if match is None:
        raise OperatorError(
            f"{url}: not the address of an issue or pull request on {web_url}; for another server set "
            "GITHUB_WEB_URL and GITHUB_API_URL"
        )
    return match["repository"], int(match["number"])


def repository(text: str, settings: Settings) -> str:
    """Return ``owner/name`` of an argument that may be the repository's address. Raises OperatorError."""
    name = text.removeprefix(settings.github_web_url).strip("/")
    if not _REPOSITORY.fullmatch(name) or name.endswith(("/.", "/..")):
        raise OperatorError(f"{text!r} is not of the form OWNER/REPO")
    return name


@contextmanager
def reached(settings: Settings, name: str, observe: Observe | None = None) -> Iterator[Access]:
    """Return access to a repository. Raises OperatorError with what is missing, in one line."""
    from bot import app

    try:
        with app.access(settings, name, observe) as granted:
            yield granted
    except NotFound as error:
        raise OperatorError(f"{name}: {error}{_without(settings)}") from None
    except ForgeError as error:
        raise OperatorError(f"{name}: {error}") from None


def _without(settings: Settings) -> str:
    if settings.github_token is not None:
        return ". Check the spelling, and that GITHUB_TOKEN can read it"
    if not settings.needs_setup:
        return ". Check the spelling, and that the App is installed there"
    return ". Check the spelling; a private repository needs GITHUB_TOKEN"


def decide_at(task: Task, url: str, judging: Judging) -> Decision:
    """Ask the live handler of ``task`` about an issue or pull request on GitHub as it is now."""
    from bot import app

    environment = judging.settings()
    environment.check_model()
    name, number = _place(url, environment)
    with reached(environment, name) as access:
        about = access.forge.about()
        event = (_on_issue if task == "triage" else _on_pull)(access.forge, about, number, url)
        services = app.offline_services(environment, access.forge, configured(access.forge, about, judging))
        return required_decision(task, event, services, judging.config or f"the bouncer.yml of {name}")


def configured(forge: GitHubForge, about: Repository, judging: Judging) -> RepoConfig:
    """Return the configuration of ``--config`` or of the repository, with the options on top.

    Mistakes in a repository's file are warnings: the same defaults apply as on a server.
    """
    from bot import app
    from bot.pipeline.readings import configuration

    if judging.config is not None:
        return app.repo_config(judging.config, judging.overrides)
    config, problems = configuration(forge, about)
    for problem in problems:
        click.echo(f"warning: {about.full_name}: .github/bouncer.yml: {problem}", err=True)
    return app.laid_over(config, judging.overrides)


def _on_issue(forge: Forge, about: Repository, number: int, url: str) -> RepositoryEvent:
    from bot.core.events import IssueReopened

    issue = forge.issue(number)
    if issue.is_pull_request:
        raise OperatorError(f"{url} is a pull request, not an issue: ask `bouncer verify` or `bouncer review`")
    # A reopened issue is read with its comments; a closed one is judged too.
    issue = issue.model_copy(update={"state": "open"})
    return IssueReopened(sender=issue.author, repository=about, issue=issue)


def _on_pull(forge: Forge, about: Repository, number: int, url: str) -> RepositoryEvent:
    from bot.core.events import PullRequestOpened

    try:
        pull = forge.pull_request(number)
    except NotFound:
        if forge.issue(number).is_pull_request:
            raise
        raise OperatorError(f"{url} is an issue, not a pull request: ask `bouncer triage`") from None
    pull = pull.model_copy(update={"state": "open", "draft": False})
    return PullRequestOpened(sender=pull.author, repository=about, pull_request=pull)
