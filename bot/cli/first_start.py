"""A start without credentials: a link for the browser, and a worker that waits until set-up is done."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from flask import Blueprint

    from bot.forge.github.credentials import Credentials
    from bot.ops.settings import Settings
    from bot.web.app import Backend
    from bot.web.setup.flow import Choice

#: How often the worker looks whether set-up is done, seconds.
LOOK_SECONDS = 0.5


def show_link(settings: Settings) -> str:
    """Make the one-time link, show it in the terminal, and return its secret part."""
    link = secrets.token_urlsafe(32)
    host = "localhost" if settings.host in ("0.0.0.0", "::", "127.0.0.1") else settings.host  # noqa: S104
    base = settings.bouncer_public_url or f"http://{host}:{settings.port}"
    click.echo(
        f"No GitHub App is set up yet. Open this link, it works once:\n\n  {base}/setup?link={link}\n", err=True
    )
    return link


def pages(settings: Settings, link: str) -> tuple[Callable[[Backend], Blueprint], ...]:
    """Makes the set-up pages for the server that the link opens."""
    from bot.forge.github.setup import convert
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
    from bot.cli.running import configure_logs
    from bot.forge.github import credentials as stored

    if choice.keep == "terminal":
        click.echo(f"\n{credentials.environment()}\n")
        return
    stored.store(settings.bouncer_data_dir, credentials)
    # From now on logs must not show these either.
    configure_logs(settings.completed())


def awaited(settings: Settings) -> Settings:
    """The settings with credentials; waits for set-up where they are missing."""
    while settings.needs_setup:
        time.sleep(LOOK_SECONDS)
        settings = settings.completed()
    return settings
