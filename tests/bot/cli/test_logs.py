"""No log line, metric, error, stored row or posted word shows a secret: canaries through every path."""

from __future__ import annotations

import http.client
import io
import json
import logging
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import structlog

from bot.cli import logs
from bot.simgithub import SimulatedGitHub
from tests.bot.pipeline.rig import REPOSITORY, ROOT, Rig, wait

CANARY = "canary-1f3870be274f6c49b3e31a0c6728957f"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def log_output(request):
    """Return a function that reads the log; logging is restored afterwards."""
    stream = getattr(request, "param", io.StringIO)()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logs.configure("DEBUG", [CANARY], stream)
    yield stream.getvalue
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    for handler in before[0]:
        root.addHandler(handler)
    root.setLevel(before[1])
    structlog.reset_defaults()


def test_a_line_is_one_json_object_with_what_is_bound(log_output):
    with structlog.contextvars.bound_contextvars(delivery="d-1"):
        structlog.get_logger("bot").info("decided", verdict="VAGUE", seconds=0.5, labels=("a", "b"))
    line = json.loads(log_output())
    del line["timestamp"]
    assert line == {
        "event": "decided",
        "verdict": "VAGUE",
        "seconds": 0.5,
        "labels": ["a", "b"],
        "delivery": "d-1",
        "level": "info",
    }


@pytest.mark.parametrize("log_output", [Terminal], indirect=True)
def test_on_a_terminal_a_line_is_text(log_output):
    structlog.get_logger("bot").info("decided", verdict="VAGUE", key=CANARY)
    assert re.search(r"\[info +\] decided +key=\S+ verdict=VAGUE\n", log_output())
    assert CANARY not in log_output()


def test_secrets_are_taken_out_of_every_value_however_deep(log_output):
    log = structlog.get_logger("bot")
    log.info(f"event {CANARY}", value=CANARY, deep={"a": [{"b": CANARY}]}, other=Path(f"/x/{CANARY}"))
    try:
        raise ValueError(f"bad key {CANARY}")
    except ValueError:
        log.exception("failed")
    log.warning("shape", token="ghp_" + "a1B2" * 9, url="postgresql://me:hush@db/x", half="\ud800")
    text = log_output()
    assert CANARY not in text
    assert "a1B2" not in text
    assert "hush" not in text
    assert len(text.splitlines()) == 3
    assert all(json.loads(line) for line in text.splitlines())


def test_libraries_log_through_the_same_door(log_output):
    logging.getLogger("some.library").warning("refused with %s", CANARY)
    logging.getLogger("dbos").info("our cloud is great")
    (line,) = map(json.loads, log_output().splitlines())
    assert line["event"] == "refused with REDACTED"
    assert line["logger"] == "some.library"


@pytest.mark.timeout(180)
def test_no_canary_is_seen_anywhere_while_everything_goes_wrong(tmp_path):
    with SimulatedGitHub() as github:
        rig = Rig(github, f"sqlite:///{tmp_path}/x.db", tmp_path)
        canaries = {
            "GITHUB_WEBHOOK_SECRET": f"rig-secret,{CANARY}-hook",
            "OPENAI_API_KEY": f"sk-{CANARY}-openai",
            "ANTHROPIC_API_KEY": f"{CANARY}-anthropic",
            "BOUNCER_ADMIN_PASSWORD": f"{CANARY}-admin",
            "BOUNCER_METRICS_TOKEN": f"{CANARY}-metrics",
            "LOG_LEVEL": "DEBUG",
        }
        rig.environment |= canaries
        try:
            rig.web()
            rig.worker()
            wait(rig.ready, 60, "web and worker up")
            github.fail("unauthorized", "POST", "/comments$")
            github.fail("server_error", "GET", "/contents/", times=2)
            # The title quotes every secret, so that printing any input would print them.
            title = " ".join(canaries.values())
            number = github.open_issue(REPOSITORY, title, f"{CANARY}-openai")
            assert rig.deliver("issues", rig.opened(number)) == 202
            assert rig.deliver("issues", rig.opened(number), **{"X-Hub-Signature-256": f"sha256={CANARY}"}) == 401
            wait(lambda: set(rig.jobs.counts()) == {"done"}, 90, "all jobs done")
            connection = http.client.HTTPConnection("127.0.0.1", rig.port)
            token = canaries["BOUNCER_METRICS_TOKEN"]
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
            metrics = connection.getresponse().read().decode()
            assert "bouncer_deliveries_total" in metrics
            connection.close()
        finally:
            rig.close()
        key = rig.environment["GITHUB_APP_PRIVATE_KEY"].splitlines()[1]
        everything = rig.log.read_text() + metrics + "".join(github.comments(REPOSITORY, number))
        for secret in (*canaries.values(), "rig-secret", key, "ghs_"):
            assert secret == "DEBUG" or secret not in everything
        assert CANARY + "-openai" not in everything
        assert "job_again" in everything, "nothing went wrong, so nothing was shown"


@pytest.mark.parametrize(
    ("command", "environment", "message"),
    [
        ("web", {}, "GITHUB_WEBHOOK_SECRET is not set"),
        ("worker", {}, "GITHUB_APP_ID is not set"),
        ("worker", {"GITHUB_APP_ID": "1", "GITHUB_APP_PRIVATE_KEY": CANARY}, "GITHUB_APP_PRIVATE_KEY"),
        ("web", {"GITHUB_WEBHOOK_SECRET": CANARY, "PORT": "70000"}, "PORT"),
        ("web", {"GITHUB_WEBHOOK_SECRET": CANARY, "HOST": "198.51.100.7"}, "HOST, PORT"),
        (
            "web",
            {
                "GITHUB_WEBHOOK_SECRET": CANARY,
                "DATABASE_URL": f"postgresql://me:{CANARY}@127.0.0.1:9/x",
                "BOUNCER_DATABASE_SECONDS": "0",
            },
            "DATABASE",
        ),
        (
            "web",
            {"GITHUB_WEBHOOK_SECRET": CANARY, "DATABASE_URL": f"mysql://me:{CANARY}@127.0.0.1/x"},
            "DATABASE_URL",
        ),
        ("web", {"GITHUB_WEBHOOK_SECRET": CANARY, "LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
    ],
)
def test_a_wrong_setting_ends_a_start_with_one_line_that_names_it(tmp_path, command, environment, message):
    begun = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "bot", command],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "DATABASE_URL": f"sqlite:///{tmp_path}/x.db",
            "BOUNCER_MODEL": "recorded:replies.jsonl",
            **environment,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    (line,) = ended.stderr.strip().splitlines()
    assert message in line
    assert CANARY not in line
    assert time.monotonic() - begun < 30
