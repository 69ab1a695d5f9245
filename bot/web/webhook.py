"""``POST /webhook``: nothing is parsed before the signature holds; what is accepted is on disk."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

import structlog
from flask import Blueprint, Response, jsonify, request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Response as Answer

from bot.core.events import Event
from bot.errors import InvalidSignature, MalformedDelivery, TransientError
from bot.forge.github import webhook
from bot.ops.metrics import DELIVERIES, Counts

#: GitHub's own limit on a payload, bytes.
MAX_BYTES = 25 * 1024 * 1024
#: Of a body that is too large, this much is read before the answer, so that the sender gets to see it.
_DRAIN_BYTES = 2 * MAX_BYTES
_CHUNK = 1 << 16

_DELIVERY_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")

_log = structlog.get_logger(__name__)


class Accepts(Protocol):
    """Where deliveries go."""

    def accept(self, delivery: str, event: Event) -> bool:
        """Record it durably; False where it was there before. Raises TransientError."""
        ...


#: The present webhook secrets; none means that the app is not set up yet.
Secrets = Callable[[], tuple[str, ...]]


def blueprint(secrets: Secrets, acceptor: Callable[[], Accepts], counts: Counts) -> Blueprint:
    """The route; ``acceptor`` is asked for its Inbox in the process that serves."""
    routes = Blueprint("webhook", __name__)

    @routes.post("/webhook")
    def receive() -> Answer:
        delivery = request.headers.get("X-GitHub-Delivery", "")
        name = request.headers.get("X-GitHub-Event", "")
        status, answer, why = _receive(name, delivery, secrets(), acceptor)
        counts.add(DELIVERIES, answer=answer)
        shown = delivery if _DELIVERY_ID.fullmatch(delivery) else ""
        log = _log.info if status < 400 else _log.warning
        log("delivery", delivery=shown, name=name[:50], answer=answer, why=why)
        if status == 204:
            return Response(status=204)
        response = jsonify(status=answer) if status < 400 else jsonify(error=why)
        response.status_code = status
        return response

    return routes


def _receive(
    name: str, delivery: str, secrets: tuple[str, ...], acceptor: Callable[[], Accepts]
) -> tuple[int, str, str]:
    """(status, what became of it, why) of the request at hand."""
    if not secrets:
        return 503, "unavailable", "not set up yet: there is no webhook secret"
    signature = request.headers.get("X-Hub-Signature-256", "")
    try:
        # Who did not even try to sign gets the answer before anything of the body is read.
        webhook.check_form(signature)
        body = _body()
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


def _body() -> bytes:
    """The raw bytes. Raises RequestEntityTooLarge, after having read enough for the sender to notice."""
    said = request.content_length
    if said is None and not request.environ.get("wsgi.input_terminated"):
        return b""
    left = min(_DRAIN_BYTES, _DRAIN_BYTES if said is None else said)
    stream, chunks, size = request.environ["wsgi.input"], [], 0
    while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
        size, left = size + len(chunk), left - len(chunk)
        if size <= MAX_BYTES:
            chunks.append(chunk)
    if size > MAX_BYTES:
        raise RequestEntityTooLarge
    return b"".join(chunks)
