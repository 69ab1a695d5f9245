"""Webhooks of the simulated GitHub: receivers, payloads, signatures and outcomes."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import threading
import urllib.error
import urllib.request
import uuid
from dataclasses import replace

from bot.simgithub.render import Renderer
from bot.simgithub.state import App, DeliveryState, InstallationState, Json, RepositoryState, User, World

#: GitHub gives a receiver this long, in seconds.
TIMEOUT = 10.0


class Hooks:
    """Queue of deliveries in the world's outbox; one thread posts them in order."""

    def __init__(self, world: World, render: Renderer) -> None:
        self.world = world
        self.render = render
        self._thread = threading.Thread(target=self._run, name="simulated-webhooks", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.world.outbox.put(None)
        self._thread.join(TIMEOUT + 5)

    def emit(
        self, repository: RepositoryState, event: str, action: str | None, sender: User, payload: Json
    ) -> None:
        """Deliver an event to every app that is installed on the repository and subscribed to it."""
        fields = {} if action is None else {"action": action}
        whole = {**fields, **payload, "repository": self.render.repository(repository)}
        for installation in self.world.installed(repository):
            if event in installation.events:
                self.deliver(installation, event, sender, whole)

    def deliver(self, installation: InstallationState, event: str, sender: User, payload: Json) -> None:
        """Queue one delivery to one app."""
        reference = {"id": installation.id, "node_id": f"IN_{installation.id}"}
        whole = {"installation": reference, **payload, "sender": self.render.user(sender)}
        delivery = DeliveryState(
            id=self.world.next_id(),
            guid=str(uuid.uuid4()),
            event=event,
            body=json.dumps(whole).encode(),
            delivered_at=self.world.now(),
        )
        self._queue(installation.app, delivery)

    def redeliver(self, app: App, delivery: DeliveryState) -> None:
        """Queue another attempt with the same guid and payload."""
        again = replace(delivery, id=self.world.next_id(), delivered_at=self.world.now(), status_code=0)
        self._queue(app, again)

    def _queue(self, app: App, delivery: DeliveryState) -> None:
        if app.webhook_url:
            app.deliveries.append(delivery)
            self.world.outbox.put((app, delivery))

    def _run(self) -> None:
        while (waiting := self.world.outbox.get()) is not None:
            self._post(*waiting)
            self.world.outbox.task_done()
        self.world.outbox.task_done()

    def _post(self, app: App, delivery: DeliveryState) -> None:
        request = urllib.request.Request(  # noqa: S310 - the receiver is the caller's own server
            app.webhook_url, data=delivery.body, headers=headers(app, delivery), method="POST"
        )
        # No proxy of the environment: the receiver is local.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=TIMEOUT) as answer:
                code = answer.status
        except urllib.error.HTTPError as error:
            code = error.code
        except (OSError, http.client.HTTPException):
            code = 502
        with self.world.lock:
            delivery.status_code = code


def headers(app: App, delivery: DeliveryState) -> dict[str, str]:
    """Return the headers that GitHub sends with a delivery."""
    signature = hmac.new(app.webhook_secret.encode(), delivery.body, hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/0000000",
        "X-GitHub-Delivery": delivery.guid,
        "X-GitHub-Event": delivery.event,
        "X-Hub-Signature-256": f"sha256={signature.hexdigest()}",
    }
