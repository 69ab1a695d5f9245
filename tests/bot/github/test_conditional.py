"""Repeated reads send the ETag: an unchanged answer costs no quota."""

from __future__ import annotations

from functools import lru_cache

import pytest

from bot.core.errors import NotFound
from bot.github import http
from bot.github.http import Answers, Raw
from tests.bot.github.conftest import NAME, Site


def statuses(site: Site, ending: str) -> list[int]:
    return [request.status for request in site.github.requests if request.path.endswith(ending)]


def test_only_a_changed_answer_is_read_again_and_costs_quota(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    site.github.comment(NAME, number, "Which version?")
    for title in ("Reading fails", "Reading an empty file fails"):
        site.github.edit(NAME, number, title=title)
        for _ in range(2):
            assert site.forge.issue(number).title == title
            assert [comment.body for comment in site.forge.comments(number)] == ["Which version?"]
    assert statuses(site, f"/issues/{number}") == [200, 304, 200, 304]
    assert statuses(site, "/comments") == [200, 304, 304, 304]


def test_a_diff_and_its_pull_request_are_stored_separately(site: Site) -> None:
    number = site.github.open_pull(NAME, "Change", files={"a.txt": "a\n"})
    for _ in range(2):
        assert site.forge.pull_request(number).title == "Change"
        assert "+++ b/a.txt" in site.forge.diff(number).text
    assert statuses(site, f"/pulls/{number}") == [200, 200, 304, 304]


def test_a_deleted_object_is_not_served_from_the_store(site: Site) -> None:
    site.github.commit(NAME, {"notes.md": "here\n"})
    assert site.forge.file("notes.md", "main") == b"here\n"
    site.github.commit(NAME, {"notes.md": None})
    with pytest.raises(NotFound):
        site.forge.file("notes.md", "main")


def test_stored_answers_stay_within_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CACHE_BYTES", 3 * http.CACHE_OVERHEAD + 1_000)
    monkeypatch.setattr(http, "CACHED_ANSWER_BYTES", http.CACHE_OVERHEAD + 200)
    answers = Answers()
    answers.store("large", Raw(200, {"etag": "1"}, "x" * 201))
    answers.store("wide", Raw(200, {"etag": "1"}, "\U0001f600" * 60))
    answers.store("unmarked", Raw(200, {}, "x"))
    for key in range(10):
        answers.store(key, Raw(200, {"etag": "1"}, "x" * 30))
        answers.store(key, Raw(200, {"etag": "2", "date": "today"}, "x" * 30))
    assert [key for key in range(10) if answers.find(key)] == [7, 8, 9]
    assert answers.find(9) == Raw(200, {"etag": "2"}, "x" * 30)
    assert answers.find("large") is answers.find("wide") is answers.find("unmarked") is None


def test_etags_survive_the_replacement_of_a_token(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.app, "_forge", lru_cache(1)(site.app._make))
    number = site.github.open_issue(NAME, "Reading fails")
    for _ in range(2):
        assert site.forge.issue(number).title == "Reading fails"
        site.app.forge(site.installation.id, "octo/secret")[0].about()
    assert statuses(site, f"/issues/{number}") == [200, 304]
    assert statuses(site, "/access_tokens") == [201] * 4
