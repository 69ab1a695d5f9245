"""``bouncer web``: the web server alone, and the one-time link that opens set-up."""

from __future__ import annotations

import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bot.cli.running import configure_logs, load_settings, prepare_database, settings_options
from bot.core.errors import SettingsError

if TYPE_CHECKING:
    from bot.github.registration import Credentials
    from bot.settings import Settings
    from bot.web.app import Pages
    from bot.web.server import Server
    from bot.web.setup import Choice


#: One takes 40 deliveries a second with a p99 below 60 ms; each further one takes some 40 MB.
PROCESSES = 1


@click.command()
@click.option("--processes", type=click.IntRange(1, 32), help=f"Server processes.  [default: {PROCESSES}]")
@settings_options
def command(processes: int | None, **values: Any) -> None:
    """Receive webhook deliveries and record them for workers."""
    settings = load_settings(**values)
    check(settings)
    check_address(settings)
    server(settings, processes or PROCESSES).run()


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
    from bot.cli.dashboard import dashboard_pages, metrics_readers
    from bot.settings import LiveSettings
    from bot.web.app import Backend, create_app
    from bot.web.public import blueprint
    from bot.web.server import Server

    prepare_database(settings)
    present, readers = LiveSettings(settings), metrics_readers(settings)
    dashboard = dashboard_pages(settings)
    next_step = "To open the dashboard, set BOUNCER_ADMIN_PASSWORD or BOUNCER_ADMINS and start again."
    if link is not None:
        next_step = "To set it up, open the link that is shown in the terminal."
    more = (lambda backend: blueprint("" if dashboard else next_step), *dashboard)
    if link is not None:
        more = (*more, *setup_pages(settings, link))
    return Server(
        lambda: create_app(
            Backend(settings.database_url, present.withheld).warm_up(),
            present.webhook_secrets,
            more,
            trusted_proxies=settings.bouncer_trust_proxy,
            readers=readers,
        ),
        settings.host,
        settings.port,
        processes=processes,
        ready=partial(show_link, settings, link) if link else None,
    )


def show_link(settings: Settings, link: str) -> None:
    """Print the one-time link to set-up; ``link`` is its secret part."""
    host = "localhost" if settings.host in ("0.0.0.0", "::", "127.0.0.1") else settings.host  # noqa: S104
    base = settings.bouncer_public_url or f"http://{host}:{settings.port}"
    click.echo(
        f"No GitHub App is set up yet. Open this link, it works once:\n\n  {base}/setup?link={link}\n", err=True
    )


def setup_pages(settings: Settings, link: str) -> tuple[Pages, ...]:
    from bot.github.registration import convert
    from bot.web.setup import Addresses, Guard, Setup, blueprint

    setup = Setup(
        guard=Guard(link),
        default=Addresses(api_url=settings.github_api_url, web_url=settings.github_web_url),
        public_url=settings.bouncer_public_url,
        convert=convert,
        keep=lambda credentials, choice: keep(settings, credentials, choice),
        owner=settings.bouncer_admins.partition(",")[0].strip().removeprefix("org:"),
        dashboard=bool(settings.bouncer_admin_password),
    )
    return (lambda backend: blueprint(setup),)


def keep(settings: Settings, credentials: Credentials, choice: Choice) -> None:
    """Store or print the App's credentials, as the operator chose. Raises SettingsError."""
    from bot.github.registration import store

    credentials = credentials.model_copy(update={"mode": choice.mode})
    if choice.keep == "terminal":
        click.echo(f"\n{credentials.environment()}\n")
        return
    store(settings.bouncer_data_dir, credentials)
    # Logs must not show the new secrets either.
    configure_logs(settings.log_level, settings.completed().secrets)
