"""Commands against the simulated GitHub over HTTP, with a model of the OpenAI protocol that a test scripts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.cli import main
from bot.simgithub import SimulatedGitHub
from tests import forked

CLEAR = {"explanation": "All there.", "open_points": [], "p_bounce": 5, "label": "WELL_SPECIFIED"}
VAGUE = {"explanation": "Of what?", "open_points": ["Which file?"], "p_bounce": 80, "label": "VAGUE"}
SOLVES = {"explanation": "It does.", "covered": [], "missing": [], "p_bounce": 5, "label": "CORRECT_AND_PRECISE"}
DEFECT = {
    "reasoning": "It divides.",
    "findings": [
        {
            "path": "app.py",
            "quote": "share = total / count",
            "comment": "This fails with ZeroDivisionError for an empty list. Nothing keeps count from 0.",
            "category": "logic",
            "impact": "reliability",
            "severity": "high",
        }
    ],
}


class Ran(NamedTuple):
    """The output and exit code of a command."""

    code: int
    out: str
    err: str


def run_here(captured: pytest.CaptureFixture[str], *arguments: str) -> Ran:
    """Run ``bouncer`` in this process."""
    captured.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert isinstance(ended.value.code, int)
    return Ran(ended.value.code, *captured.readouterr())


class Desk:
    """A simulated GitHub with one repository, and a model whose reply follows from words in the question."""

    def __init__(
        self, github: SimulatedGitHub, server: HTTPServer, folder: Path, captured: pytest.CaptureFixture[str]
    ) -> None:
        self.github, self.folder, self._captured = github, folder, captured
        self.replies: dict[str, dict[str, Any]] = {}
        self.questions: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.refused = 0
        github.create_repository("acme/rocket", {"app.py": "count = 0\n"})
        server.expect_request("/v1/chat/completions").respond_with_handler(self._answer)
        self._model_url = server.url_for("/v1")

    def _answer(self, request: Request) -> Response:
        self.requests.append(request.get_json())
        text = json.dumps(self.requests[-1]["messages"])
        self.questions.append(text)
        if self.refused:
            self.refused -= 1
            return Response('{"error": {"message": "Incorrect API key"}}', status=401)
        answer = next((reply for word, reply in self.replies.items() if word in text), CLEAR)
        message = {"role": "assistant", "content": json.dumps(answer)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-5-mini"}
        return Response(json.dumps({**body, "choices": [choice], "usage": usage}), mimetype="application/json")

    def url(self, kind: str, number: int) -> str:
        return f"{self.github.web_url}/acme/rocket/{kind}/{number}"

    def environment(self, token: str = "", **more: str) -> dict[str, str]:
        """Return the only variables that a command finds set."""
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GITHUB_API_URL": self.github.api_url,
            "GITHUB_WEB_URL": self.github.web_url,
            "GITHUB_TOKEN": token,
            "OPENAI_API_KEY": "sk-of-a-test-of-commands",
            "OPENAI_BASE_URL": self._model_url,
            "BOUNCER_MODEL": "openai:gpt-5-mini",
            **more,
        }
        return {name: value for name, value in variables.items() if value}

    def process(self, *arguments: str, **environment: str) -> Ran:
        """Run ``bouncer`` in a process of its own."""
        ran = forked.run(*arguments, environment=self.environment(**environment), folder=self.folder)
        return Ran(ran.code, ran.out.decode(), ran.err.decode())

    def run(self, *arguments: str, **environment: str) -> Ran:
        """The same in this process, which is quicker."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name in [name for name in os.environ if name.startswith(("GITHUB_", "BOUNCER_", "OPENAI_"))]:
                patch.delenv(name)
            for name, value in self.environment(**environment).items():
                patch.setenv(name, value)
            return run_here(self._captured, *arguments)

    def writes(self) -> list[str]:
        """Return the requests to GitHub that are not reads."""
        writes = (name for name in self.github.requests if name.method != "GET" and name.path != "/graphql")
        return [f"{name.method} {name.path} {name.status}" for name in writes]
