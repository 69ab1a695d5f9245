"""``bouncer web``: the web server alone. And a start without credentials: a link for the browser opens set-up."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING, Any

import click

from bot.cli.running import load_settings, opened_database, settings_options
from bot.core.errors import SettingsError

if TYPE_CHECKING:
    from bot.github.registration import Credentials
    from bot.settings import Settings
    from bot.web.app import Pages
    from bot.web.setup.flow import Choice


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
    serve(settings, processes)


def check(settings: Settings) -> None:
    """Refuse to start without a secret, and where nobody is named who judges; raises SettingsError."""
    if not settings.webhook_secrets:
        raise SettingsError("GITHUB_WEBHOOK_SECRET is not set: without it nobody could tell who sends deliveries")
    settings.check_model()


def check_address(settings: Settings) -> None:
    """Find out before anything starts whether the address is free; raises SettingsError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise SettingsError(
                f"HOST, PORT: cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
            ) from None


def serve(settings: Settings, processes: int | None, link: str | None = None) -> None:
    """Serve until SIGTERM or SIGINT; what is being answered then is answered.

    ``link`` opens set-up, whose state one process holds.
    """
    from bot.app import metrics_readers, pages
    from bot.pipeline.store import migrate
    from bot.web.app import Backend, create_app
    from bot.web.server import Server
    from bot.web.setup.pages import landing

    database = opened_database(settings)
    migrate(database)
    # Connections must not be carried through a fork.
    database.close()
    present, readers = Present(settings), metrics_readers(settings)
    more = (lambda backend: landing(), *pages(settings))
    if link is not None:
        processes, more = 1, (*more, *setup_pages(settings, link))
    Server(
        lambda: create_app(
            Backend(settings.database_url, present.withheld).warm_up(),
            present.webhook_secrets,
            more,
            trusted_proxies=settings.bouncer_trust_proxy,
            readers=readers,
        ),
        settings.host,
        settings.port,
        processes=processes or PROCESSES,
    ).run()


def show_link(settings: Settings) -> str:
    """Make the one-time link, show it in the terminal, and return its secret part."""
    link = secrets.token_urlsafe(32)
    host = "localhost" if settings.host in ("0.0.0.0", "::", "127.0.0.1") else settings.host  # noqa: S104
    base = settings.bouncer_public_url or f"http://{host}:{settings.port}"
    click.echo(
        f"No GitHub App is set up yet. Open this link, it works once:\n\n  {base}/setup?link={link}\n", err=True
    )
    return link


def setup_pages(settings: Settings, link: str) -> tuple[Pages, ...]:
    """Makes the set-up pages for the server that the link opens."""
    from bot.github.registration import convert
    from bot.web.setup.flow import Addresses, Guard
    from bot.web.setup.pages import Setup, blueprint

    setup = Setup(
        guard=Guard(link),
        known=Addresses(api_url=settings.github_api_url, web_url=settings.github_web_url),
        public_url=settings.bouncer_public_url,
        convert=convert,
        keep=lambda credentials, choice: keep(settings, credentials, choice),
    )
    return (lambda backend: blueprint(setup),)


def keep(settings: Settings, credentials: Credentials, choice: Choice) -> None:
    """Store what GitHub gave, or print it, as the operator chose. Raises SettingsError."""
    from bot.cli import logs
    from bot.github.registration import store

    if choice.keep == "terminal":
        click.echo(f"\n{credentials.environment()}\n")
        return
    store(settings.bouncer_data_dir, credentials)
    # From now on logs must not show these either.
    logs.configure(settings.log_level, settings.completed().secrets)


class Present:
    """The settings as they are now: set-up in the browser completes them while the server runs."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._withheld = settings, settings.withheld

    def webhook_secrets(self) -> tuple[str, ...]:
        """Asked at every delivery: those that sign it, as soon as there are any."""
        return self._completed().webhook_secrets

    def withheld(self) -> tuple[str, ...]:
        """Asked at every statement: what must not come into the database."""
        self._completed()
        return self._withheld

    def _completed(self) -> Settings:
        if self._settings.needs_setup:
            self._settings = self._settings.completed()
            self._withheld = self._settings.withheld
        return self._settings
