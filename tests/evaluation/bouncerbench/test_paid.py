"""With a model that costs money: what was paid for is kept, and the cap holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.evaluation.running import Ran, command, refusal, write

SAID = {"explanation": "e", "open_points": [], "missing": [], "p_bounce": 20, "label": "WELL_SPECIFIED"}
#: gpt-4.1 at 2 and 8 USD per million tokens.
PRICE_OF_A_CALL = (50_000 * 2 + 2_500 * 8) / 1e6


class Provider:
    """Answers chat completions and counts them."""

    def __init__(self) -> None:
        self.calls = 0

    def answer(self, request: Request) -> Response:
        self.calls += 1
        body = {
            "model": "gpt-4.1",
            "choices": [{"message": {"role": "assistant", "content": json.dumps(SAID)}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 50_000, "completion_tokens": 2_500},
        }
        return Response(json.dumps(body), content_type="application/json")


@pytest.fixture
def provider(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Provider:
    provider = Provider()
    httpserver.expect_request("/v1/chat/completions").respond_with_handler(provider.answer)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return provider


@pytest.fixture
def tasks() -> Path:
    return write("t.jsonl", [{"instance_id": f"o__n-{n}", "problem_statement": f"Task-{n}."} for n in range(12)])


def replay(tasks: Path, *more: object, code: int = 0) -> Ran:
    source = ("bouncerbench-input", "--tasks", tasks, "--model", "openai:gpt-4.1")
    return command("replay", *source, "--out", "run", "--json", *more, code=code)


def test_the_cap_is_never_passed_and_raising_it_goes_on(provider: Provider, tasks: Path) -> None:
    capped = replay(tasks, "--max-cost", "0.80", "--workers", 4, code=1)
    assert "budget of this run" in capped.json["stopped"]
    assert 0 < capped.json["usage"]["cost_usd"] <= 0.80
    first = provider.calls
    assert 0 < first == capped.json["records"] < 12
    assert replay(tasks, "--max-cost", "0.80", code=1).json["finished"] == 0
    assert provider.calls == first
    rest = replay(tasks, "--max-cost", "50")
    assert (rest.json["records"], provider.calls) == (12, 12)
    assert rest.json["usage"]["cost_usd"] == pytest.approx(12 * PRICE_OF_A_CALL)
    assert rest.json["usage"]["input_tokens"] == 600_000


def test_a_reply_is_not_paid_for_again_after_its_record_was_lost(
    provider: Provider, tasks: Path, tmp_path: Path
) -> None:
    replay(tasks)
    (tmp_path / "run/records.jsonl").write_text("")
    again = replay(tasks)
    assert (again.json["records"], provider.calls) == (12, 12)


def test_another_run_may_share_the_replies(provider: Provider, tasks: Path) -> None:
    replay(tasks, "--cache", "kept")
    moved = command(
        f"replay bouncerbench-input --tasks {tasks} --model openai:gpt-4.1 --cache kept --out other "
        "--set triage.bounce_at=REASONABLY_SPECIFIED --json"
    )
    assert (moved.json["records"], provider.calls) == (12, 12)


def test_a_cap_without_a_known_price_is_refused(provider: Provider, tasks: Path) -> None:
    source = ("bouncerbench-input", "--tasks", tasks, "--model", "openai:our-own")
    assert "no price is known" in refusal("replay", *source, "--out", "x", "--max-cost", "1")
