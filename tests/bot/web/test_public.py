"""Pages that need no log-in: what the bot is, the schema of bouncer.yml, and the root of a server."""

from __future__ import annotations

import json

import pytest
from flask import Flask
from flask.testing import FlaskClient

from bot.settings_reference import json_schema
from bot.web import public


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
