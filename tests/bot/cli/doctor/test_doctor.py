"""``bouncer doctor`` against a simulated GitHub: a line for each thing that is wrong, and what to do about it."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from bot.cli.doctor import AREAS
from bot.cli.doctor.remote import _clock
from bot.pipeline.store.database import open_database
from bot.pipeline.store.migration import migrate
from bot.settings import Settings
from bot.simgithub import SimulatedGitHub
from tests.bot.cli.github_commands import Ran

CANARY = "canary-0123456789-abcdef"
PUBLIC = "https://bouncer.example"


@dataclass
class Office:
    """A working set-up, in the environment of this test."""

    github: SimulatedGitHub
    model: HTTPServer
    environment: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def office(httpserver: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    output = {"choices": [{"message": {"content": '{"word": "ok"}'}, "finish_reason": "stop"}]}
    httpserver.expect_request("/v1/chat/completions").respond_with_json(output)
    with SimulatedGitHub() as github:
        app = github.create_app(webhook_url=f"{PUBLIC}/webhook", webhook_secret=CANARY)
        github.create_repository("octo/demo")
        github.install(app, "octo/demo")
        new_office = Office(github, httpserver)
        new_office.environment = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_APP_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": CANARY,
            "GITHUB_API_URL": github.api_url,
            "BOUNCER_PUBLIC_URL": PUBLIC,
            "BOUNCER_MODEL": "openai:gpt-5-mini",
            "BOUNCER_ADMIN_PASSWORD": CANARY,
            "BOUNCER_DAILY_BUDGET_USD": "5",
            "OPENAI_API_KEY": CANARY,
            "OPENAI_BASE_URL": httpserver.url_for("/v1"),
            "DATABASE_URL": f"sqlite:///{tmp_path / 'b.db'}",
        }
        yield new_office


Run = Callable[..., tuple[int, str]]


def all_but(area: str) -> list[str]:
    """Return the options that skip every other area."""
    return [word for other in AREAS if other != area for word in ("--skip", other)]


@pytest.fixture
def run(office: Office, monkeypatch: pytest.MonkeyPatch, bouncer: Callable[..., Ran]) -> Run:
    """Run ``bouncer doctor`` without sandbox and address (tested apart); returns exit code and output."""

    def doctor(*arguments: str, **environment: str | None) -> tuple[int, str]:
        for name, value in {**office.environment, **environment}.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        ran = bouncer("doctor", "--verbose", "--skip", "sandbox", "--skip", "address", *arguments)
        return ran.code, ran.out + ran.err

    return doctor


def test_a_working_set_up_passes_with_one_line_for_every_setting(run: Run) -> None:
    code, output = run()
    assert code == 0, output
    assert not any(line.startswith("fail") for line in output.splitlines())
    for name in Settings.model_fields:
        assert f"  {name.upper()}: " in output
    for line in (
        "ok    github app: bouncer (id ",
        "ok    permissions and events: all that app.yml names",
        "ok    installations: 1 (octo)",
        "ok    graphql: every field that is used",
        f"ok    webhook: {PUBLIC}/webhook",
        "ok    budget: openai:gpt-5-mini: all 5.00 USD a day",
        "ok    model openai:gpt-5-mini: answers in the schema",
        "note  database: ",
    ):
        assert line in output


def test_no_secret_is_printed(run: Run, office: Office) -> None:
    for arguments in ((), ("--json",)):
        _, output = run(*arguments, DATABASE_URL=f"postgresql://u:{CANARY}@127.0.0.1:9/x")
        assert CANARY not in output
        assert "PRIVATE KEY" not in output.replace("GITHUB_APP_PRIVATE_KEY", "")


def test_failures_come_first_and_the_last_line_counts(run: Run, office: Office) -> None:
    with_typo = {"BOUNCER_MODEL": None, "BOUNCER_TRUST_PROXI": "1"}
    code, text = run(**with_typo)
    assert code == 1
    rows = [line for line in text.splitlines() if not line.startswith("ok  ")]
    states = [line[:4] for line in rows[:-2]]
    assert states == sorted(states)
    assert rows[0].startswith("fail  BOUNCER_MODEL: not set")
    assert "note  BOUNCER_TRUST_PROXI: no setting has this name; did you mean BOUNCER_TRUST_PROXY?" in text
    assert re.fullmatch(r"\d+ checks fine", rows[-2])
    assert re.fullmatch(r"1 failure, \d notes", rows[-1])


def test_fine_checks_are_counted_without_verbose(
    office: Office, monkeypatch: pytest.MonkeyPatch, bouncer: Callable[..., Ran]
) -> None:
    for name in [name for name in os.environ if name.startswith("BOUNCER_")]:
        monkeypatch.delenv(name)  # a variable of the test run is none of the server's, and is named as unknown
    for name, value in office.environment.items():
        monkeypatch.setenv(name, value)
    text = bouncer("doctor", *all_but("settings")).out
    assert "ok  " not in text
    assert re.fullmatch(r"\d+ checks fine \(--verbose\)\nno failures, no notes\n", text)


def test_configuration_can_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, bouncer: Callable[..., Ran]
) -> None:
    content = io.BytesIO(b"triage:\n  mode: loud\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content))
    code, output, _ = bouncer("doctor", "--config", "-")
    assert code == 2
    assert output.startswith("-:2: triage.mode: ")


def test_looking_creates_nothing(run: Run, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    run()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"GITHUB_APP_ID": None}, "fail  GITHUB_APP_ID: not set"),
        ({"GITHUB_APP_PRIVATE_KEY": None}, "fail  GITHUB_APP_PRIVATE_KEY: neither it nor"),
        ({"GITHUB_WEBHOOK_SECRET": None}, "fail  GITHUB_WEBHOOK_SECRET: not set"),
        ({"BOUNCER_MODEL": None}, "fail  BOUNCER_MODEL: not set: nothing is judged or posted; name a model"),
        ({"BOUNCER_DAILY_BUDGET_USD": None}, "note  BOUNCER_DAILY_BUDGET_USD: not set"),
        ({"BOUNCER_ADMIN_PASSWORD": None}, "note  BOUNCER_ADMIN_PASSWORD: not set"),
        (
            {"GITHUB_APP_PRIVATE_KEY": None, "GITHUB_APP_PRIVATE_KEY_PATH": "/gone.pem"},
            "fail  private key: GITHUB_APP_PRIVATE_KEY_PATH: /gone.pem: No such file",
        ),
        ({"GITHUB_APP_PRIVATE_KEY": "nonsense"}, "fail  private key: "),
        (
            {"GITHUB_API_URL": "http://127.0.0.1:9"},
            "fail  github: http://127.0.0.1:9 does not answer (ConnectError)",
        ),
        ({"GITHUB_APP_ID": "424242"}, "fail  github app: "),
        (
            {"BOUNCER_PUBLIC_URL": "https://other.example"},
            f"fail  webhook: GitHub delivers to {PUBLIC}/webhook, not",
        ),
        (
            {"BOUNCER_PROMPTS_DIR": "/nowhere"},
            "fail  prompts: prompts (BOUNCER_PROMPTS_DIR): /nowhere is not a folder",
        ),
        (
            {"BOUNCER_PRICES_FILE": "/nowhere.yml"},
            "fail  prices: prices (BOUNCER_PRICES_FILE): /nowhere.yml cannot be read",
        ),
        ({"BOUNCER_DATA_DIR": "/proc/x"}, "fail  data folder: /proc is no folder that can be written to"),
        ({"DATABASE_URL": "sqlite:////nowhere/b.db"}, "fail  database: there is no folder /nowhere"),
        ({"DATABASE_URL": "postgresql://127.0.0.1:9/x"}, "fail  database: DATABASE_URL: cannot reach PostgreSQL"),
        (
            {"BOUNCER_MODEL": "gpt-5"},
            "fail  model: model 'gpt-5' (--model, BOUNCER_MODEL): must be one of openai:NAME",
        ),
        (
            {"BOUNCER_MODEL": "anthropic:claude-opus-5"},
            "fail  model: model anthropic:claude-opus-5: set ANTHROPIC_API_KEY",
        ),
        ({"BOUNCER_MODEL": "openai:brand-new"}, "fail  budget: model openai:brand-new: a budget in USD is set"),
        ({"BOUNCER_PAUSED": "true"}, "note  BOUNCER_PAUSED: everything is paused"),
        ({"BOUNCER_ADMINS": "ann,org:acme"}, "fail  BOUNCER_ADMINS: login with GitHub is not possible"),
        (
            {"BOUNCER_NOTIFY_URL": "http://127.0.0.1:9/hook"},
            "fail  BOUNCER_NOTIFY_URL: BOUNCER_NOTIFY_SECRET is not",
        ),
        ({"GITHUB_WEBHOOK_SECRET": "short"}, "note  GITHUB_WEBHOOK_SECRET: shorter than 16 characters"),
    ],
)
def test_what_is_wrong_is_one_line_with_a_remedy(run: Run, environment: dict[str, str | None], line: str) -> None:
    if line.startswith("fail  data folder") and os.geteuid() == 0:
        environment, line = (
            {"BOUNCER_DATA_DIR": "/proc/version/x"},
            "fail  data folder: /proc/version is no folder",
        )
    code, output = run(**environment)
    assert line in output
    assert code == (1 if line.startswith("fail") else 0)


def test_a_wrong_value_is_bad_input(run: Run) -> None:
    code, output = run(PORT="http")
    assert code == 2
    assert output.startswith("bouncer: PORT: ")
    assert output.count("\n") == 1


def test_the_command_line_wins_over_the_environment(run: Run) -> None:
    _, output = run("--port", "9123", "--paused", "--model", "openai:gpt-5", "--skip", "github")
    assert "ok    PORT: 9123\n" in output
    assert "BOUNCER_PAUSED: everything is paused" in output
    assert "model openai:gpt-5: answers" in output
    assert "github app" not in output


def test_missing_permissions_and_events_are_named(run: Run, office: Office) -> None:
    app = office.github.create_app(
        "other", permissions={"issues": "read", "contents": "read", "administration": "write"}, events=("issues",)
    )
    code, output = run(GITHUB_APP_ID=str(app.id), GITHUB_APP_PRIVATE_KEY=app.private_key)
    assert code == 1
    assert "fail  permissions and events: missing: permission " in output
    for gap in ("issues: write (granted: read)", "checks: write (granted: none)", "event pull_request,"):
        assert gap in output
    assert "note  permissions: more than is used: administration" in output
    assert "note  permissions: contents: write is missing" in output
    assert "note  installations: none yet" in output
    assert "ok    deliveries: none failed in the last 3 days" in output
    assert f"fail  webhook: the App has no webhook URL; set it to {PUBLIC}/webhook" in output


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("https://b.example/hook", "note  webhook: GitHub delivers to https://b.example/hook; Bouncer listens at"),
        ("http://b.example/webhook", "note  webhook: GitHub delivers to http://b.example/webhook in the clear"),
        ("https://b.example/webhook", "ok    webhook: https://b.example/webhook"),
    ],
)
def test_an_odd_webhook_address_is_told(run: Run, office: Office, url: str, line: str) -> None:
    app = office.github.create_app("other", webhook_url=url)
    _, output = run(GITHUB_APP_ID=str(app.id), GITHUB_APP_PRIVATE_KEY=app.private_key, BOUNCER_PUBLIC_URL=None)
    assert line in output


def test_a_github_that_is_down_is_told(run: Run, office: Office) -> None:
    office.model.expect_request("/api").respond_with_data("", 502)
    code, output = run(GITHUB_API_URL=office.model.url_for("/api"))
    assert code == 1
    assert "answers 502; try again later" in output
    assert "github app" not in output


def test_what_an_older_enterprise_server_cannot_do_is_named(run: Run, office: Office) -> None:
    office.github.world.without_fields = frozenset(
        {"Issue.closedByPullRequestsReferences", "Mutation.convertPullRequestToDraft"}
    )
    code, output = run("--github")
    assert code == 0, output
    assert "ok    github: " in output
    assert "model" not in output
    assert "note  graphql: Issue.closedByPullRequestsReferences is missing: the gate is off; update" in output
    assert "note  graphql: Mutation.convertPullRequestToDraft is missing: gate.mode: draft is off" in output
    assert "reviewThreads" not in output


def test_a_server_without_graphql_is_told(run: Run, office: Office) -> None:
    office.github.fail("forbidden", path="/graphql", times=99)
    code, output = run()
    assert code == 0, output
    assert "note  graphql: not there: verify knows linked issues from the pull request's text alone" in output


def test_failed_deliveries_are_counted(run: Run, office: Office) -> None:
    # No server listens at the App's address, so deliveries fail.
    office.github.open_issue("octo/demo", "ann", "Crash", "It crashes.")
    office.github.settle()
    code, output = run()
    assert "note  deliveries: " in output
    assert "failed in the last 3 days" in output
    assert code == 0


@pytest.mark.parametrize("status", [401, 500])
def test_a_model_that_cannot_answer_fails(run: Run, office: Office, status: int) -> None:
    office.model.clear()
    office.model.expect_request("/v1/chat/completions").respond_with_json({"error": {"message": "no"}}, status)
    code, output = run("--skip", "github")
    assert code == 1
    assert "fail  model openai:gpt-5-mini: openai " in output


def test_a_model_that_ignores_the_schema_fails(run: Run, office: Office) -> None:
    office.model.clear()
    output = {"choices": [{"message": {"content": "ok!"}, "finish_reason": "stop"}]}
    office.model.expect_request("/v1/chat/completions").respond_with_json(output)
    code, text = run()
    assert code == 1
    assert "answered with something unusable" in text


def test_every_model_of_a_chain_and_the_judge_are_asked(run: Run) -> None:
    _, output = run(BOUNCER_MODEL="openai:gpt-5,openai:gpt-5-mini", BOUNCER_JUDGE_MODEL="openai:gpt-5-nano")
    assert output.count("answers in the schema") == 3


def test_the_database_s_version_is_told(run: Run, tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'b.db'}")
    _, output = run()
    assert "note  migrations: none yet" in output
    migrate(database)
    _, output = run()
    assert "ok    migrations: at " in output
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE bouncer_version SET version_num = '9999'")
    database.close()
    code, output = run()
    assert code == 1
    assert "fail  migrations: at 9999, which only a newer Bouncer knows; upgrade Bouncer" in output


@pytest.mark.parametrize(
    ("seconds", "line"),
    [
        (0, "ok    clock: within 1 s"),
        (200, "fail  clock: 200 s ahead of GitHub's: its tokens are refused; let NTP set the clock"),
        (-200, "fail  clock: 200 s behind GitHub's"),
    ],
)
def test_a_clock_that_is_off_is_told(seconds: int, line: str) -> None:
    moment = datetime(2026, 11, 21, tzinfo=UTC)
    assert str(_clock(format_datetime(moment, usegmt=True), moment.timestamp() + seconds)).startswith(line)


def test_json_is_one_object(run: Run) -> None:
    code, output = run("--json", GITHUB_APP_ID=None)
    report = json.loads(output)
    assert code == 1
    assert report["ok"] is False
    failures = [finding["subject"] for finding in report["findings"] if finding["state"] == "fail"]
    assert "GITHUB_APP_ID" in failures


@pytest.mark.debian("bubblewrap")
def test_the_sandbox_is_tried(run: Run, bouncer: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOUNCER_SANDBOX_NETWORK", "none")
    code, output, _ = bouncer("doctor", "--verbose", *all_but("sandbox"))
    assert code == 0
    assert output.startswith("ok    sandbox: bubblewrap runs programs without network")
    assert "set-up commands have no network" in output


def test_a_sandbox_that_is_missing_fails_with_what_to_install(
    office: Office, monkeypatch: pytest.MonkeyPatch, bouncer: Callable[..., Ran], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, output, _ = bouncer("doctor", "--verbose", *all_but("sandbox"))
    assert code == 1
    assert "apt-get install bubblewrap" in output


# --- a repository's file --------------------------------------------------------------------------------


def test_a_right_file_is_fine(tmp_path: Path, bouncer: Callable[..., Ran]) -> None:
    file = tmp_path / "bouncer.yml"
    file.write_text("triage:\n  mode: label\n")
    assert bouncer("doctor", "--config", str(file)) == (0, f"{file}: fine\n", "")


def test_what_is_wrong_is_named_with_line_key_and_allowed_values(
    tmp_path: Path, bouncer: Callable[..., Ran]
) -> None:
    file = tmp_path / "bouncer.yml"
    file.write_text("triage:\n  mode: loud\nreview:\n  max_findings: 99\ntirage: {}\n")
    code, output, _ = bouncer("doctor", "--config", str(file))
    assert code == 2
    assert output.splitlines() == [
        f"{file}:2: triage.mode: must be 'comment', 'label', 'shadow' or 'off', not 'loud'",
        f"{file}:4: review.max_findings: must be less than or equal to 25, not '99'",
        f"{file}:5: tirage: unknown key; did you mean triage?; "
        "known here: duplicates, gate, pulls, reproduce, review, triage, verify",
    ]
    problems = json.loads(bouncer("doctor", "--config", str(file), "--json").out)["problems"]
    assert [problem["key"] for problem in problems] == ["triage.mode", "review.max_findings", "tirage"]


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path, bouncer: Callable[..., Ran]) -> None:
    code, output, errors = bouncer("doctor", "--config", str(tmp_path / "gone.yml"))
    assert (code, output) == (2, "")
    assert errors == f"bouncer: {tmp_path / 'gone.yml'}: No such file or directory\n"
