"""Every page of the dashboard over 100,000 decisions and jobs on SQLite: milliseconds, and if memory grows."""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import insert, select

from bot.core.actions import Decision, Usage
from bot.core.subjects import Subject
from bot.features.triage.record import TriageRecord
from bot.pipeline.job import Job
from bot.pipeline.queue import Queue
from bot.pipeline.store import Database, Ledger, migrate
from bot.pipeline.store.tables import DECISIONS, MODEL_CALLS, SIGNALS
from bot.web.app import Backend
from tests.bot.web.dashboard.conftest import dashboard

PAGES = (
    "/",
    "/?repository=acme/r7",
    "/decisions",
    "/decisions?came=bounced&kind=triage",
    "/decisions?came=abstained&kind=reproduce",
    "/decisions?repository=acme/r7&came=passed",
    "/decisions?before=50000",
    "/decisions?text=acme/r7%23507",
    "/decisions?text=no+such+words",
    "/shadow",
    "/installations",
    "/decisions/50000",
    "/costs",
    "/jobs",
    "/jobs?state=dead",
    "/jobs?repository=acme/r7",
    "/jobs?repository=acme/nothing",
)
VERDICTS = (
    ("triage", "VAGUE", True),
    ("triage", "WELL_SPECIFIED", False),
    ("verify", None, None),
    ("review", "clean", None),
)


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(prog="tests.bench dashboard")
    options.add_argument("--decisions", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=9)
    parsed = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        backend = Backend(f"sqlite:///{Path(folder) / 'bench.db'}")
        migrate(backend.ledger.database)
        _fill(backend.ledger, parsed.decisions)
        _fill_queue(backend.ledger.database, parsed.decisions)
        _measure(backend, parsed.rounds)
        backend.close()


def _fill(ledger: Ledger, count: int) -> None:
    """Decisions, calls and signals of the last 60 days in 50 repositories, seeded."""
    choose, now = random.Random(1), time.time()
    decisions, calls = [], []
    for number in range(count):
        kind, verdict, bounced = choose.choice(VERDICTS)
        repository, when = f"acme/r{number % 50}", now - 86_400 * 60 * (1 - number / count)
        subject = Subject(repository=repository, number=number % 900, revision="text:1")
        whole = Decision(
            kind=kind,
            subject=subject,
            verdict=verdict,
            usage=Usage(calls=1),
            record=TriageRecord(explanation="x" * 800),
        )  # type: ignore[arg-type]
        common = {
            "repository": repository,
            "model": "scripted:test",
            "calls": 1,
            "input_tokens": 900,
            "output_tokens": 150,
        }
        common |= {"seconds": 1.5, "cost_usd": 0.002, "job": f"{number}:{kind}", "created_at": when}
        decisions.append(
            {**common, "position": 0, "kind": kind, "number": number % 900, "revision": "text:1",
             "verdict": verdict,
             "abstained": None if verdict else "model:refused", "bounced": bounced, "outcome": "posted",
             "decision": whole.model_dump_json(), "config_hash": "c0ffee"}
        )  # fmt: skip
        calls.append(
            {
                **common,
                "prompt_hash": "0" * 32,
                "schema": "S",
                "purpose": kind,
                "subject": subject.key,
                "reply": "{}",
            }
        )
    signals = [
        {"key": str(n), "repository": f"acme/r{n % 50}", "category": f"c{n % 9}", "outcome": "ignored",
         "source": "closed", "by": "", "updated_at": now}
        for n in range(count // 5)
    ]  # fmt: skip
    with ledger.database.write() as connection:
        connection.execute(insert(DECISIONS), decisions)
        connection.execute(insert(MODEL_CALLS), calls)
        connection.execute(insert(SIGNALS), signals)


def _fill_queue(database: Database, count: int) -> None:
    """Jobs that are done, in the same repositories: copies of one that the queue stored."""
    queue = Queue(database)
    about: dict[str, Any] = {"task": "triage", "kind": "issue_opened", "repository": "acme/r0", "number": 1}
    job = Job(id="0:triage", delivery="0", seq=1, position=0, due=0.0, created_at=time.time(), **about)
    with queue.transaction() as connection:
        queue.enqueue(connection, job)
        workflows = queue.connect()._sys_db.tables.workflow_status
        row = connection.execute(select(workflows)).mappings().one()
        copies = [
            {**row, "workflow_uuid": f"{number}:triage", "status": "SUCCESS",
             "created_at": row["created_at"] + number,
             "attributes": row["attributes"] | {"id": f"{number}:triage", "repository": f"acme/r{number % 50}"}}
            for number in range(1, count)
        ]  # fmt: skip
        connection.execute(insert(workflows), copies)
    queue.close()


def _measure(backend: Backend, rounds: int) -> None:
    client = dashboard(backend, password="bench").test_client()
    token = re.search(r'name="token" value="([^"]+)"', client.get("/login").text)
    assert token
    client.post("/login", data={"token": token[1], "password": "bench"})
    worst, before = 0.0, _resident_mb()
    for page in PAGES:
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            assert client.get(page).status_code == 200, page
            times.append(1000 * (time.perf_counter() - start))
        worst = max(worst, max(times))
        print(f"{page:45s} median {median(times):7.1f} ms   max {max(times):7.1f} ms")
    after = _resident_mb()
    print(json.dumps({"worst_ms": round(worst, 1), "goal_ms": 300, "grown_mb": round(after - before, 1)}))


def _resident_mb() -> float:
    """Memory that this process holds right now, MB."""
    (line,) = (row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
