"""``bouncer web``: the web server alone."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import click

from bot.cli import first_start
from bot.cli.options import settings_options
from bot.cli.running import load_settings, opened_database
from bot.errors import SettingsError

if TYPE_CHECKING:
    from bot.ops.settings import Settings

PROCESSES = 2


@click.command()
@click.option("--processes", type=click.IntRange(1, 32), help=f"Server processes.  [default: {PROCESSES}]")
@settings_options
def command(processes: int | None, **values: Any) -> None:
    """Accept webhook deliveries and record them; workers do the rest."""
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
    from bot.ops.settings import Present
    from bot.store import migrate
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
        processes, more = 1, (*more, *first_start.pages(settings, link))
    Server(
        lambda: create_app(
            Backend(settings.database_url, present.withheld),
            present.webhook_secrets,
            more,
            trust_proxy=settings.bouncer_trust_proxy,
            readers=readers,
        ),
        settings.host,
        settings.port,
        processes=processes or PROCESSES,
    ).run()
