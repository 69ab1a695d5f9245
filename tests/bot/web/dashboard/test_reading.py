"""The texts of the pages: as on GitHub, with links to the place; and the page about the threshold."""

from __future__ import annotations

import hashlib
import time

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import update

from bot.calibration.fates import GRACE
from bot.core.actions import Decision, Usage
from bot.core.subjects import KnownFate, Subject
from bot.features.feedback.record import FeedbackRecord
from bot.features.review.record import Doubt, ReviewRecord, Suppressed
from bot.features.shared.findings import Category, Dropped, Impact, Reported, Severity
from bot.models.protocol import Prompt
from bot.pipeline.metrics import exposition
from bot.pipeline.store.overview import Overview
from bot.pipeline.store.tables import MODEL_CALLS
from bot.web.app import Backend
from tests.bot.web.dashboard.conftest import dashboard, decision
from tests.bot.web.dashboard.test_access import log_in, token
from tests.builders import placed_finding


@pytest.fixture
def client(app: Flask, filled: Backend) -> FlaskClient:
    client = app.test_client()
    log_in(client)
    return client


def test_a_comment_is_shown_as_github_shows_it_with_a_link_to_it(client: FlaskClient) -> None:
    page = client.get("/decisions/7").text
    assert "Which <strong>files</strong> fail, and how? <code>Table.read</code>" in page
    assert "https://github.com/acme/rocket/issues/31#issuecomment-931" in page
    assert "+ needs-info" in page


def test_a_finding_is_shown_with_its_code_and_a_link_to_its_line(client: FlaskClient) -> None:
    page = client.get("/decisions/8").text
    assert "The <strong>last</strong> row is lost." in page
    assert "return rows[:-1]" in page
    assert "https://github.com/acme/rocket/pull/32#pullrequestreview-932" in page
    file = hashlib.sha256(b"rocket/table.py").hexdigest()
    assert f"/acme/rocket/pull/32/files/{'a' * 40}#diff-{file}R7" in page


def test_overview_refreshes_itself(client: FlaskClient) -> None:
    assert client.get("/").headers["Refresh"] == "60"


def test_a_server_in_shadow_mode_says_so(backend: Backend, filled: Backend) -> None:
    client = dashboard(backend, bouncer_mode="shadow").test_client()
    log_in(client)
    assert "nothing is posted" in client.get("/").text
    assert "The whole server is in shadow mode" in client.get("/shadow").text


def test_costs_show_calls_if_no_price_is_known(client: FlaskClient, backend: Backend) -> None:
    assert "US dollars on each of the last 30 days" in client.get("/costs").text
    backend.ledger.database.execute(update(MODEL_CALLS).values(cost_usd=None))
    assert "Model calls on each of the last 30 days" in client.get("/costs").text


def test_unposted_findings_are_listed_with_the_reason(client: FlaskClient, backend: Backend) -> None:
    finding = placed_finding(fingerprint="f9", comment="x is never read.", severity=Severity.LOW)
    reported = Reported(
        path="b.py", quote="gone", comment="It breaks.", category=Category.CODING,
        impact=Impact.FUNCTIONAL_SUITABILITY, severity=Severity.HIGH,
    )  # fmt: skip
    record = ReviewRecord(
        suppressed=(Suppressed(finding=finding, reason="doubted"),),
        doubts=(Doubt(fingerprint="f9", outcome="refuted", why="x is read in line 9"),),
        dropped=(Dropped(reported=reported, reason="quote_not_in_diff"),),
    )
    review = decision(40, kind="review", verdict="fine").model_copy(update={"record": record})
    backend.ledger.decisions.record("d40:review", (review,), "c0ffee")
    page = client.get("/decisions?text=%2340").text
    number = page.partition("/decisions/")[2].partition('"')[0]
    page = client.get(f"/decisions/{number}").text
    assert "(doubted: x is read in line 9): x is never read." in page
    assert "(quote not in diff): It breaks." in page


def test_an_alarm_tells_when_abstentions_jump(client: FlaskClient, backend: Backend) -> None:
    assert "have no verdict" not in client.get("/").text
    for number in range(50, 57):
        backend.ledger.decisions.record(f"d{number}:triage", (decision(number, verdict=None),), "c0ffee")
    alarm = "7 of the last 10 decisions have no verdict, most often because of model:refused"
    assert alarm in client.get("/").text
    assert Overview(backend.ledger.database).abstention_alarm() == alarm
    assert b"bouncer_abstention_alarm 1.0" in exposition(backend.ledger, backend.jobs)


def test_shadow_mode_shows_what_it_would_have_posted(client: FlaskClient) -> None:
    page = client.get("/shadow").text
    assert "Which <strong>files</strong> fail" in page
    assert "acme/rocket#33" in page
    assert "acme/rocket#31" not in page


def spent(app: Flask, backend: Backend, model: str, usage: Usage) -> FlaskClient:
    """An operator who is logged in, after a decision that took so much."""
    unpriced = decision(1).model_copy(update={"usage": usage})
    backend.ledger.decisions.record("d1:triage", (unpriced,), "c0ffee")
    prompt = Prompt(purpose="triage", system="s", user="1", subject="acme/rocket#1")
    backend.ledger.calls.record("d1:triage", prompt, "InputReply", model, usage, reply="{}")
    client = app.test_client()
    log_in(client)
    return client


def test_an_unknown_cost_is_unknown_and_not_none(app: Flask, backend: Backend) -> None:
    client = spent(app, backend, "openai:own", Usage(calls=2, input_tokens=10, output_tokens=5, seconds=1.0))
    for path in ("/decisions", "/decisions/1", "/costs"):
        page = client.get(path).text
        assert "unknown" in page, path
        assert "0.0000 $" not in page, path


def test_cached_tokens_are_shown_with_a_call_and_with_the_costs(app: Flask, backend: Backend) -> None:
    cached = Usage(calls=1, input_tokens=1_000, output_tokens=5, cached_tokens=800, seconds=1.0, cost_usd=0.01)
    client = spent(app, backend, "openai:gpt-5", cached)
    assert "1000 (800 cached) + 5" in client.get("/decisions/1").text
    costs = client.get("/costs").text
    assert '<td class="number">1005</td><td class="number">800</td>' in costs


def test_all_failed_jobs_can_be_retried_at_once(client: FlaskClient, filled: Backend) -> None:
    page = client.get("/jobs?state=dead")
    assert "Retry all failed jobs" in page.text
    assert client.post("/retry-failed", data={"token": token(page)}).status_code == 303
    assert filled.jobs.get("dead:triage").state == "queued"


def test_jobs_of_an_outage_are_judged_again_at_once(client: FlaskClient, filled: Backend) -> None:
    decisions = filled.ledger.decisions
    abstention = decision(4, verdict=None).model_copy(update={"abstained": "model:unavailable"})
    decisions.record("dead:triage", (abstention,), "c0ffee")
    decisions.settle("dead:triage", 0, "nothing")
    page = client.get("/rejudge?since=2026-01-01&limit=10")
    assert "Judge 2 jobs again" in page.text
    form = {"token": token(page), "since": "2026-01-01", "limit": "10"}
    assert client.post("/rejudge", data=form).status_code == 303
    assert filled.jobs.get("dead:triage").state == "queued"


def test_a_recheck_in_an_unknown_repository_is_refused(client: FlaskClient) -> None:
    page = client.get("/decisions/5")
    refused = client.post("/decisions/5/recheck", data={"token": token(page)})
    assert refused.status_code == 409
    assert "comment `/bouncer recheck` there instead" in refused.text


def tell(backend: Backend, number: int, *, good: bool, chance: int | None, bouncer: str = "triage") -> None:
    """A subject that was judged under a promise of 5 %, with the line at 60, and what became of it."""
    fate = KnownFate(
        subject=f"acme/rocket#{number}",
        bouncer=bouncer,  # type: ignore[arg-type]
        good=good,
        why="closed",
        p_bounce=chance,
        bounced=chance is not None and chance >= 60,
        harm=5,
    )
    subject = Subject(repository="acme/rocket", number=number, revision="")
    decision = Decision(
        kind="feedback",
        subject=subject,
        record=FeedbackRecord.model_validate({"fates": [fate.model_dump(mode="json")]}),
    )
    backend.ledger.decisions.record(f"end{bouncer}{number}", (decision,), "c0ffee")


def page(app: Flask, backend: Backend) -> str:
    client = app.test_client()
    log_in(client)
    return client.get("/line?repository=acme/rocket").text


def test_a_promise_that_holds_is_shown_beside_other_thresholds(app: Flask, backend: Backend) -> None:
    for number in range(40):
        tell(backend, number, good=True, chance=number % 50)
    for number in range(40, 50):
        tell(backend, number, good=False, chance=70)
    text = page(app, backend)
    assert "The promise holds so far" in text
    assert "Your setting bounced 0 of 40 issues that a merged pull request closed, and 10 of 10" in text
    assert text.count("<svg") == 3
    assert "at or above 30 %" in text


def test_a_broken_promise_is_a_warning(app: Flask, backend: Backend) -> None:
    for number in range(40):
        tell(backend, number, good=True, chance=80 if number % 4 == 0 else 5)
    assert "The promise is broken: at most 5 %" in page(app, backend)


def test_a_merge_counts_once_nothing_has_undone_it_for_thirty_days(backend: Backend) -> None:
    tell(backend, 1, good=True, chance=10, bouncer="verify")
    tell(backend, 2, good=False, chance=10, bouncer="verify")
    ledger = backend.ledger
    assert [fate.subject for fate in ledger.fates.of("acme/rocket", "verify")] == ["acme/rocket#2"]
    ledger.database.clock = lambda: time.time() + GRACE.total_seconds() + 60
    assert [fate.good for fate in ledger.fates.of("acme/rocket", "verify")] == [False, True]
    ledger.database.clock = time.time
    tell(backend, 1, good=False, chance=10, bouncer="verify")
    assert [fate.good for fate in ledger.fates.of("acme/rocket", "verify")] == [False, False]
