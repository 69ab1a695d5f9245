"""A dashboard over a ledger on a real SQLite file, served by a real HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from bot.core.actions import Decision, InlineComment, SetLabels, SubmitReview, UpsertComment, Usage
from bot.core.subjects import Subject
from bot.features.feedback.record import FeedbackRecord, Signal
from bot.features.review.record import ReviewRecord
from bot.features.triage.record import TriageRecord
from bot.github.oauth import GitHubLogin
from bot.models.protocol import Prompt
from bot.pipeline.store import Ledger, Posting
from bot.pipeline.store.tables import DELIVERIES
from bot.settings import Settings
from bot.web.app import Backend
from bot.web.dashboard import DashboardSettings
from bot.web.dashboard.pages import blueprint
from tests.bot.pipeline.builders import job, unread
from tests.bot.pipeline.driven import dead_letter
from tests.builders import placed_finding
from tests.databases import migrated_sqlite
from tests.serving import served

PASSWORD = "correct horse"
LOGIN = GitHubLogin("an-id", "a-secret", "https://github.example", "https://github.example/api/v3")
HOSTILE = '<script>document.title="owned"</script>"\'><img src=x onerror=alert(1)>'


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    backend = Backend(migrated_sqlite(tmp_path / "bouncer.db"))
    yield backend
    backend.close()


def settings(github: GitHubLogin | None = None, password: str = PASSWORD, **values: Any) -> DashboardSettings:
    common = {
        "bouncer_admin_password": password,
        "bouncer_model": "scripted:test",
        "bouncer_daily_budget_usd": 2.0,
    }
    return DashboardSettings(server=Settings(**{**common, **values}), github=github)


def dashboard(backend: Backend, **values: Any) -> Flask:
    app = Flask("bot.web")
    app.register_blueprint(blueprint(settings(**values), backend))
    return app


@pytest.fixture
def app(backend: Backend) -> Flask:
    return dashboard(backend, github=LOGIN)


@pytest.fixture
def site(app: Flask) -> Iterator[str]:
    with served(app) as url:
        yield url


def decision(number: int, *, kind: str = "triage", verdict: str | None = "VAGUE", **values: Any) -> Decision:
    bounced = verdict == "VAGUE"
    return Decision(
        kind=kind,  # type: ignore[arg-type]
        subject=Subject(repository=values.pop("repository", "acme/rocket"), number=number, revision="text:1"),
        verdict=verdict,
        actions=(UpsertComment(task="triage", number=number, body=HOSTILE),) if bounced else (),
        reason="not specified well enough" if verdict else "the model refused",
        abstained=None if verdict else "model:refused",
        record=TriageRecord(bounced=bounced, explanation=f"It says {HOSTILE}.") if verdict else None,
        usage=Usage(calls=1, input_tokens=812, output_tokens=154, seconds=1.4, cost_usd=0.0031),
        model="scripted:test",
        **values,
    )


@pytest.fixture
def filled(backend: Backend) -> Backend:
    fill(backend)
    return backend


def fill(backend: Backend) -> None:
    """Record decisions of every outcome, feedback, a model call, a dead letter."""
    ledger = backend.ledger
    for number, verdict in enumerate(("VAGUE", "WELL_SPECIFIED", None, "VAGUE"), start=1):
        ledger.decisions.record(f"d{number}:triage", (decision(number, verdict=verdict),), "c0ffee")
        ledger.decisions.settle(f"d{number}:triage", 0, "posted")
        ledger.calls.record(
            f"d{number}:triage",
            Prompt(purpose="triage", system="s", user=str(number), subject=f"acme/rocket#{number}"),
            "InputReply",
            "scripted:test",
            Usage(calls=1, input_tokens=812, output_tokens=154, seconds=1.4, cost_usd=0.0031),
            reply="{}",
        )
    other = decision(9, kind="verify", verdict="CORRECT_AND_PRECISE", repository="acme/sled")
    ledger.decisions.record("d9:verify", (other,), "c0ffee")
    signs = [
        Signal(key=f"acme/rocket#20:{n}", category="Security", outcome="dismissed", source="reaction").model_dump()
        for n in range(9)
    ]
    feedback = Decision(
        kind="feedback",
        subject=Subject(repository="acme/rocket", number=20, revision=""),
        record=FeedbackRecord.model_validate({"signals": signs}),
    )
    ledger.decisions.record("d20:feedback", (feedback,), "c0ffee")
    ledger.database.execute(DELIVERIES.insert(), unread("dead"))
    dead = job("dead", tries=8, due=1.0, created_at=1.0)
    dead_letter(ledger.database, dead, f"gave up after 8 tries: {HOSTILE}")
    _written(ledger)


QUESTION = "Which **files** fail, and how? `Table.read` knows no `delimiter`."


def _written(ledger: Ledger) -> None:
    """A comment and a review that stand on GitHub, and a comment that shadow mode kept back."""
    question = UpsertComment(task="triage", number=31, body=QUESTION)
    label = SetLabels(number=31, add=("needs-info",))
    bounce = decision(31).model_copy(update={"actions": (question, label)})
    shadow = decision(33).model_copy(update={"actions": (), "withheld": bounce.actions})
    finding = InlineComment(
        path="rocket/table.py",
        line=7,
        body="The **last** row is lost.",
        suggestion="return rows",
        fingerprint="f1",
    )
    posted = placed_finding(
        path="rocket/table.py", line=7, code=("return rows[:-1]",), comment="The last row is lost."
    )
    submission = SubmitReview(
        number=32, commit_id="a" * 40, body="AI review: 1 possible defect.", comments=(finding,)
    )
    review = decision(32, kind="review", verdict="defects").model_copy(
        update={"actions": (submission,), "record": ReviewRecord(posted=(posted,))}
    )
    for entry, outcome in ((bounce, "posted"), (review, "posted"), (shadow, "withheld")):
        job = f"d{entry.subject.number}:{entry.kind}"
        ledger.decisions.record(job, (entry,), "c0ffee")
        ledger.decisions.settle(job, 0, outcome)  # type: ignore[arg-type]
        for action in entry.actions:
            if action.type != "set_labels":
                ledger.postings.put(
                    Posting(
                        key=job, type=action.type, task=entry.kind, repository="acme/rocket",
                        number=entry.subject.number, job=job, content_hash="x",
                        github_id=900 + entry.subject.number,
                    )
                )  # fmt: skip
