"""Issues and pull requests by their address on GitHub: read over the API, judged as they stand, never written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bot.cli.files import Judging, answered
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
    """Whether an argument is an address and no file."""
    return text is not None and text.startswith(("http://", "https://"))


def _place(url: str, settings: Settings) -> tuple[str, int]:
    """Repository and number of what an address names; raises OperatorError where it is none of this GitHub's."""
    web_url = settings.github_web_url
    found = _PLACE.fullmatch(url[len(web_url) :]) if url.lower().startswith(web_url.lower() + "/") else None
    if found is None:
        raise OperatorError(
            f"{url} is no issue or pull request on {web_url} (GITHUB_WEB_URL, with GITHUB_API_URL beside it)"
        )
    return found["repository"], int(found["number"])


def repository(text: str, settings: Settings) -> str:
    """``owner/name`` of an argument that may be the repository's address; raises OperatorError."""
    name = text.removeprefix(settings.github_web_url).strip("/")
    if not _REPOSITORY.fullmatch(name) or name.endswith(("/.", "/..")):
        raise OperatorError(f"{text!r} is not of the form OWNER/REPO")
    return name


@contextmanager
def reached(settings: Settings, name: str, observe: Observe | None = None) -> Iterator[Access]:
    """Access to a repository, with errors that say in one line what is missing."""
    from bot import app

    try:
        with app.access(settings, name, observe) as found:
            yield found
    except NotFound as error:
        raise OperatorError(f"{name}: {error}{_without(settings)}") from None
    except ForgeError as error:
        raise OperatorError(f"{name}: {error}") from None


def _without(settings: Settings) -> str:
    if settings.github_token is not None:
        return ". Is it spelled right, and may GITHUB_TOKEN read it?"
    if not settings.needs_setup:
        return ". Is it spelled right, and is the App installed there?"
    return ". Is it spelled right? What is private needs GITHUB_TOKEN"


def decide_at(task: Task, url: str, judging: Judging) -> Decision:
    """What the live handler of ``task`` makes of what stands at an address, as if it had come in just now."""
    from bot import app

    environment = judging.settings()
    environment.check_model()
    name, number = _place(url, environment)
    with reached(environment, name) as access:
        about = access.forge.about()
        event = (_on_issue if task == "triage" else _on_pull)(access.forge, about, number, url)
        services = app.offline_services(environment, access.forge, configured(access.forge, about, judging))
        return answered(task, event, services, judging.config or f"the bouncer.yml of {name}")


def configured(forge: GitHubForge, about: Repository, judging: Judging) -> RepoConfig:
    """The command's own bouncer.yml, or that of the repository; the options on top. Raises OperatorError."""
    from bot import app
    from bot.pipeline.readings import configuration

    if judging.config is not None:
        return app.repo_config(judging.config, judging.overrides)
    found, problems = configuration(forge, about)
    if problems:
        raise OperatorError(f"{about.full_name}: {problems[0]}")
    return app.laid_over(found, judging.overrides)


def _on_issue(forge: Forge, about: Repository, number: int, url: str) -> RepositoryEvent:
    from bot.core.events import IssueReopened

    issue = forge.issue(number)
    if issue.is_pull_request:
        raise OperatorError(f"{url} is a pull request, not an issue: ask `bouncer verify` or `bouncer review`")
    # Read with what was answered below it, whether it is still open or not.
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
