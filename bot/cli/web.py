"""``bouncer web``: the web server alone."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import click

from bot.cli.options import settings_options
from bot.cli.running import load_settings
from bot.errors import SettingsError

if TYPE_CHECKING:
    from bot.settings import Settings


@click.command()
@click.option("--processes", type=click.IntRange(1, 32), help="Server processes; 1 on SQLite, else 2.")
@settings_options
def command(processes: int | None, **values: Any) -> None:
    """Accept webhook deliveries and record them; workers do the rest."""
    settings = load_settings(**values)
    check(settings)
    serve(settings, processes)


def check(settings: Settings) -> None:
    """Find out before anything starts what would keep the server from its work; raises SettingsError."""
    if not settings.webhook_secrets:
        raise SettingsError("GITHUB_WEBHOOK_SECRET is not set: without it nobody could tell who sends deliveries")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise SettingsError(
                f"HOST, PORT: cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
            ) from None


def serve(settings: Settings, processes: int | None) -> None:
    """Serve until SIGTERM or SIGINT; what is being answered then is answered."""
    from bot.ledger import migrate, open_database
    from bot.web.app import Backend, create_app
    from bot.web.server import Server
    from bot.wiring import pages

    database = open_database(settings.database_url)
    migrate(database)
    # Connections must not be carried through a fork.
    database.close()
    secrets = settings.webhook_secrets
    Server(
        lambda: create_app(Backend(settings.database_url), lambda: secrets, pages(settings)),
        settings.host,
        settings.port,
        processes=processes or (1 if database.is_sqlite else 2),
    ).run()
