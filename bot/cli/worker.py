"""``bouncer worker``: a worker alone."""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from bot.cli.numbers import Finite
from bot.cli.running import load_settings, prepare_database, return_free_memory, settings_options, stopped
from bot.core.errors import SettingsError

if TYPE_CHECKING:
    from bot.pipeline.worker import Pace
    from bot.settings import Settings

_log = structlog.get_logger(__name__)


concurrency_option = click.option(
    "--concurrency", type=click.IntRange(1, 64), default=8, show_default=True, help="Jobs at once."
)
#: GitHub asks for a second between two writes; a simulated one does not.
apart_option = click.option("--apart", type=Finite(0, 60), default=1.0, hidden=True)
#: How long a worker's heartbeat may be missing before the worker is ended, seconds.
FROZEN_SECONDS = 60.0
#: Between two returns of free memory to the system, seconds.
TRIM_SECONDS = 30.0
#: How the names of everything begin that Bouncer, or the volume itself, puts into a data folder.
_OURS = (
    "archives", "backlog", "bouncer.db", "calibration", "credentials.json", ".credentials.json", "environments",
    "lost+found", "models",
)  # fmt: skip


@click.command()
@concurrency_option
@apart_option
@settings_options
def command(concurrency: int, apart: float, **values: Any) -> None:
    """Work on recorded deliveries: decide and post."""
    from bot.pipeline.worker import Pace

    settings = load_settings(**values)
    check_app(settings)
    check_thinking(settings)
    prepare_database(settings)
    run(settings, Pace(concurrency=concurrency, apart=apart))


def check_app(settings: Settings) -> None:
    """Refuse to start without a usable id and key of a GitHub App; raises SettingsError."""
    from bot.app import build_app

    build_app(settings).close()


def check_thinking(settings: Settings) -> None:
    """Refuse to start without a model that can be asked and prompts to ask it; raises SettingsError."""
    from bot.app import build_models, prompts

    settings.check_model()
    if settings.bouncer_notify_url and not settings.bouncer_notify_secret:
        raise SettingsError(
            "BOUNCER_NOTIFY_SECRET is not set: without it, who gets BOUNCER_NOTIFY_URL's messages cannot tell "
            "that they come from here"
        )
    build_models(settings).build(settings.bouncer_model)
    prompts(settings)


def run(settings: Settings, pace: Pace) -> None:
    """Work until SIGTERM or SIGINT, then end the process."""
    from bot.core import tracing

    stop = stopped()
    end_if_frozen(FROZEN_SECONDS)
    threading.Thread(target=trim_memory, args=(stop,), name="memory", daemon=True).start()
    own_folder(settings.bouncer_data_dir)
    is_ours = work(settings, stop, pace)
    tracing.flush()
    sys.stderr.flush()
    # A job that does not end in time is recovered later, as after a kill.
    os._exit(0 if is_ours else 1)


def end_if_frozen(seconds: float) -> None:
    """End this process, with a traceback on stderr, if its heartbeat does not run for ``seconds``.

    What supervises the process starts it again. The timer needs no lock of the interpreter: native code that holds
    the lock stops every other thread, but not the timer.
    """

    def beat() -> None:
        while True:
            faulthandler.dump_traceback_later(seconds, exit=True)
            time.sleep(seconds / 10)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()


def trim_memory(stop: threading.Event) -> None:
    """Return free memory to the system from time to time, until ``stop`` is set.

    The many small objects that jobs allocate and free leave holes between those that stay. Objects in reference
    cycles are freed by a collection only, and Python makes a full one only when a quarter of all objects is new.
    """
    while not stop.wait(TRIM_SECONDS):
        gc.collect()
        return_free_memory()


def own_folder(folder: Path) -> None:
    """Create the data folder, or close an existing one to other users.

    A folder with anything that is not ours, such as /var or /tmp, is left as it is.
    """
    from bot.pipeline.store.database import close_to_others

    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = [entry.name for entry in folder.iterdir()]
        if names and all(name.startswith(_OURS) for name in names):
            close_to_others(folder)


def work(settings: Settings, stop: threading.Event, pace: Pace, day_seconds: float = 86_400.0) -> bool:
    """Work until ``stop`` is set. Return False if another worker took the place.

    A database that is away is waited for. ``day_seconds`` is a day of reminders, shorter in tests. Raises
    SettingsError before anything starts.
    """
    from bot.app import Live, notices
    from bot.pipeline.inbox import Inbox
    from bot.pipeline.publisher import Publisher
    from bot.pipeline.queue import Queue
    from bot.pipeline.runner import Runner
    from bot.pipeline.store import Ledger, await_database
    from bot.pipeline.store.counters import CounterBuffer
    from bot.pipeline.worker import Reconciler, Worker

    database = await_database(settings.database_url, stop)
    if database is None:
        return True
    # Set-up is over where a worker runs: they are read once, not at every statement.
    database.withheld = partial(tuple, settings.withheld)
    ledger, queue, counts = Ledger(database), Queue(database), CounterBuffer()
    live = Live(settings, ledger, counts.observe)

    def check_models() -> None:
        if live.check_models() and (count := queue.bring_forward()):
            _log.info("jobs_brought_forward", count=count)

    # Beside the work: a provider that does not answer holds up no start.
    threading.Thread(target=check_models, name="models", daemon=True).start()
    reconciler = Reconciler(live.app, database)
    threading.Thread(target=reconciler.run, args=(stop,), name="reconciler", daemon=True).start()
    try:
        inbox = Inbox(database, queue, day_seconds=day_seconds)
        runner = Runner(
            queue,
            inbox,
            ledger,
            live.services_for,
            Publisher(ledger.postings, settings.secrets),
            paced=pace.apart > 0,
            paused=settings.bouncer_paused,
            notices=notices(settings, ledger),
        )
        # What exists now lives as long as the worker: trim_memory, which stops all threads, does not look at it.
        gc.collect()
        gc.freeze()
        return Worker(ledger, queue, inbox, runner, counts, pace, settings.bouncer_keep_days).run(stop)
    finally:
        live.close()
