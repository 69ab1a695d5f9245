"""``bouncer serve``: web server and worker in one command, each in a process that is started again if it dies.

The processes are forked from this one after everything is imported: they share that memory, and start at once.
Then this one becomes ``supervisor``. What it starts again is this command with the option ``--child``.
"""

from __future__ import annotations

import gc
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click
import structlog
from sqlalchemy.exc import DBAPIError

from bot.cli import supervisor, web, worker
from bot.cli.running import load_settings, observe, prepare_database, return_free_memory, settings_options
from bot.core.errors import DatabaseAway, OperatorError

if TYPE_CHECKING:
    from bot.settings import Settings

#: How often the worker looks whether set-up is done, seconds.
LOOK_SECONDS = 0.5
#: The variable that carries the secret part of the link to set-up: it stays the same if the web server dies.
_LINK = "_BOUNCER_SETUP_LINK"
#: Printed before set-up: the browser can go ahead while the operator gets a key.
_NO_MODEL = """BOUNCER_MODEL is not set. You can create the app now; deliveries are recorded, but nothing is
judged or posted until you name a model and start `bouncer serve` again.
"""

_log = structlog.get_logger(__name__)


@click.command()
@worker.concurrency_option
@worker.apart_option
@click.option("--child", type=click.Choice(["web", "worker"]), hidden=True)
@settings_options
def command(concurrency: int, apart: float, child: str | None, **values: Any) -> int:
    """Receive webhook deliveries and work on them."""
    # Traces are sent by a thread, which would not survive the fork: each child starts its own.
    settings = load_settings(traces=False, **values)
    if child is None:
        _prepare(settings)
        if settings.needs_setup:
            os.environ[_LINK] = secrets.token_urlsafe(32)
            web.show_link(settings, os.environ[_LINK])
        if not settings.bouncer_model:
            click.echo(_NO_MODEL, err=True)
    link = os.environ.get(_LINK) if settings.needs_setup else None
    children: dict[str, Callable[[], None]] = {"web": partial(_web, settings, link)}
    if settings.bouncer_model:
        children["worker"] = partial(_worker, settings, concurrency, apart)
    if child is None:
        _import_all()
        supervise(children)
    return _run(children[child])


def _prepare(settings: Settings) -> None:
    """Check what can be wrong before anything is started, and bring the database up to date."""
    web.check_address(settings)
    if not settings.needs_setup:
        web.check(settings)
        worker.check_app(settings)
    if settings.bouncer_model or not settings.needs_setup:
        worker.check_thinking(settings)
    prepare_database(settings)


def _import_all() -> None:
    """Import what the children need, once for all of them, and keep its pages shared."""
    import bot.pipeline.publisher
    import bot.pipeline.runner
    import bot.pipeline.worker
    import bot.web.app
    import bot.web.server  # noqa: F401

    gc.collect()
    # A collection in a child would otherwise write to every object, and so copy every page.
    gc.freeze()
    # 5 MB that imports freed go back before each child inherits them.
    return_free_memory()


def _web(settings: Settings, link: str | None) -> None:
    observe(settings)
    web.server(settings, link=link).run_here()


def _worker(settings: Settings, concurrency: int, apart: float) -> None:
    from bot.pipeline.worker import Pace

    while settings.needs_setup:
        time.sleep(LOOK_SECONDS)
        settings = settings.completed()
    observe(settings)
    worker.run(settings, Pace(concurrency=concurrency, apart=apart))


def supervise(children: Mapping[str, Callable[[], None]]) -> NoReturn:
    """Fork the children and go on as the supervisor.

    No thread runs here and no connection is open, so that nothing is inherited but memory.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, supervisor.SIGNALS)
    pids = {name: supervisor.fork(partial(_run, child)) for name, child in children.items()}
    program = [sys.executable, "-I", "-S", supervisor.__file__, json.dumps(pids), *sys.orig_argv[1:]]
    os.execv(sys.executable, program)  # noqa: S606 - the same interpreter


def _run(child: Callable[[], None]) -> int:
    """Run a child and return its exit code."""
    try:
        child()
    except (DatabaseAway, DBAPIError) as error:
        # The parent could reach it, so a new start helps.
        _log.error("database_away", why=str(error).partition("\n")[0])
        return 1
    except OperatorError as error:
        click.echo(f"bouncer: {error}", err=True)
        return supervisor.WRONG_USAGE
    except Exception:  # noqa: BLE001 - the supervisor starts it again
        # What is no wrong setting may be over at the next start; the other child must not end with it.
        _log.exception("process_failed")
        return 1
    return 0
