"""``bouncer serve``: web server and worker in one command, each in a process that is started again if it dies."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import click

from bot.cli import web, worker
from bot.cli.running import configure_logs, load_settings, observe, opened_database, settings_options
from bot.cli.supervise import Child, supervise

if TYPE_CHECKING:
    from bot.ops.settings import Settings


#: Said where set-up comes first: the browser can go ahead while somebody gets a key.
_NO_MODEL = """BOUNCER_MODEL is not set. You can create the app now; deliveries are recorded, but nothing is
judged or posted until you name a model and start `bouncer serve` again.
"""


@click.command()
@click.option("--concurrency", type=click.IntRange(1, 64), default=8, show_default=True, help="Jobs at once.")
@worker.apart_option
@settings_options
def command(concurrency: int, apart: float, **values: Any) -> int:
    """Receive webhook deliveries and work on them."""
    from bot.store import migrate

    settings = load_settings(**values)
    web.check_address(settings)
    if not settings.needs_setup:
        web.check(settings)
        worker.check_app(settings)
    if settings.bouncer_model or not settings.needs_setup:
        worker.check_thinking(settings)
    database = opened_database(settings)
    migrate(database)
    database.close()
    link = web.show_link(settings) if settings.needs_setup else None
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    children = [Child("web", _web, (settings, link))]
    if settings.bouncer_model:
        children.append(Child("worker", _worker, (settings, concurrency, apart)))
    else:
        click.echo(_NO_MODEL, err=True)
    return supervise(children, stop)


def _web(settings: Settings, link: str | None) -> None:
    observe(settings)
    web.serve(settings, processes=None, link=link)


def _worker(settings: Settings, concurrency: int, apart: float) -> None:
    from bot.jobs.worker import Pace

    observe(settings)
    if settings.needs_setup:
        settings = web.awaited(settings)
        configure_logs(settings)
    worker.run(settings, Pace(concurrency=concurrency), apart)
