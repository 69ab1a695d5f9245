"""Access to the dashboard: sessions, forged forms, guessed passwords."""

from __future__ import annotations

import re
from functools import partial

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.test import TestResponse

from bot.pipeline.store.logins import ALL_ADDRESSES
from bot.pipeline.store.tables import LOGIN_ATTEMPTS, SESSIONS
from bot.settings import Settings
from bot.web import session
from bot.web.app import Backend, create_app
from bot.web.dashboard.pages import blueprint
from tests.bot.web.dashboard.conftest import PASSWORD, dashboard, settings


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def token(page: TestResponse) -> str:
    match = re.search(r'name="token" value="([^"]+)"', page.text)
    assert match
    return match[1]


def log_in(client: FlaskClient, password: str = PASSWORD, **fields: str) -> TestResponse:
    page = client.get("/login")
    return client.post("/login", data={"token": token(page), "password": password, **fields})


def guess_often(backend: Backend) -> None:
    """Use up the attempts of this machine's address."""
    for _ in range(9):
        backend.ledger.logins.turn("127.0.0.1")
        backend.ledger.logins.failed("127.0.0.1")
    for _ in range(3):
        backend.ledger.logins.turn("127.0.0.1")


def test_five_wrong_guesses_of_a_stranger_do_not_keep_the_operator_out(client: FlaskClient, app: Flask) -> None:
    for _ in range(5):
        assert log_in(client, "wrong").status_code == 403
    assert log_in(app.test_client()).status_code == 302


def test_guessing_is_slowed_down_and_refused_whatever_the_password(client: FlaskClient, backend: Backend) -> None:
    guess_often(backend)
    refused = log_in(client)
    assert (refused.status_code, client.get("/").status_code) == (429, 302)
    assert "Try again in" in refused.text
    # Another address is not affected.
    client.environ_base["REMOTE_ADDR"] = "192.0.2.7"
    assert log_in(client).status_code == 302


@pytest.mark.parametrize(
    ("trusted", "appended"), [(0, ""), (1, ", 198.51.100.7"), (2, ", 198.51.100.7, 10.0.0.1")]
)
def test_made_up_addresses_do_not_evade_the_count(backend: Backend, trusted: int, appended: str) -> None:
    server = Settings(bouncer_trust_proxy=trusted)
    app = create_app(server, backend, lambda: (), [partial(blueprint, settings())])
    client = app.test_client()
    for number in range(5):
        claimed = {"X-Forwarded-For": f"192.0.2.{number}{appended}"}
        page = client.get("/login", headers=claimed)
        wrong = {"token": token(page), "password": "wrong"}
        assert client.post("/login", data=wrong, headers=claimed).status_code == 403
    rows = backend.ledger.database.rows(select(LOGIN_ATTEMPTS).where(LOGIN_ATTEMPTS.c.address != ALL_ADDRESSES))
    assert [(row.address, row.failures) for row in rows] == [("198.51.100.7" if trusted else "127.0.0.1", 5)]


def test_a_session_from_before_the_login_ends_at_the_login(client: FlaskClient) -> None:
    before = token(client.get("/login"))
    log_in(client)
    assert token(client.get("/")) != before
    assert client.post("/logout", data={"token": before}).status_code == 403


def test_log_out_ends_the_session_of_a_copied_cookie(client: FlaskClient, app: Flask) -> None:
    log_in(client)
    cookie = client.get_cookie("bouncer")
    assert cookie is not None
    thief = app.test_client()
    thief.set_cookie("bouncer", cookie.value)
    assert thief.get("/").status_code == 200
    client.post("/logout", data={"token": token(client.get("/"))})
    assert (client.get("/").status_code, thief.get("/").status_code) == (302, 302)


def test_a_stored_session_id_is_no_cookie(client: FlaskClient, app: Flask, backend: Backend) -> None:
    log_in(client)
    with backend.ledger.database.read() as connection:
        (session_id,) = connection.execute(select(SESSIONS.c.id)).scalars()
    thief = app.test_client()
    thief.set_cookie("bouncer", session_id)
    assert thief.get("/").status_code == 302


def test_a_session_ends_by_itself(client: FlaskClient, backend: Backend) -> None:
    log_in(client)
    backend.ledger.database.execute(SESSIONS.update().values(until=1.0))
    assert client.get("/").status_code == 302


def test_the_way_back_is_kept(client: FlaskClient) -> None:
    assert log_in(client, next="/jobs?state=dead").location == "/jobs?state=dead"


@pytest.mark.parametrize(
    ("host", "status"), [("evil.example", 400), ("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:80", 200)]
)
def test_a_name_that_is_not_ours_is_refused(client: FlaskClient, host: str, status: int) -> None:
    assert client.get("/login", headers={"Host": host}).status_code == status


def test_the_public_address_is_a_name_of_ours(backend: Backend) -> None:
    client = dashboard(backend, bouncer_public_url="https://bot.example").test_client()
    page = client.get("/login", headers={"Host": "bot.example"})
    assert page.status_code == 200
    assert "Secure" in page.headers["Set-Cookie"]


def test_every_answer_carries_the_headers(client: FlaskClient) -> None:
    cookie = client.get("/login").headers["Set-Cookie"]
    for path in ("/login", "/", "/decisions/999"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("path", ["/shadow", "/installations", "/jobs/dead:triage"])
def test_text_of_strangers_is_not_markup(client: FlaskClient, path: str) -> None:
    log_in(client)
    page = client.get(path)
    assert page.status_code == 200
    assert "<script" not in page.text
    assert "<img" not in page.text


def test_a_new_password_ends_old_sessions(client: FlaskClient, backend: Backend) -> None:
    log_in(client)
    cookie = client.get_cookie("bouncer")
    assert cookie is not None
    later = dashboard(backend, password="another").test_client()
    later.set_cookie("bouncer", cookie.value)
    assert later.get("/").status_code == 302


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("<script>", "unknown"),
    ],
)
def test_an_address_counts_as_its_customer(app: Flask, address: str, expected: str) -> None:
    with app.test_request_context(environ_base={"REMOTE_ADDR": address}):
        assert session.client_address() == expected
