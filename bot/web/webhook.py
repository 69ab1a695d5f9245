"""``POST /webhook``: checks the signature before anything is parsed, and answers 202 once the event is stored."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Protocol

import structlog
from flask import Blueprint, Response, jsonify, request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Response as Answer

from bot.core.errors import InvalidSignature, MalformedDelivery, TransientError
from bot.core.events import Event
from bot.github import webhook
from bot.github.webhook import MAX_BYTES
from bot.pipeline.store.operators import DELIVERY_ANSWERS, Counts

#: Bytes of a too large body that are read before the answer, so that the sender gets to see it.
_DRAIN_BYTES = 2 * MAX_BYTES
_CHUNK = 1 << 16
#: Memory for all bodies that a process reads at the same time, bytes ...
ROOM_BYTES = 192 * 1024 * 1024
#: ... apart from the start of each, which holds an ordinary delivery: slow senders of large bodies, who need no
#: secret to begin, cannot keep those out.
_ALWAYS_BYTES = 256 * 1024

_DELIVERY_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")

_log = structlog.get_logger(__name__)


class Accepts(Protocol):
    """The store of deliveries."""

    def accept(self, delivery: str, event: Event) -> bool:
        """Store a delivery. Return False if it was stored before. Raises TransientError."""
        ...


#: Returns the current webhook secrets, none if the app is not set up yet.
Secrets = Callable[[], tuple[str, ...]]


def blueprint(secrets: Secrets, acceptor: Callable[[], Accepts], counts: Counts) -> Blueprint:
    """Return the route; ``acceptor`` is called in the process that serves."""
    routes = Blueprint("webhook", __name__)
    room = Room()

    @routes.post("/webhook")
    def receive() -> Answer:
        delivery = request.headers.get("X-GitHub-Delivery", "")
        name = request.headers.get("X-GitHub-Event", "")
        status, answer, why = _receive(name, delivery, secrets(), acceptor, room)
        counts.add(DELIVERY_ANSWERS, answer=answer)
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
    name: str, delivery: str, secrets: tuple[str, ...], acceptor: Callable[[], Accepts], room: Room
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
        return 202, "accepted" if acceptor().accept(delivery, event) else "seen", ""
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
    left = min(_DRAIN_BYTES, _DRAIN_BYTES if length is None else length)
    stream = request.environ["wsgi.input"]
    chunks: list[bytes] = []
    size, reserved, full = 0, 0, False
    try:
        while left > 0 and (chunk := _read(stream, min(_CHUNK, left))):
            size, left = size + len(chunk), left - len(chunk)
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
