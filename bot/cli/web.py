"""``bouncer web``: the web server alone, with the dashboard, and the one-time link that opens set-up."""

from __future__ import annotations

import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bot.cli.running import configure_logs, load_settings, prepare_database, settings_options
from bot.core.errors import ForgeError, OperatorError, SettingsError, TransientError

if TYPE_CHECKING:
    from bot.github.oauth import GitHubLogin
    from bot.github.protocol import OpenPull
    from bot.github.registration import Credentials
    from bot.settings import Settings
    from bot.web.app import Pages
    from bot.web.server import Server
    from bot.web.setup import Choice


@click.command()
# One takes 40 deliveries a second with a p99 below 60 ms; each further one takes some 40 MB.
@click.option("--processes", type=click.IntRange(1, 32), default=1, show_default=True, help="Server processes.")
@settings_options
def command(processes: int, **values: Any) -> None:
    """Receive webhook deliveries and record them for workers."""
    settings = load_settings(**values)
    check(settings)
    check_address(settings)
    server(settings, processes).run()


def check(settings: Settings) -> None:
    """Refuse to start without a webhook secret or a model. Raises SettingsError."""
    if not settings.webhook_secrets:
        raise SettingsError(
            "GITHUB_WEBHOOK_SECRET is not set: deliveries cannot be verified without it; to register a new App, "
            "start `bouncer serve`"
        )
    settings.check_model()


def check_address(settings: Settings) -> None:
    """Check that the address is free before anything starts. Raises SettingsError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise SettingsError(
                f"HOST, PORT: cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
            ) from None


def server(settings: Settings, processes: int = 1, link: str | None = None) -> Server:
    """Return the server, which answers requests that are under way when it is ended.

    ``link`` opens set-up, whose state lives in one process.
    """
    from bot.web.app import Backend, create_app
    from bot.web.public import blueprint
    from bot.web.server import Server

    prepare_database(settings)
    signing = _Signing(settings)
    dashboard = dashboard_pages(settings)
    next_step = "To open the dashboard, set BOUNCER_ADMIN_PASSWORD or BOUNCER_ADMINS and start again."
    if link is not None:
        next_step = "To set it up, open the link that is shown in the terminal."
    more = (lambda backend: blueprint("" if dashboard else next_step), *dashboard)
    if link is not None:
        more = (*more, *setup_pages(settings, link, signing))
    return Server(
        lambda: create_app(
            settings,
            Backend(settings.database_url, lambda: signing.withheld).warm_up(),
            lambda: signing.webhook_secrets,
            more,
        ),
        settings.host,
        settings.port,
        processes=processes,
        ready=partial(show_link, settings, link) if link else None,
    )


class _Signing:
    """The secrets that sign deliveries, and what must not be stored. Set-up brings them while the server runs."""

    def __init__(self, settings: Settings) -> None:
        self.use(settings)

    def use(self, settings: Settings) -> None:
        # Computed once: the first is asked for at every delivery, the second at every statement.
        self.webhook_secrets, self.withheld = settings.webhook_secrets, settings.withheld


def show_link(settings: Settings, link: str) -> None:
    """Print the one-time link to set-up; ``link`` is its secret part."""
    host = "localhost" if settings.host in ("0.0.0.0", "::", "127.0.0.1") else settings.host  # noqa: S104
    base = settings.bouncer_public_url or f"http://{host}:{settings.port}"
    click.echo(
        f"No GitHub App is set up yet. Open this link, it works once:\n\n  {base}/setup?link={link}\n", err=True
    )


def setup_pages(settings: Settings, link: str, signing: _Signing) -> tuple[Pages, ...]:
    from bot.web.setup import Guard, Setup, blueprint

    setup = Setup(Guard(link), settings, partial(keep, settings, signing))
    return (lambda backend: blueprint(setup),)


def keep(settings: Settings, signing: _Signing, credentials: Credentials, choice: Choice) -> None:
    """Store or print the App's credentials, as the operator chose. Raises SettingsError."""
    from bot.github.registration import store

    credentials = credentials.model_copy(update={"mode": choice.mode})
    if choice.keep == "terminal":
        click.echo(f"\n{credentials.environment()}\n")
        return
    store(settings.bouncer_data_dir, credentials)
    completed = settings.completed()
    signing.use(completed)
    # Logs must not show the new secrets either.
    configure_logs(settings.log_level, completed.secrets)


def dashboard_pages(settings: Settings) -> tuple[Pages, ...]:
    """Return the pages beside the webhook: the dashboard, if a login to it is set."""
    github = _github_login(settings)
    if settings.bouncer_admin_password is None and github is None:
        return ()
    from bot.web.dashboard import DashboardSettings
    from bot.web.dashboard.pages import blueprint

    dashboard = DashboardSettings(
        server=settings,
        github=github,
        may_open_pulls=partial(_may_open_pulls, settings),
        open_pulls=partial(_open_pulls, settings),
    )
    return (partial(blueprint, dashboard),)


def _may_open_pulls(settings: Settings, repository: str) -> bool:
    """Return True if the App was granted what draft pull requests need; False if GitHub does not answer."""
    from bot.app import build_app

    owner, _, name = repository.partition("/")
    try:
        with build_app(settings.completed()) as github:
            return github.installation_for(owner, name).permissions.get("contents") == "write"
    except (ForgeError, SettingsError, TransientError):
        return False


#: Pull requests on the dashboard's page.
_MAX_PULLS = 200


def _open_pulls(settings: Settings, repository: str) -> tuple[OpenPull, ...]:
    from bot.app import access

    try:
        with access(settings.completed(), repository) as granted:
            return granted.forge.open_pulls(_MAX_PULLS)
    except (ForgeError, TransientError) as error:
        raise OperatorError(str(error)) from None


def _github_login(settings: Settings) -> GitHubLogin | None:
    """Return the login with GitHub; None if it has no users, or if the App is not set up yet.

    Raises SettingsError if it has users and a setting for it is missing.
    """
    if not settings.bouncer_admins or settings.needs_setup:
        return None
    from bot.github.oauth import GitHubLogin
    from bot.settings import reveal

    secret = reveal(settings.github_app_client_secret)
    if not settings.github_app_client_id or not secret:
        raise SettingsError(
            "BOUNCER_ADMINS needs GITHUB_APP_CLIENT_ID and GITHUB_APP_CLIENT_SECRET, to log in with"
        )
    return GitHubLogin(
        client_id=settings.github_app_client_id,
        client_secret=secret,
        web_url=settings.github_web_url,
        api_url=settings.github_api_url,
    )
