"""``bouncer serve``: web server and worker in one command, each in a process that is started again if it dies.

The processes are forked from this one after everything is imported: they share that memory, and start at once.
Then this one becomes ``supervisor``, which only waits.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
import structlog
from sqlalchemy.exc import DBAPIError

from bot.cli import supervisor, web, worker
from bot.cli.running import (
    load_settings,
    observe,
    prepare_database,
    return_free_memory,
    settings_options,
    stopped,
)
from bot.core.errors import DatabaseAway, OperatorError

if TYPE_CHECKING:
    from bot.settings import Settings

#: How often the worker looks whether set-up is done, seconds.
LOOK_SECONDS = 0.5
#: How long all children have to run before this process becomes the supervisor, seconds.
SETTLED_SECONDS = 5.0
#: A process that lived for this long is started again at once, seconds; others wait longer each time.
STABLE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 30.0
#: A database that was away is looked for at least this often, seconds.
AWAY_PAUSE_SECONDS = 4.0
#: Exit code of a process whose settings are wrong: a new start would not help.
WRONG_USAGE = 2
#: Exit code of a process that cannot reach the database (EX_TEMPFAIL). The parent could, so a new start helps.
AWAY = 75

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
    # Traces are sent by a thread, which would not survive the fork: each child starts its own.
    settings = load_settings(traces=False, **values)
    if inherited := _State.inherited():
        link = inherited.link
    else:
        _prepare(settings)
        link = secrets.token_urlsafe(32) if settings.needs_setup else ""
        if link:
            web.show_link(settings, link)
        if not settings.bouncer_model:
            click.echo(_NO_MODEL, err=True)
    stop = stopped()
    children = [Child("web", _web, (settings, link or None))]
    if settings.bouncer_model:
        children.append(Child("worker", _worker, (settings, concurrency, apart)))
    _import_all()
    return supervise(children, stop, inherited or _State(link))


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


@dataclass
class _State:
    """The link of set-up and the children, which this process and the supervisor hand to each other."""

    link: str = ""
    children: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def inherited(cls) -> _State | None:
        """Return what the supervisor handed over; None at the first start."""
        text = os.environ.pop(supervisor.STATE, None)
        return cls(**json.loads(text)) if text else None


class Child:
    """A function that runs in a process of its own, for as long as the parent lives."""

    def __init__(self, name: str, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.name = name
        self._target = target
        self._arguments = arguments
        self._failures = 0
        self._started = 0.0
        self._next = 0.0
        self.pid = 0

    def start(self) -> None:
        """Fork it. No thread runs here and no connection is open, so that nothing is inherited but memory."""
        self._started = time.monotonic()
        parent = os.getpid()
        # A signal that arrives before the child has its own handlers waits until then.
        signal.pthread_sigmask(signal.SIG_BLOCK, supervisor.ENDINGS)
        try:
            self.pid = os.fork()
            if not self.pid:
                sys.exit(_run(parent, self._target, self._arguments))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, supervisor.ENDINGS)

    def resume(self, pid: int, failures: int, started: float, code: int | None = None) -> None:
        """Take over a process that was started before, which ended if it has a ``code``."""
        self.pid, self._failures, self._started = pid, failures, started
        if code is not None:
            self._died(code)

    def facts(self) -> dict[str, Any]:
        return {"pid": self.pid, "failures": self._failures, "started": self._started}

    @property
    def is_settled(self) -> bool:
        return bool(self.pid) and time.monotonic() - self._started > SETTLED_SECONDS

    def look(self) -> int | None:
        """Start it again after a pause if it died. Return its exit code if a new start would not help."""
        if self.pid and (end := supervisor.ended(self.pid)):
            self._died(end[1])
            if end[1] == WRONG_USAGE:
                return WRONG_USAGE
        if not self.pid and time.monotonic() >= self._next:
            self.start()
        return None

    def _died(self, code: int) -> None:
        now = time.monotonic()
        self._failures = 0 if now - self._started > STABLE_SECONDS else self._failures + 1
        longest = AWAY_PAUSE_SECONDS if code == AWAY else LONGEST_PAUSE_SECONDS
        pause = min(longest, 2.0 ** (self._failures - 1)) if self._failures > 1 else 0.0
        self.pid, self._next = 0, now + pause
        _log.error("process_died", process=self.name, exit_code=code, again_in=pause)


def supervise(children: Sequence[Child], stop: threading.Event, state: _State | None = None) -> int:
    """Keep the children running until ``stop`` is set or one of them cannot start. Return the exit code."""
    state = state or _State.inherited() or _State()
    for child in children:
        if child.name in state.children:
            child.resume(**state.children[child.name])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*supervisor.ENDINGS, signal.SIGCHLD))
    is_hopeless = any(facts.get("code") == WRONG_USAGE for facts in state.children.values())
    code = WRONG_USAGE if is_hopeless else None
    while code is None and not stop.wait(0.2):
        code = next((code for child in children if (code := child.look()) is not None), None)
        if all(child.is_settled for child in children):
            state.children = {child.name: child.facts() for child in children}
            supervisor.become(["-I", "-S", supervisor.__file__, *sys.orig_argv[1:]], vars(state))
    supervisor.end({child.pid: child.name for child in children if child.pid})
    return code or 0


def _run(parent: int, target: Callable[..., None], arguments: tuple[Any, ...]) -> int:
    """Run ``target`` in the child, and return its exit code. It ends with its parent, even if that is killed."""
    for number in supervisor.ENDINGS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, supervisor.ENDINGS)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return 0
    try:
        target(*arguments)
    except (DatabaseAway, DBAPIError) as error:
        _log.error("database_away", why=str(error).partition("\n")[0])
        return AWAY
    except OperatorError as error:
        click.echo(f"bouncer: {error}", err=True)
        return WRONG_USAGE
    return 0
