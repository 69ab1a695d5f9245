"""The whole app in real processes against the simulated GitHub; a recorded model that bounces every issue."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sqlalchemy import text

from bot.github.webhook import sign
from bot.pipeline.admin import Jobs
from bot.pipeline.queue import Queue
from bot.pipeline.store import Ledger, migrate, open_database
from bot.simgithub import SimulatedGitHub
from bot.simgithub.server import RecordedRequest
from tests import forked
from tests.databases import migrated_sqlite

ROOT = Path(__file__).resolve().parents[3]
#: Processes for functions of tests. All are forked from one process, which imports these modules once.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["bot.web.app", "bot.web.server", __name__])
SECRET = "rig-secret"
REPOSITORY = "acme/rocket"
REPLY = {
    "explanation": "Nobody can tell what is meant.",
    "open_points": ["Which version is this?"],
    "missing": ["version"],
    "p_bounce": 90,
    "label": "VAGUE",
}

#: Counts what is unfinished by the engine's names of states. It is asked many times a second, so it is one query.
_UNFINISHED = """
    SELECT 'UNTAKEN', count(*) FROM deliveries WHERE dispatched_at IS NULL UNION ALL
    SELECT status, count(*) FROM {}workflow_status WHERE name = 'job'
    AND status IN ('DELAYED', 'ENQUEUED', 'PENDING') GROUP BY status
"""


class Rig:
    """Starts and kills processes, delivers webhooks by hand, looks at what came of it."""

    def __init__(
        self, github: SimulatedGitHub, url: str, folder: Path, repositories: tuple[str, ...] = (REPOSITORY,)
    ):
        self.github = github
        self.repositories = repositories
        self.port = free_port()
        self.folder = folder
        for name in repositories:
            github.create_repository(name)
        app = github.create_app(owner=repositories[0].partition("/")[0], webhook_secret=SECRET)
        self.installation = github.install(app, *repositories)
        self.replies = folder / "replies.jsonl"
        lines = (
            {"model": "bounces", "subject": f"{name}#{number}", **REPLY}
            for name in repositories
            for number in range(1, 301)
        )
        self.replies.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "BOUNCER_"))},
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_APP_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": github.api_url,
            "GITHUB_WEB_URL": github.web_url,
            "DATABASE_URL": url,
            "BOUNCER_MODEL": f"recorded:{self.replies}#bounces",
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "PYTHONPATH": str(ROOT),
            "LOG_LEVEL": "INFO",
        }
        self.log = folder / "processes.log"
        self.processes: list[subprocess.Popen[bytes] | forked.Process] = []
        self.database = open_database(url)
        migrate(self.database)
        self.ledger: Ledger = Ledger(self.database)
        self.jobs = Jobs(self.database)
        self.queue = Queue(self.database)
        #: Where the engine's tables are.
        self.schema = "" if self.database.is_sqlite else "dbos."

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start ``python -m`` with these arguments, as an operator would."""
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                env=self.environment,
                cwd=self.folder,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def web(self) -> forked.Process:
        return self.fork("bot", "web")

    def worker(self, *options: str) -> forked.Process:
        return self.fork("tests.bot.pipeline.worker_process", *options)

    def fork(self, *arguments: str) -> forked.Process:
        """Start a process as ``start`` does, in a tenth of its time."""
        process = forked.start(arguments, self.environment, self.folder, self.log)
        self.processes.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes] | forked.Process) -> None:
        """kill -9, children included."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                self.kill(process)
        self.jobs.close()
        self.queue.close()
        self.database.close()

    def deliver(self, event: str, payload: dict[str, Any], delivery: str = "", **headers: str) -> int:
        """POST a delivery and return the status; 0 without an answer."""
        body = json.dumps({"installation": {"id": self.installation.id}, **payload}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(
                "POST",
                "/webhook",
                body,
                {
                    "Content-Type": "application/json",
                    "X-GitHub-Event": event,
                    "X-GitHub-Delivery": delivery or str(uuid.uuid4()),
                    "X-Hub-Signature-256": sign(body, SECRET),
                    **headers,
                },
            )
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def opened(self, number: int, repository: str = REPOSITORY) -> dict[str, Any]:
        """The payload of ``issues.opened`` for an issue that stands on the simulated GitHub."""
        return self.payload(repository, number, "opened")[1]

    def payload(self, repository: str, number: int, action: str, **more: Any) -> tuple[str, dict[str, Any]]:
        """(event, payload) about an issue or pull request as it stands."""
        with self.github.world.lock:
            issue = self.github.find(repository, number)
            render = self.github._operations.render
            about: dict[str, Any] = (
                {"number": number, "pull_request": render.pull(issue)}
                if issue.pull
                else {"issue": render.issue(issue)}
            )
            payload = {
                "action": action,
                "installation": {"id": self.installed(repository)},
                **about,
                **more,
                "repository": render.repository(issue.repository),
                "sender": render.user(issue.author),
            }
        return ("pull_request" if issue.pull else "issues"), payload

    def installed(self, repository: str) -> int:
        """The id of the installation that reaches a repository."""
        (installation,) = self.github.world.installed(self.github.world.repositories[repository])
        return installation.id

    def unfinished(self) -> int:
        """Count deliveries without jobs and jobs without an end, also those that wait for a later try."""
        return sum(self.unfinished_by_state().values())

    def unfinished_by_state(self) -> dict[str, int]:
        """Count them by the engine's names of states; deliveries without jobs are ``UNTAKEN``."""
        self.queue.connect()
        rows = self.database.rows(text(_UNFINISHED.format(self.schema)))
        return {state: count for state, count in rows if count}

    def ready(self) -> bool:
        """Return True if /readyz answers 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


@contextmanager
def rigged(folder: Path, url: str = "", repositories: tuple[str, ...] = (REPOSITORY,)) -> Iterator[Rig]:
    """A rig on a simulated GitHub of its own; the default database is a new SQLite file."""
    with SimulatedGitHub() as github:
        rig = Rig(github, url or migrated_sqlite(folder / "x.db"), folder, repositories)
        try:
            yield rig
        finally:
            rig.close()


def work(requests: Iterable[RecordedRequest]) -> list[RecordedRequest]:
    """Return the requests without the question for failed deliveries, which each worker asks now and then."""
    return [request for request in requests if request.path != "/app/hook/deliveries"]


def wait(until: Callable[[], object], seconds: float = 30.0, event: str = "") -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, f"not within {seconds} s: {event}"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
