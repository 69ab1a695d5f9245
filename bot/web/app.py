"""The web application: ``POST /webhook``, and the pages that it is given.

A delivery's signature is checked before anything is parsed; the answer is 202 once the event is stored.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import structlog
from flask import Blueprint, Flask, Response, jsonify, request
from gunicorn.http.errors import ParseException
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.wrappers import Response as Answer

from bot.core.errors import InvalidSignature, MalformedDelivery, TransientError
from bot.github import webhook
from bot.github.webhook import MAX_BYTES
from bot.pipeline.admin import Jobs
from bot.pipeline.inbox import Inbox
from bot.pipeline.queue import Queue
from bot.pipeline.store import Database, Ledger, database_at
from bot.pipeline.store.counters import DELIVERY_ANSWERS, CounterBuffer
from bot.settings import Settings
from bot.web import public
from bot.web.public import Secrets

#: How often counts of this process are added to the shared ones, seconds.
FLUSH_SECONDS = 5.0
#: How long a commit waits for SQLite's write lock: less than a delivery may wait in all, seconds.
BUSY_SECONDS = 4.0
#: GitHub waits 10 s and then counts a delivery as failed; the answer has to be its own before that.
DEADLINE_SECONDS = 5.0
#: Deliveries that a process stores in PostgreSQL at the same time.
STORING_THREADS = 4
#: Bytes of a too large body that are read before the answer, so that the sender gets to see it.
_DRAIN_BYTES = 2 * MAX_BYTES
_CHUNK = 1 << 16
#: Memory for all bodies that a process reads at the same time, bytes ...
ROOM_BYTES = 192 * 1024 * 1024
#: ... apart from the start of each, which holds an ordinary delivery: slow senders of large bodies, who need no
#: secret to begin, cannot keep those out.
_ALWAYS_BYTES = 256 * 1024

_DELIVERY_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")

if TYPE_CHECKING:
    from bot.core.events import Event

_log = structlog.get_logger(__name__)


class Storing:
    """Stores deliveries within a deadline, in threads of its own: a database may be silent for longer."""

    def __init__(self, database: Database) -> None:
        self._queue = Queue(database)
        self._inbox = Inbox(database, self._queue)
        # SQLite has one writer: a second one would only wait for the first.
        self._threads = ThreadPoolExecutor(1 if database.is_sqlite else STORING_THREADS, "storing")

    def connect(self) -> None:
        """Connect ahead of the first delivery."""
        self._queue.connect()

    def accept(self, delivery: str, event: Event) -> bool:
        """Store a delivery with its jobs. Return False if a delivery of that id is stored already.

        Raises TransientError if that was not done within the deadline; the delivery may be stored later.
        """
        storing = self._threads.submit(self._inbox.accept, delivery, event)
        try:
            return storing.result(DEADLINE_SECONDS)
        except TimeoutError:
            storing.cancel()
            raise TransientError(
                f"the database did not record the delivery within {DEADLINE_SECONDS:.0f} s"
            ) from None
        except Exception as error:
            _log.error("delivery_not_recorded", error=type(error).__name__)
            raise TransientError("the database did not record the delivery") from error

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._queue.close()


class Backend:
    """Connections and threads of one serving process; made after any fork."""

    def __init__(self, database_url: str, withheld: Secrets = tuple) -> None:
        """``withheld`` is asked for what must not come into the database."""
        database = database_at(database_url, busy_seconds=BUSY_SECONDS)
        database.withheld = withheld
        self.ledger, self.jobs, self.storing = Ledger(database), Jobs(database), Storing(database)
        self.counts = CounterBuffer()
        self._closing = threading.Event()
        threading.Thread(target=self._flush_all, name="counts", daemon=True).start()

    def warm_up(self) -> Backend:
        """Connect the engine in the background, so that the first delivery need not wait."""
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        return self

    def _warm_up(self) -> None:
        try:
            self.storing.connect()
        except (SQLAlchemyError, TimeoutError) as error:
            # The first delivery tries again.
            _log.warning("database_away", error=type(error).__name__)

    def close(self) -> None:
        """Record what waits; the process ends."""
        self._closing.set()
        self.storing.close()
        self._flush()
        self.ledger.database.close()

    def _flush_all(self) -> None:
        while not self._closing.wait(FLUSH_SECONDS):
            self._flush()

    def _flush(self) -> None:
        try:
            self.counts.flush(self.ledger.counters)
        except SQLAlchemyError as error:
            _log.warning("counts_not_recorded", error=type(error).__name__)


def _webhook(secrets: Secrets, backend: Backend) -> Blueprint:
    routes = Blueprint("webhook", __name__)
    room = Room()

    @routes.post("/webhook")
    def receive() -> Answer:
        delivery = request.headers.get("X-GitHub-Delivery", "")
        name = request.headers.get("X-GitHub-Event", "")
        status, answer, why = _receive(name, delivery, secrets(), backend.storing, room)
        backend.counts.add(DELIVERY_ANSWERS, answer=answer)
        logged_id = delivery if _DELIVERY_ID.fullmatch(delivery) else ""
        log = _log.info if status < 400 else _log.warning
        log("delivery", delivery=logged_id, name=name[:50], answer=answer, why=why)
        if status == 204:
            return Response(status=204)
        response = jsonify(status=answer) if status < 400 else jsonify(error=why)
        response.status_code = status
        return response

    return routes


def _receive(
    name: str, delivery: str, secrets: tuple[str, ...], storing: Storing, room: Room
) -> tuple[int, str, str]:
    """Handle the current request, and return status, answer and reason."""
    if not secrets:
        return 503, "unavailable", "not set up yet: there is no webhook secret"
    signature = request.headers.get("X-Hub-Signature-256", "")
    try:
        # Reject unsigned requests before reading the body.
        webhook.check_form(signature)
        with _body(room) as body:
            webhook.verify(body, signature, secrets)
            if not name:
                raise MalformedDelivery("the header X-GitHub-Event is missing")
            if not _DELIVERY_ID.fullmatch(delivery):
                raise MalformedDelivery("the header X-GitHub-Delivery is missing or not an id")
            event = webhook.parse(name, webhook.load(body, request.content_type or ""))
        if event is None:
            return 204, "ignored", ""
        return 202, "accepted" if storing.accept(delivery, event) else "seen", ""
    except RequestEntityTooLarge:
        return 413, "too_large", f"the body is larger than {MAX_BYTES} bytes"
    except InvalidSignature as error:
        return 401, "unauthorized", str(error)
    except MalformedDelivery as error:
        return 400, "malformed", str(error)
    except TransientError as error:
        return 503, "unavailable", str(error)


class Room:
    """Limits the memory of all bodies together: anyone can send one that looks signed."""

    def __init__(self) -> None:
        self._left = ROOM_BYTES
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Reserve memory. Return False if there is not enough."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        with self._lock:
            self._left += size


def _read(stream: IO[bytes], size: int) -> bytes:
    """Return the next bytes of a body. Raises MalformedDelivery if it breaks off."""
    try:
        return stream.read(size)
    except (OSError, ParseException):
        raise MalformedDelivery("the body cannot be read to its end") from None


@contextmanager
def _body(room: Room) -> Iterator[bytes]:
    """Yield the raw bytes, with memory reserved for them until the end of the ``with``.

    Raises RequestEntityTooLarge, or TransientError if there is not enough memory, after having read enough for the
    sender to notice. Memory is reserved for received bytes, not for announced ones.
    """
    length = request.content_length
    if length is None and not request.environ.get("wsgi.input_terminated"):
        length = 0
    remaining = min(_DRAIN_BYTES, _DRAIN_BYTES if length is None else length)
    stream = request.environ["wsgi.input"]
    chunks: list[bytes] = []
    size, reserved, full = 0, 0, False
    try:
        while remaining > 0 and (chunk := _read(stream, min(_CHUNK, remaining))):
            size, remaining = size + len(chunk), remaining - len(chunk)
            if size > _ALWAYS_BYTES and size <= MAX_BYTES and not full:
                full = not room.take(len(chunk))
                reserved += 0 if full else len(chunk)
            if full or size > MAX_BYTES:
                chunks.clear()
                room.give_back(reserved)
                reserved = 0
            else:
                chunks.append(chunk)
        if size > MAX_BYTES:
            raise RequestEntityTooLarge
        if full:
            raise TransientError("too many large deliveries are arriving at once")
        yield b"".join(chunks)
    finally:
        room.give_back(reserved)


#: Makes the pages of one part of the site from what they read.
Pages = Callable[[Backend], Blueprint]


def create_app(settings: Settings, backend: Backend, secrets: Secrets, more: Iterable[Pages] = ()) -> Flask:
    """The application.

    ``secrets`` is asked at every delivery, so that a secret that is stored while the server runs counts at
    once; ``more`` makes further pages (set-up, dashboard).
    """
    app = Flask("bot.web")
    app.extensions["close"] = backend.close
    if proxies := settings.bouncer_trust_proxy:
        # Each proxy appends an address; of the public address there is one value, which the last proxy passes on.
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=proxies, x_proto=1, x_host=1
        )
    app.register_blueprint(_webhook(secrets, backend))
    app.register_blueprint(public.monitoring(settings, backend.ledger, backend.jobs, secrets))
    for make in more:
        app.register_blueprint(make(backend))
    return app
