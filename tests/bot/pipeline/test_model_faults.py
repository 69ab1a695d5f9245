"""Whatever a provider does, an issue ends with exactly one right comment, or with an abstention that says why."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.simgithub import SimulatedGitHub
from tests.bot.pipeline.rig import REPLY, REPOSITORY, Rig, wait


def said(content: str | None, finish: str = "stop", **message: str) -> Response:
    choice = {"message": {"content": content, **message}, "finish_reason": finish}
    body = {"choices": [choice], "usage": {"prompt_tokens": 200, "completion_tokens": 50}}
    return Response(json.dumps(body), content_type="application/json")


def failed(status: int, **headers: str) -> Response:
    return Response('{"error": {"message": "no"}}', status, headers, content_type="application/json")


GOOD = said(json.dumps(REPLY))
CUT = said('{"explanation": "and then', "length")
PAGE = Response("<html>Sign in</html>", content_type="text/html")
BROKEN = Response('{"choices": [{"mes', content_type="application/json")


def short() -> Response:
    """Promises more than it sends; its body can be sent once."""
    body = iter([b'{"choices"'])
    return Response(body, headers={"Content-Length": "500"}, content_type="application/json")


NONSENSE = said("I would say that it is rather vague.")

#: What the provider answers, one after the other (the last for ever), and what becomes of the issue.
FAULTS: dict[str, tuple[list[Response], str]] = {
    "nothing": ([GOOD], "commented"),
    "429": ([failed(429, **{"Retry-After": "1"}), GOOD], "commented"),
    "500": ([failed(500), GOOD], "commented"),
    "500 for a while": ([failed(500), failed(502), failed(503), GOOD], "commented"),
    "cut stream": ([short(), GOOD], "commented"),
    "unusable once": ([NONSENSE, GOOD], "commented"),
    "length once": ([CUT, GOOD], "commented"),
    "null content once": ([said(None), GOOD], "commented"),
    "unusable": ([NONSENSE], "model:malformed"),
    "wrong label": ([said('{"explanation": "x", "label": "MAYBE"}')], "model:invalid"),
    "length": ([CUT], "model:length"),
    "refusal": ([said(None, refusal="I cannot help with that.")], "model:refused"),
    "html body": ([PAGE], "model:malformed"),
    "malformed json": ([BROKEN], "model:malformed"),
    "no choices": ([Response('{"choices": []}', content_type="application/json")], "model:malformed"),
    "bad request": ([failed(400)], "model:unavailable"),
}


@pytest.mark.timeout(180)
def test_every_fault_of_a_model_ends_well(httpserver: HTTPServer, tmp_path: Path) -> None:
    counts: dict[str, int] = defaultdict(int)

    def answer(request: Request) -> Response:
        question = json.loads(request.data)["messages"][1]["content"]
        match = re.search(r"fault: (.+)", question)
        assert match
        name = match[1]
        script = FAULTS[name][0]
        counts[name] += 1
        return script[min(counts[name], len(script)) - 1]

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    with SimulatedGitHub() as github:
        rig = Rig(github, f"sqlite:///{tmp_path / 'b.db'}", tmp_path)
        rig.environment |= {
            "BOUNCER_MODEL": "openai:gpt-5-mini",
            "OPENAI_API_KEY": "sk-canary-0123456789",
            "OPENAI_BASE_URL": httpserver.url_for("/v1"),
        }
        try:
            rig.web()
            rig.worker()
            wait(rig.ready, 60, "web and worker up")
            numbers = {name: github.open_issue(REPOSITORY, f"fault: {name}", "It broke.") for name in FAULTS}
            for number in numbers.values():
                assert rig.deliver("issues", rig.opened(number)) == 202
            wait(lambda: set(rig.jobs.counts()) == {"done"}, 120, "all jobs done")

            for name, number in numbers.items():
                (decision,) = rig.ledger.decisions.decisions(f"{REPOSITORY}#{number}", "triage")
                comments = github.comments(REPOSITORY, number, by="bouncer[bot]")
                if FAULTS[name][1] == "commented":
                    assert decision.verdict == "VAGUE", name
                    assert len(comments) == 1, name
                    assert "Which version is this?" in comments[0]
                else:
                    assert (decision.verdict, decision.abstained) == (None, FAULTS[name][1]), name
                    assert decision.reason.startswith("openai"), name
                    assert comments == [], name
                    assert github.labels(REPOSITORY, number) == [], name
            assert "canary" not in rig.log.read_text()
        finally:
            rig.close()
