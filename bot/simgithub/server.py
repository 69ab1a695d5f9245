"""The HTTP server of the simulated GitHub: authenticate, route, answer, fail on demand, record every request."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jwt
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from bot.simgithub import pages
from bot.simgithub.faults import InjectedFault
from bot.simgithub.operations import Operations
from bot.simgithub.routes import ROUTES, apps
from bot.simgithub.state import App, Token
from bot.simgithub.wire import ApiAnswer, ApiCall, ApiRefusal, Route

LIMIT = 5000
#: Requests that are recorded.
MAX_RECORDED = 20_000
#: Prefix of the API on a GitHub Enterprise Server; the public GitHub has none.
PREFIX = "/api/v3"

StartResponse = Callable[..., Any]


@dataclass(frozen=True)
class RecordedRequest:
    """One request, without the value of its credentials, and its answer.

    ``injected`` marks the answer of a fault.
    """

    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int
    authorization: str
    answer: Any
    injected: bool


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        logging.getLogger(__name__).debug(message, *args)

    def connection_dropped(self, error: BaseException, environ: dict[str, Any] | None = None) -> None:
        self.close_connection = True


@cache
def _rules() -> Map:
    """Return the paths of all routes; to compile them takes 25 ms."""
    return Map([Rule(route.path, methods=[route.method], endpoint=route) for route in ROUTES])


class ApiServer:
    """Listens on loopback; ``start`` and ``stop`` it once."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.requests: deque[RecordedRequest] = deque(maxlen=MAX_RECORDED)
        self.faults: list[InjectedFault] = []
        self.used = 0
        self._rules = _rules().bind("api")
        self.pages = pages.Pages(operations)
        self._server = make_server("127.0.0.1", 0, self._wsgi, threaded=True, request_handler=_Quiet)
        # The argument is how long ``stop`` waits at most, seconds.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="simulated-github", daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _wsgi(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        path = _api_path(request)
        fault = self._strike(request.method, path or request.path)
        if fault and fault.kind == "reset":
            return _drop(environ)
        if fault and fault.kind == "slow":
            time.sleep(fault.wait)
        answer = fault.answer(self.operations.world.now().timestamp()) if fault else None
        if path is None:
            response = _response(answer) if answer else self.pages.respond(request)
        else:
            with self.operations.world.lock:
                response = _response(self._record(request, path, answer))
        if fault and fault.kind == "lost":
            return _drop(environ)
        return response(environ, start)

    def _strike(self, method: str, path: str) -> InjectedFault | None:
        with self.operations.world.lock:
            for fault in self.faults:
                if fault.strikes(method, path):
                    return fault
        return None

    def _record(self, request: Request, path: str, instead: ApiAnswer | None) -> ApiAnswer:
        """Answer and record a request; the answer of a fault replaces the real one before anything is applied."""
        try:
            route, args = self._rules.match(self._by_name(path), request.method)
            answer = instead or self._respond(request, path, route, dict(args))
        except HTTPException as error:
            answer = instead or ApiAnswer(error.code or 404, {"message": "Not Found"})
        except ApiRefusal as error:
            answer = error.answer()
        if request.method == "GET" and answer.status == 200 and instead is None:
            answer = _conditional(answer, request.headers.get("If-None-Match"))
        recorded = RecordedRequest(
            method=request.method,
            path=path,
            query=request.args.to_dict(),
            body=_json(request),
            status=answer.status,
            authorization=request.headers.get("Authorization", "").partition(" ")[0],
            answer=answer.body,
            injected=instead is not None,
        )
        self.requests.append(recorded)
        # An unchanged answer costs no quota.
        self.used += answer.status != 304
        answer.headers = {"x-ratelimit-remaining": str(LIMIT - self.used), **answer.headers}
        return answer

    def _by_name(self, path: str) -> str:
        """Return the path of a repository that is addressed by its id, as redirects do."""
        match = re.fullmatch(r"/repositories/(\d+)(/.*|)", path)
        places = self.operations.world.repositories.values()
        names = (place.full_name for place in places if match and place.id == int(match[1]))
        return next((f"/repos/{name}{match[2]}" for name in names if match), path)

    def _respond(self, request: Request, path: str, route: Route, args: dict[str, Any]) -> ApiAnswer:
        body = _json(request)
        if body is _BROKEN:
            raise ApiRefusal(400, "Problems parsing JSON")
        call = ApiCall(
            operations=self.operations,
            base=self.operations.render.api,
            path=path,
            args=args,
            query=request.args.to_dict(),
            accept=request.headers.get("Accept", ""),
            body=body,
            reads=request.method == "GET",
        )
        self._authenticate(request, route, call)
        return route.respond(call)

    def _authenticate(self, request: Request, route: Route, call: ApiCall) -> None:
        if not route.needs:
            return
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if not scheme and request.method == "GET" and route.needs.endswith(":read"):
            # Public repositories can be read without a token.
            return
        if scheme.lower() not in ("bearer", "token") or not secret:
            raise ApiRefusal(401, "Requires authentication")
        if route.needs == "app":
            call.app = self._app(secret)
            return
        if route.needs == "user":
            if secret not in self.operations.world.user_tokens:
                raise ApiRefusal(401, "Bad credentials")
            call.app, call.user = self.operations.world.user_tokens[secret]
            return
        call.token = self._token(secret)
        if not apps.allows(call.token, route.needs):
            raise ApiRefusal(403, "Resource not accessible by integration")

    def _token(self, secret: str) -> Token:
        token = self.operations.world.tokens.get(secret)
        if token is None or token.revoked or token.expires_at <= self.operations.world.now():
            raise ApiRefusal(401, "Bad credentials")
        if token.installation.suspended:
            raise ApiRefusal(403, "This installation has been suspended")
        return token

    def _app(self, secret: str) -> App:
        now = self.operations.world.now().timestamp()
        try:
            claims = jwt.decode(secret, options={"verify_signature": False})
            app = self.operations.world.apps[int(claims["iss"])]
            jwt.decode(secret, app.public_key, ["RS256"], options={"verify_exp": False, "verify_iat": False})
        except (jwt.InvalidTokenError, KeyError, ValueError):
            raise ApiRefusal(401, "A JSON web token could not be decoded") from None
        if claims["exp"] < now or claims["exp"] > now + 600 + 5 or claims["iat"] > now + 5:
            raise ApiRefusal(401, "'Expiration time' claim ('exp') is not in the allowed range")
        return app


def _conditional(answer: ApiAnswer, cached_etag: str | None) -> ApiAnswer:
    """Add the ETag to an answer; return "not modified" if the client has it already."""
    etag = f'"{hashlib.sha256(answer.encoded()).hexdigest()}"'
    answer.headers["ETag"] = etag
    return ApiAnswer(304, headers={"ETag": etag}) if etag == cached_etag else answer


_BROKEN = object()


def _json(request: Request) -> Any:
    data = request.get_data()
    if not data:
        return None
    try:
        return json.loads(data)
    except ValueError:
        return _BROKEN


def _api_path(request: Request) -> str | None:
    """Return the path of an API operation, without the Enterprise prefix; None for pages."""
    path = request.path
    if path in ("/api/graphql", "/graphql"):
        return "/graphql"
    if path.startswith(PREFIX + "/"):
        return path.removeprefix(PREFIX)
    top = path.split("/")[1]
    return path if top in {"repositories", *(route.path.split("/")[1] for route in ROUTES)} else None


def _response(answer: ApiAnswer) -> Response:
    return Response(answer.encoded(), answer.status, answer.headers, content_type=answer.content_type)


def _drop(environ: dict[str, Any]) -> Iterable[bytes]:
    """Reset the connection instead of answering."""
    connection: socket.socket = environ["werkzeug.socket"]
    # No lingering: the peer sees a reset, not an orderly end.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())
    raise ConnectionAbortedError("dropped on demand")
