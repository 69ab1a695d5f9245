"""``bouncer serve``: web server and worker in one command, each in a process that is started again if it dies.

The processes are forked from this one after everything is imported: they share that memory, and start at once.
"""

from __future__ import annotations

import ctypes
import gc
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import click
import structlog
from sqlalchemy.exc import DBAPIError

from bot.cli import web, worker
from bot.cli.running import load_settings, observe, opened_database, settings_options, stopped
from bot.core.errors import DatabaseAway, OperatorError

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

    from bot.settings import Settings

#: How often the worker looks whether set-up is done, seconds.
LOOK_SECONDS = 0.5
#: How long children are given to end, seconds; they drain what they have begun.
STOP_SECONDS = 28.0
#: A process that lived for this long is started again at once, seconds; others wait longer each time.
STABLE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 30.0
#: A database that was away is looked for at least this often, seconds.
AWAY_PAUSE_SECONDS = 4.0
#: What a process ends with whose settings are wrong: to start it again would not help.
WRONG_USAGE = 2
#: What a process ends with that cannot reach the database: the parent could, so this passes (EX_TEMPFAIL).
AWAY = 75

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_PR_SET_PDEATHSIG = 1
#: Printed before set-up: the browser can go ahead while the operator gets a key.
_NO_MODEL = """BOUNCER_MODEL is not set. You can create the app now; deliveries are recorded, but nothing is
judged or posted until you name a model and start `bouncer serve` again.
"""

_log = structlog.get_logger(__name__)


@click.command()
@worker.concurrency_option
@worker.apart_option
@settings_options
def command(concurrency: int, apart: float, **values: Any) -> int:
    """Receive webhook deliveries and work on them."""
    from bot.pipeline.store import migrate

    # Traces are sent by a thread, which would not survive the fork: each child starts its own.
    settings = load_settings(traces=False, **values)
    web.check_address(settings)
    if not settings.needs_setup:
        web.check(settings)
        worker.check_app(settings)
    if settings.bouncer_model or not settings.needs_setup:
        worker.check_thinking(settings)
    database = opened_database(settings)
    migrate(database)
    database.close()
    link = secrets.token_urlsafe(32) if settings.needs_setup else None
    if link:
        web.show_link(settings, link)
    stop = stopped()
    children = [Child("web", _web, (settings, link))]
    if settings.bouncer_model:
        children.append(Child("worker", _worker, (settings, concurrency, apart)))
    else:
        click.echo(_NO_MODEL, err=True)
    _import_all()
    return supervise(children, stop)


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
    # Only glibc has it: 5 MB that imports freed go back before each child inherits them.
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


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


class Child:
    """A function that runs in a process of its own, for as long as the parent lives."""

    def __init__(self, name: str, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.name = name
        self._target = target
        self._arguments = arguments
        self._failures = 0
        self._started = 0.0
        self._next = 0.0
        self.process: ForkProcess | None = None

    def start(self) -> None:
        """Fork it. No thread runs here and no connection is open, so that nothing is inherited but memory."""
        self._started = time.monotonic()
        self.process = get_context("fork").Process(
            target=_run, args=(os.getpid(), self._target, self._arguments), name=f"bouncer-{self.name}"
        )
        # A signal that arrives before the child has its own handlers waits until then.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def look(self) -> int | None:
        """Start it again if it died, after a pause; its exit code where that would not help."""
        if self.process is None or self.process.is_alive():
            return None
        code = self.process.exitcode
        if code == WRONG_USAGE:
            return code
        now = time.monotonic()
        if not self._next:
            self._failures = 0 if now - self._started > STABLE_SECONDS else self._failures + 1
            longest = AWAY_PAUSE_SECONDS if code == AWAY else LONGEST_PAUSE_SECONDS
            pause = min(longest, 2.0 ** (self._failures - 1)) if self._failures > 1 else 0.0
            self._next = now + pause
            _log.error("process_died", process=self.name, exit_code=code, again_in=pause)
        if now >= self._next:
            self._next = 0.0
            self.start()
        return None

    def stop(self, deadline: float) -> None:
        """Wait for it until ``deadline``, then kill it."""
        if self.process is None:
            return
        self.process.join(max(0.0, deadline - time.monotonic()))
        if self.process.is_alive():
            _log.error("process_killed", process=self.name)
            self.process.kill()
            self.process.join()


def supervise(children: Sequence[Child], stop: threading.Event) -> int:
    """Keep the children up until ``stop`` is set or one of them cannot start; the exit code."""
    for child in children:
        child.start()
    code = None
    while not stop.wait(0.2) and code is None:
        code = next((code for child in children if (code := child.look()) is not None), None)
    for child in children:
        if child.process is not None and child.process.is_alive():
            child.process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for child in children:
        child.stop(deadline)
    return code or 0


def _run(parent: int, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Run ``target`` in the child. The child ends with its parent, even if that is killed."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return
    try:
        target(*arguments)
    except (DatabaseAway, DBAPIError) as error:
        _log.error("database_away", why=str(error).partition("\n")[0])
        sys.exit(AWAY)
    except OperatorError as error:
        click.echo(f"bouncer: {error}", err=True)
        sys.exit(WRONG_USAGE)
