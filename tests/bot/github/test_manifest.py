"""The app asks for the permissions that it needs and no more, and names those that are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.errors import OperatorError
from bot.github import app as tokens
from bot.github import registration
from bot.github.registration import PURPOSES, manifest
from bot.github.webhook import NAMES

ROOT = Path(__file__).resolve().parents[3]


def test_no_permission_could_change_code_or_settings() -> None:
    assert dict(manifest().default_permissions) == {
        "metadata": "read",
        "contents": "read",
        "issues": "write",
        "pull_requests": "write",
        "checks": "write",
        "merge_queues": "read",
    }


def test_only_test_pull_requests_need_to_write_files() -> None:
    plain, more = manifest(), manifest().extended(test_pulls=True, members=False)
    changed = {
        name: level for name, level in more.default_permissions.items() if plain.default_permissions[name] != level
    }
    assert changed == {"contents": "write"}


def test_every_permission_is_explained() -> None:
    assert set(PURPOSES) == set(manifest().extended(test_pulls=False, members=True).default_permissions)


def test_tokens_request_only_permissions_of_the_app() -> None:
    permissions = manifest().extended(test_pulls=True, members=False).default_permissions
    for needed in (tokens.READ, tokens.WRITE, tokens.CONTENTS):
        assert all(permissions[name] in (level, "write") for name, level in needed.items())


def test_the_manifest_subscribes_to_every_parsed_event() -> None:
    unasked = {"installation", "installation_repositories", "installation_target", "ping"}
    assert set(manifest().default_events) == set(NAMES) - unasked


def test_missing_permissions_and_events_are_named() -> None:
    app_manifest = manifest()
    assert app_manifest.gaps(app_manifest.default_permissions, app_manifest.default_events) == ()
    more = {**app_manifest.default_permissions, "contents": "write"}
    assert app_manifest.gaps(more, [*app_manifest.default_events, "star"]) == ()
    granted = {**app_manifest.default_permissions, "issues": "read"}
    del granted["checks"]
    events = [event for event in app_manifest.default_events if event != "issues"]
    assert app_manifest.gaps(granted, events) == (
        "permission issues: write (granted: read)",
        "permission checks: write (granted: none)",
        "event issues",
    )


def test_the_posted_manifest_points_to_this_server() -> None:
    posted = manifest().posted("https://bouncer.example.com/", name="bouncer-octo")
    assert posted["name"] == "bouncer-octo"
    assert posted["hook_attributes"]["url"] == "https://bouncer.example.com/webhook"
    assert posted["redirect_url"] == "https://bouncer.example.com/setup/callback"


def test_an_app_yml_that_is_missing_or_wrong_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "app.yml"
    monkeypatch.setattr(registration, "_PLACES", (place,))
    manifest.cache_clear()
    with pytest.raises(OperatorError, match=r"app\.yml is missing"):
        manifest()
    place.write_text("name: [\n")
    with pytest.raises(OperatorError, match=r"app\.yml: cannot be used: "):
        manifest()
    place.write_text("name: x\n")
    with pytest.raises(OperatorError, match=r"app\.yml: cannot be used: "):
        manifest()
    monkeypatch.undo()
    manifest.cache_clear()
