"""The web application: the webhook and what operators need, made from what it is given."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import structlog
from flask import Blueprint, Flask
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.middleware.proxy_fix import ProxyFix

from bot.core.errors import TransientError
from bot.pipeline.admin import Jobs
from bot.pipeline.store import Database, Ledger, database_at, withhold
from bot.pipeline.store.operators import Counts
from bot.web import health, webhook
from bot.web.health import Readers
from bot.web.webhook import Secrets

#: How often counts of this process are added to the shared ones, seconds.
FLUSH_SECONDS = 5.0
#: How long a commit waits for SQLite's write lock: less than a delivery may wait in all, seconds.
BUSY_SECONDS = 4.0
#: GitHub waits 10 s and then counts a delivery as failed; the answer has to be its own before that.
DEADLINE_SECONDS = 5.0
#: Deliveries that a process stores in PostgreSQL at the same time.
STORING_THREADS = 4

if TYPE_CHECKING:
    from bot.core.events import Event

_log = structlog.get_logger(__name__)


class Storing:
    """Stores deliveries within a deadline, in threads of its own: a database may be silent for longer."""

    def __init__(self, database: Database) -> None:
        # Both import the engine, which takes a second: not before the process was forked.
        from bot.pipeline.inbox import Inbox
        from bot.pipeline.queue import Queue

        self._queue = Queue(database)
        self._inbox = Inbox(database, self._queue)
        # SQLite has one writer: a second one would only wait for the first.
        self._threads = ThreadPoolExecutor(1 if database.is_sqlite else STORING_THREADS, "storing")

    def connect(self) -> None:
        """Connect ahead of the first delivery."""
        self._queue.connect()

    def accept(self, delivery: str, event: Event, seconds: float = DEADLINE_SECONDS) -> bool:
        """Store a delivery with its jobs. Return False if a delivery of that id is stored already.

        Raises TransientError if that was not done within ``seconds``; the delivery may be stored later.
        """
        storing = self._threads.submit(self._inbox.accept, delivery, event)
        try:
            return storing.result(seconds)
        except TimeoutError:
            storing.cancel()
            raise TransientError(f"the database did not record the delivery within {seconds:.0f} s") from None
        except Exception as error:
            _log.error("delivery_not_recorded", error=type(error).__name__)
            raise TransientError("the database did not record the delivery") from error

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._queue.close()


class Backend:
    """Connections and threads of one serving process; made at its first request, so after any fork."""

    def __init__(self, database_url: str, withheld: Secrets = tuple) -> None:
        """``withheld`` is asked for what must not come into the database."""
        self._url = database_url
        self._withheld = withheld
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._parts: tuple[Ledger, Jobs, Storing] | None = None
        self.counts = Counts()

    def ledger(self) -> Ledger:
        return self._made()[0]

    def jobs(self) -> Jobs:
        return self._made()[1]

    def acceptor(self) -> Storing:
        return self._made()[2]

    def warm_up(self) -> Backend:
        """Import and connect the engine in the background, so that the first delivery need not wait."""
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        return self

    def _warm_up(self) -> None:
        try:
            self._made()[2].connect()
        except (SQLAlchemyError, TimeoutError) as error:
            # The first delivery tries again.
            _log.warning("database_away", error=type(error).__name__)

    def close(self) -> None:
        """Record what waits; the process ends."""
        self._closing.set()
        if self._parts is not None:
            ledger, _, acceptor = self._parts
            acceptor.close()
            self._flush(ledger)
            ledger.database.close()

    def _made(self) -> tuple[Ledger, Jobs, Storing]:
        if self._parts is None:
            with self._lock:
                if self._parts is None:
                    database = database_at(self._url, busy_seconds=BUSY_SECONDS)
                    withhold(database, self._withheld)
                    ledger = Ledger(database)
                    threading.Thread(target=self._flush_all, args=(ledger,), name="counts", daemon=True).start()
                    self._parts = ledger, Jobs(database), Storing(database)
        return self._parts

    def _flush_all(self, ledger: Ledger) -> None:
        while not self._closing.wait(FLUSH_SECONDS):
            self._flush(ledger)

    def _flush(self, ledger: Ledger) -> None:
        try:
            self.counts.flush(ledger.counters)
        except SQLAlchemyError as error:
            _log.warning("counts_not_recorded", error=type(error).__name__)


#: Makes the pages of one part of the site from what they read.
Pages = Callable[[Backend], Blueprint]


def create_app(
    backend: Backend,
    secrets: Secrets,
    more: Iterable[Pages] = (),
    *,
    trusted_proxies: int = 0,
    readers: Readers | None = None,
) -> Flask:
    """The application.

    ``secrets`` is asked at every delivery, so that a secret that is stored while the server runs counts at
    once; ``more`` makes further pages (set-up, dashboard). ``trusted_proxies`` is the number of proxies in front
    whose ``X-Forwarded-*`` headers count; ``readers`` may see ``/metrics``.
    """
    app = Flask("bot.web")
    app.extensions["close"] = backend.close
    if trusted_proxies:
        # Each proxy appends an address; of the public address there is one value, which the last proxy passes on.
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=trusted_proxies, x_proto=1, x_host=1
        )
    app.register_blueprint(webhook.blueprint(secrets, backend.acceptor, backend.counts))
    app.register_blueprint(health.blueprint(backend.ledger, backend.jobs, readers or Readers(), secrets))
    for make in more:
        app.register_blueprint(make(backend))
    return app
