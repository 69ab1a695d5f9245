"""Routes without log-in: what the bot is, the schema of bouncer.yml, the root of a server, and ``/metrics``."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.exc import OperationalError

from bot.cli.web import dashboard_pages
from bot.pipeline.store import Ledger, migrate, migrated, open_database
from bot.pipeline.store.counters import CounterBuffer
from bot.settings import Settings
from bot.web import public
from bot.web.app import Backend, create_app
from tests.settings_reference import json_schema


@pytest.fixture
def client() -> FlaskClient:
    app = Flask("bot.web")
    app.register_blueprint(public.blueprint("Do this next."))
    return app.test_client()


def test_about_explains_the_bot_to_everybody(client: FlaskClient) -> None:
    page = client.get("/about").text
    assert "If you got a comment" not in page, "the file's title"
    assert "<h2>It commented on my issue</h2>" in page
    assert "<code>/bouncer recheck</code>" in page
    assert "<img" not in page
    assert "pictures/" not in page


def test_the_schema_is_served(client: FlaskClient) -> None:
    answer = client.get("/bouncer.schema.json")
    assert answer.content_type.startswith("application/schema+json")
    assert json.loads(answer.text) == json_schema()


def test_the_root_names_the_next_step(client: FlaskClient) -> None:
    page = client.get("/").text
    assert "Bouncer runs" in page
    assert "Do this next." in page


def test_the_root_belongs_to_the_dashboard_if_there_is_one() -> None:
    app = Flask("bot.web")
    app.register_blueprint(public.blueprint())
    assert app.test_client().get("/").status_code == 404


ELSEWHERE = {"REMOTE_ADDR": "192.0.2.1"}


def whole_site(folder: Path, **values: Any) -> FlaskClient:
    url = f"sqlite:///{folder}/x.db"
    with migrated(url):
        pass
    settings = Settings(database_url=url, **values)
    return create_app(settings, Backend(url), lambda: ("secret",), dashboard_pages(settings)).test_client()


@pytest.mark.parametrize(
    "headers",
    [
        # A tunnel or proxy on this machine may set no header at all, and name this machine.
        {},
        {"Host": "localhost"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
    ],
)
def test_no_address_opens_it(tmp_path: Path, headers: dict[str, str]) -> None:
    refused = whole_site(tmp_path, bouncer_metrics_token="m-0123456789").get("/metrics", headers=headers)
    assert (refused.status_code, "BOUNCER_METRICS_TOKEN" in refused.text) == (403, True)


def test_the_token_the_dashboard_and_the_setting_open_it(tmp_path: Path) -> None:
    other = whole_site(tmp_path, bouncer_metrics_token="m-0123456789", bouncer_admin_password="horse")
    headers = {"Authorization": "Bearer m-0123456789"}
    assert other.get("/metrics", headers=headers, environ_base=ELSEWHERE).status_code == 200
    for wrong in ("Bearer ", "Bearer m", "m-0123456789", ""):
        assert other.get("/metrics", headers={"Authorization": wrong}, environ_base=ELSEWHERE).status_code == 403
    token = re.search(r'name="token" value="([^"]+)"', other.get("/login").text)
    assert token
    other.post("/login", data={"token": token[1], "password": "horse"})
    assert other.get("/metrics", environ_base=ELSEWHERE).status_code == 200
    open_client = whole_site(tmp_path, bouncer_metrics="open")
    assert open_client.get("/metrics", environ_base=ELSEWHERE).status_code == 200


def test_no_token_is_no_empty_token(tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer "}
    assert whole_site(tmp_path).get("/metrics", headers=headers, environ_base=ELSEWHERE).status_code == 403


def test_no_count_is_lost_between_two_that_write_or_to_a_busy_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    database = open_database(url, busy_seconds=1)
    migrate(database)
    ledger = Ledger(database)
    counts = CounterBuffer()
    counts.add("bouncer_deliveries", answer="accepted")
    failures: list[Exception] = []

    def flush() -> None:
        try:
            counts.flush(ledger.counters)
        except OperationalError as error:
            failures.append(error)

    with database.write():
        writing = threading.Thread(target=flush)
        writing.start()
        time.sleep(0.1)
        last = threading.Thread(target=flush)
        last.start()
        writing.join()
        assert last.is_alive()
    last.join()
    assert len(failures) == 1
    assert ledger.counters.all() == {("bouncer_deliveries", (("answer", "accepted"),)): 1}
