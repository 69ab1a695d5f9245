"""A refused key, an unknown model, no credit: jobs wait for the operator, who is told, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.core.errors import OperatorNeeded, ProviderRefused, TransientError
from bot.models.conversation import ReportingRefusals
from bot.models.wrappers import Fallback
from bot.pipeline.scheduler import MAX_TRIES
from bot.pipeline.store import Database
from bot.pipeline.store.calls import Faults
from tests.bot.models.replies import CLEAR, PROMPT, Verdict
from tests.bot.pipeline.rig import REPLY, REPOSITORY, Rig, rigged, wait
from tests.bot.pipeline.test_runner import NAME, Bench, bench
from tests.e2e.site import PASSWORD, Browser
from tests.scripted import ScriptedModel

__all__ = ["bench"]

HOUR = 3600.0
DAY = 24 * HOUR
REFUSED = "openai refused the key (401): check OPENAI_API_KEY"


def refuse(bench: Bench, error: Exception | None) -> None:
    """Have the provider refuse every question with this, or answer as usual."""
    model = ScriptedModel(lambda prompt: dict(REPLY) if error is None else error)  # type: ignore[return-value]
    faults = Faults(bench.desk.ledger.database)
    bench.use(bench.desk.writer, replace(bench.services, model=ReportingRefusals(model, faults)))


def test_a_job_waits_from_minutes_to_hours_until_the_key_is_repaired(bench: Bench) -> None:
    refuse(bench, ProviderRefused(REFUSED))
    job = bench.open()
    pauses = []
    accepted = bench.now[0]
    for _ in range(8):
        waiting = bench.run(job)
        assert (waiting.state, waiting.tries, waiting.error) == ("waiting", 0, REFUSED)
        pauses.append(waiting.due - bench.now[0])
    assert 5 * 60 <= pauses[0] < 6 * 60
    assert pauses[1:6] == sorted(pauses[1:6])
    bench.now[0] = accepted + 6.9 * DAY
    assert 4 * HOUR <= bench.run(job).due - bench.now[0] < 4.5 * HOUR
    assert bench.desk.ledger.faults.all()[0].why == REFUSED
    refuse(bench, None)
    assert bench.run(job).outcome == "posted"
    assert len(bench.desk.github.comments(NAME, 1)) == 1
    assert bench.desk.ledger.faults.all() == ()


def test_an_outage_of_a_day_loses_no_verdict(bench: Bench) -> None:
    why = "openai could not be reached: ConnectError"
    refuse(bench, TransientError(why))
    job = bench.open()
    pauses = []
    for _ in range(MAX_TRIES + 12):
        waiting = bench.run(job)
        assert (waiting.state, waiting.error) == ("waiting", why)
        pauses.append(waiting.due - bench.now[0])
        bench.now[0] = waiting.due
    assert bench.now[0] - waiting.created_at > DAY
    assert pauses[-1] >= 4 * HOUR
    refuse(bench, None)
    assert bench.run(job).outcome == "posted"


@pytest.mark.usefixtures("database")
def test_a_model_s_answer_brings_waiting_jobs_forward(bench: Bench) -> None:
    refuse(bench, ProviderRefused(REFUSED))
    waiting = [bench.open(f"Broken {number}") for number in range(3)]
    assert {bench.run(job).state for job in waiting} == {"waiting"}
    refuse(bench, None)
    assert bench.run(bench.open("Broken too")).outcome == "posted"
    bench.queue.start_due()
    assert [bench.queue.get(job).state for job in waiting] == ["queued"] * 3
    assert {bench.run(job).outcome for job in waiting} == {"posted"}


def test_a_job_that_fails_again_is_brought_forward_every_5_minutes_at_most(bench: Bench) -> None:
    hopeless = OperatorNeeded("no answer about this one")
    model = ScriptedModel(lambda prompt: hopeless if "hopeless" in prompt.user else dict(REPLY))
    bench.use(bench.desk.writer, replace(bench.services, model=model))
    job = bench.open("hopeless")
    bench.run(job)
    starts = []
    for number in range(10):
        assert bench.run(bench.open(f"Broken {number}")).outcome == "posted"
        bench.queue.start_due()
        if bench.queue.get(job).state == "queued":
            starts.append(number)
            bench.queue.run(job, bench.runner.run)
        bench.now[0] += 60
    assert starts == [0, 5]


def test_a_chain_waits_only_if_no_model_of_it_answers(database: Database) -> None:
    faults = Faults(database)
    bad = ReportingRefusals(ScriptedModel(lambda prompt: ProviderRefused(REFUSED), "bad"), faults)
    refusing = ScriptedModel(lambda prompt: ProviderRefused("another"), "worse")
    assert Fallback((bad, ScriptedModel([CLEAR]))).complete(PROMPT, Verdict).model == "scripted:test"
    assert [fault.model for fault in faults.all()] == ["scripted:bad"]
    with pytest.raises(OperatorNeeded, match=r"refused the key.*another"):
        Fallback((bad, ReportingRefusals(refusing, faults))).complete(PROMPT, Verdict)
    faults.keep_only(["scripted:worse"])
    assert [fault.model for fault in faults.all()] == ["scripted:worse"]


@pytest.fixture
def rig(httpserver: HTTPServer, tmp_path: Path) -> Iterator[Rig]:
    with rigged(tmp_path) as rig:
        rig.environment |= {
            "BOUNCER_MODEL": "openai:gpt-5-mini",
            "BOUNCER_ADMIN_PASSWORD": PASSWORD,
            "OPENAI_API_KEY": "sk-canary-0123456789",
            "OPENAI_BASE_URL": httpserver.url_for("/v1"),
        }
        yield rig


@pytest.mark.timeout(180)
def test_the_operator_is_told_and_the_job_goes_on_after_the_repair(httpserver: HTTPServer, rig: Rig) -> None:
    repaired: list[bool] = []

    def answer(request: Request) -> Response:
        if not repaired:
            refusal = {"error": {"message": "Incorrect API key provided"}}
            return Response(json.dumps(refusal), 401, content_type="application/json")
        choice: dict[str, Any] = {"message": {"content": json.dumps(REPLY)}, "finish_reason": "stop"}
        return Response(json.dumps({"choices": [choice]}), content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    httpserver.expect_request("/v1/models/gpt-5-mini").respond_with_handler(answer)
    rig.web()
    worker = rig.worker()
    wait(rig.ready, 60, "web and worker up")
    wait(lambda: rig.ledger.faults.all(), 60, "the check at the start")
    assert "model_refused" in rig.log.read_text()
    number = rig.github.open_issue(REPOSITORY, "It broke", "It broke.")
    assert rig.deliver("issues", rig.opened(number)) == 202
    wait(lambda: rig.jobs.list(("waiting",)), 60, "the job waits")
    assert rig.ledger.decisions.decisions(f"{REPOSITORY}#{number}") == ()
    assert '"error"' in next(line for line in rig.log.read_text().splitlines() if "job_waits_for_operator" in line)
    browser = Browser(f"http://127.0.0.1:{rig.port}")
    assert "provider refuses requests" in json.loads(browser.get("/readyz"))["notice"]
    overview = browser.get("/")
    assert "openai:gpt-5-mini: openai" in overview
    assert "resume by themselves after the repair" in overview

    repaired.append(True)
    rig.kill(worker)
    rig.worker()  # it checks the key when it starts
    wait(lambda: rig.github.comments(REPOSITORY, number), 60, "the verdict")
    wait(lambda: rig.ledger.faults.all() == (), 60, "the notice goes")
    assert "notice" not in json.loads(browser.get("/readyz"))
    assert "sk-canary" not in rig.log.read_text()
