"""Only servers read the ``.env`` file of their folder: a checkout may contain one of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click import Command, Group, Option
from pytest_httpserver import HTTPServer

from bot.cli import COMMANDS, LazyGroup
from bot.settings import Settings
from tests import forked
from tests.bot.cli.github_commands import Ran

KEY = "sk-canary-of-the-user-0123456789"
DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture
def checkout(tmp_path: Path, httpserver: HTTPServer) -> Path:
    """A foreign repository, with an ``.env`` that would send keys away and write into the user's files."""
    httpserver.expect_request("/v1/chat/completions").respond_with_json({})
    (tmp_path / ".env").write_text(
        f"OPENAI_BASE_URL={httpserver.url_for('/v1')}\nBOUNCER_RECORD_FILE={tmp_path}/profile\n"
        f"DATABASE_URL=sqlite:///{tmp_path}/planted.db\n"
    )
    (tmp_path / "issue.md").write_text("It crashes\n\nOn an empty file.\n")
    (tmp_path / "fix.diff").write_text(DIFF)
    replies = [{"model": "m", "subject": "offline/files#1", "explanation": "Clear.", "label": "WELL_SPECIFIED"}]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(item) + "\n" for item in replies))
    return tmp_path


def run(folder: Path, *arguments: str, **environment: str) -> Ran:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("BOUNCER_", "OPENAI_"))}
    ran = forked.run(*arguments, environment={**clean, **environment}, folder=folder)
    return Ran(ran.code, ran.out.decode(), ran.err.decode())


def test_a_planted_env_file_does_nothing_to_commands_on_files(checkout: Path, httpserver: HTTPServer) -> None:
    # A closed port stands for the provider.
    here = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "BOUNCER_MODEL": "openai:gpt-5-mini",
    }
    (checkout / ".env").write_text((checkout / ".env").read_text() + "BOUNCER_MODEL_SECONDS=-1\n")
    recorded = {"BOUNCER_MODEL": "recorded:replies.jsonl#m"}
    done = run(checkout, "triage", "issue.md", "--json", **recorded)
    assert (done.code, json.loads(done.out)["label"]) == (0, "WELL_SPECIFIED"), done.err
    run(checkout, "verify", "--issue", "issue.md", "--patch", "fix.diff", **recorded)
    run(checkout, "review", "--diff", "fix.diff", **{**here, "BOUNCER_MODEL_SECONDS": "1"})
    assert "does not exist" in run(checkout, "jobs", "list", DATABASE_URL="sqlite:///gone.db").err
    assert "planted.db" not in run(checkout, "jobs", "list").err
    assert not (checkout / "profile").exists()
    assert httpserver.log == []


def test_a_file_that_the_user_names_is_read_and_the_environment_wins(checkout: Path) -> None:
    (checkout / "mine").write_text("BOUNCER_MODEL=recorded:replies.jsonl#m\nBOUNCER_RECORD_FILE=said.jsonl\n")
    done = run(checkout, "triage", "issue.md", "--json", "--env-file", "mine")
    assert json.loads(done.out)["label"] == "WELL_SPECIFIED", done.err
    assert (checkout / "said.jsonl").exists()
    other = run(checkout, "triage", "issue.md", "--env-file", "mine", BOUNCER_MODEL="nonsense")
    assert "nonsense" in other.err
    for wrong, why in (("gone", "gone: No such file"), ("fix.diff", "fix.diff, line 1: not of the form")):
        refused = run(checkout, "triage", "issue.md", "--env-file", wrong)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert refused.err.startswith(f"bouncer: {why}")


def test_servers_and_the_doctor_read_theirs(checkout: Path) -> None:
    findings = json.loads(run(checkout, "doctor", "--json", "--skip", "model").out)["findings"]
    assert any("planted.db" in str(item) for item in findings)


def options(command: Command) -> list[str]:
    nested = (
        [item for child in command.commands.values() for item in options(child)]
        if isinstance(command, Group)
        else []
    )
    return [flag for item in command.params if isinstance(item, Option) for flag in item.opts] + nested


def test_no_command_takes_a_secret_as_an_option(bouncer: Callable[..., Ran]) -> None:
    group = LazyGroup("bouncer", "", COMMANDS)
    fields = [name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)]
    secrets = {f"--{name.removeprefix('bouncer_').replace('_', '-')}" for name in fields}
    assert "--notify-url" in secrets
    for name in COMMANDS:
        command = group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for flag in options(command):
            assert not any(word in flag for word in ("secret", "password", "api-key")), (name, flag)
            assert flag not in secrets
    for name in ("serve", "web", "worker", "doctor", "jobs"):
        words = (name, "list") if name == "jobs" else (name,)
        code, _, message = bouncer(*words, "--database-url", "postgresql://me:canary@127.0.0.1/x")
        assert (code, message.count("\n")) == (2, 1)
        assert "--database-url: a password on the command line" in message
        assert "canary" not in message
