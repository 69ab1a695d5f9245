"""Actions of operators: on a job, an issue or pull request, a repository, or everything at once."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import get_args
from urllib.parse import urlencode

import structlog
from flask import abort, g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as Answer

from bot.calibration.findings import Bouncer, SuggestedConfig, suggest
from bot.core.actions import Decision
from bot.core.errors import OperatorError
from bot.core.subjects import Subject
from bot.core.text import amount
from bot.features.commands.record import CommandsRecord
from bot.features.shared import rights
from bot.pipeline.admin import NEWEST
from bot.pipeline.body import as_html
from bot.pipeline.job import OPEN, OPERATOR_PREFIX, State
from bot.pipeline.store.decisions import PublishOutcome
from bot.pipeline.store.installations import EVERYTHING
from bot.pipeline.store.overview import DecisionRow
from bot.web import session
from bot.web.app import Backend
from bot.web.dashboard import DashboardSettings

#: Jobs on a page.
LISTED = 100
#: Outcomes of jobs that had nothing to do.
IDLE = ("nothing to do", "nothing")

_log = structlog.get_logger(__name__)


def jobs(settings: DashboardSettings, backend: Backend) -> str:
    """Show jobs by state. Jobs that had nothing to do are hidden unless ``all`` is asked for."""
    states: tuple[State, ...] = tuple(state for state in get_args(State) if state == request.args.get("state"))
    rows = backend.jobs.list(states, request.args.get("repository", ""), LISTED)
    show_all = "all" in request.args
    idle = [] if show_all else [job for job in rows if job.state == "done" and job.outcome in IDLE]
    return render_template(
        "dashboard/jobs.html",
        jobs=[job for job in rows if job not in idle],
        hidden=len(idle),
        limit=LISTED,
        counts=backend.jobs.counts(),
        newest=NEWEST,
        state=states[0] if states else "",
        states=get_args(State),
        since=(g.now - timedelta(days=3)).date().isoformat(),
        time_of=lambda job: datetime.fromtimestamp(job.created_at, UTC),
    )


def confirm_rejudge(settings: DashboardSettings, backend: Backend) -> str:
    """Show how many jobs an outage left without a verdict, and the estimated cost of running them again."""
    since, limit = _since(), _limit()
    count = min(backend.jobs.unjudged(since.timestamp()), limit)
    mean = backend.ledger.overview.mean_cost(g.now - timedelta(days=30))
    return render_template(
        "dashboard/rejudge.html",
        since=since.date().isoformat(),
        limit=limit,
        count=count,
        jobs=amount(count, "job"),
        cost=None if mean is None else mean * count,
    )


def rejudge(settings: DashboardSettings, backend: Backend) -> Answer:
    since, limit = _since(), _limit()
    target = f"up to {limit} jobs since {since.date()}"
    return _act(
        "rejudge", target, lambda: backend.jobs.rejudge(since.timestamp(), limit), url_for("dashboard.jobs")
    )


def onboarding(settings: DashboardSettings, backend: Backend) -> str:
    """Show a first bouncer.yml for a repository: to copy, or as a pull request if the App may open one."""
    repository = _installed(backend)
    suggestion = _suggestion(settings, backend, repository)
    address = f"{settings.server.github_web_url}/{repository}/new/HEAD?" + urlencode(
        {"filename": ".github/bouncer.yml", "value": suggestion.config}
    )
    return render_template(
        "dashboard/onboarding.html",
        repository=repository,
        suggestion=suggestion,
        explanation=as_html(suggestion.explanation),
        new_file=address,
        may_open=settings.may_open_pulls(repository),
    )


def propose(settings: DashboardSettings, backend: Backend) -> Answer:
    """Have the worker open the pull request."""
    repository = _installed(backend)
    suggestion = _suggestion(settings, backend, repository)

    def ask() -> None:
        backend.jobs.onboard(repository, operator(), suggestion.config, suggestion.explanation)

    return _act("onboard", repository, ask, url_for("dashboard.jobs"))


def _installed(backend: Backend) -> str:
    repository = request.values.get("repository", "")
    if repository not in {row.repository for row in backend.ledger.installations.repositories()}:
        abort(404, "No such repository.")
    return repository


def _suggestion(settings: DashboardSettings, backend: Backend, repository: str) -> SuggestedConfig:
    bouncers: tuple[Bouncer, ...] = ("triage", "verify")
    fates = {bouncer: backend.ledger.fates.of(repository, bouncer) for bouncer in bouncers}
    server = settings.server.bouncer_public_url
    schema = f"{server}/bouncer.schema.json" if server else ""
    return suggest(fates, schema)


def _since() -> datetime:
    try:
        return datetime.combine(date.fromisoformat(request.values.get("since", "")), datetime.min.time(), UTC)
    except ValueError:
        abort(400, "The date must have the form 2026-11-20.")


def _limit() -> int:
    text = request.values.get("limit", "")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= 10_000):
        abort(400, "The limit must be a number from 1 to 10000.")
    return int(text)


def job(settings: DashboardSettings, backend: Backend, job: str) -> str:
    try:
        return render_template("dashboard/job.html", job=backend.jobs.get(job), open=OPEN)
    except OperatorError as error:
        abort(404, str(error))


def retry(settings: DashboardSettings, backend: Backend, job: str) -> Answer:
    return _act("retry", job, lambda: backend.jobs.retry(job), url_for("dashboard.job", job=job))


def cancel(settings: DashboardSettings, backend: Backend, job: str) -> Answer:
    return _act("cancel", job, lambda: backend.jobs.cancel(job), url_for("dashboard.job", job=job))


def retry_failed(settings: DashboardSettings, backend: Backend) -> Answer:
    return _act("retry", "all failed jobs", backend.jobs.retry_failed, url_for("dashboard.jobs"))


def pause(settings: DashboardSettings, backend: Backend) -> Answer:
    scope = request.form.get("repository", EVERYTHING)
    installed = {row.repository for row in backend.ledger.installations.repositories()}
    if scope and scope not in installed | set(backend.ledger.overview.repositories()):
        abort(404, "No such repository.")
    return _act("pause", scope, lambda: backend.ledger.installations.pause(scope, operator()), _back())


def resume(settings: DashboardSettings, backend: Backend) -> Answer:
    scope = request.form.get("repository", EVERYTHING)
    return _act("resume", scope, lambda: backend.ledger.installations.resume(scope), _back())


def recheck(settings: DashboardSettings, backend: Backend, number: int) -> Answer:
    """Judge the subject of a decision again."""
    line, subject = _about(backend, number)

    def ask() -> None:
        pull = subject.revision.startswith("sha:")
        backend.jobs.recheck(line.repository, line.number, operator(), pull=pull)

    return _act("recheck", subject.key, ask, url_for("dashboard.jobs"))


def leave(settings: DashboardSettings, backend: Backend, number: int) -> Answer:
    """Pause or resume one issue or pull request, as the commands of that name do."""
    _, subject = _about(backend, number)
    word = "resume" if request.form.get("word") == "resume" else "pause"

    def note() -> None:
        decision = Decision(
            kind="commands",
            subject=subject,
            verdict=word,
            reason=f"{operator()} asked for {word} on the dashboard",
            record=CommandsRecord(done=(word,), by=operator(), at=time.time()),
        )
        job = f"{OPERATOR_PREFIX}{uuid.uuid4().hex}:commands"
        backend.ledger.decisions.record(job, (decision,), "")
        backend.ledger.decisions.settle(job, 0, PublishOutcome.NOTHING)

    return _act(word, subject.key, note, url_for("dashboard.decision", number=number))


def is_paused(backend: Backend, subject: Subject) -> bool:
    return rights.is_paused(backend.ledger.decisions.decisions(subject.key, "commands"))


def operator() -> str:
    """Return the login of the operator, for the record."""
    return g.login or "the operator"


def _about(backend: Backend, number: int) -> tuple[DecisionRow, Subject]:
    row = backend.ledger.overview.decision(number) if number < 2**63 else None
    if row is None or not row[0].number:
        abort(404, "No such issue or pull request.")
    return row[0], row[1].subject


def _act(word: str, target: str, act: Callable[[], object], back: str) -> Answer:
    try:
        act()
    except OperatorError as error:
        abort(409, str(error))
    _log.info("operator_acted", by=operator(), act=word, on=target or "everything")
    return redirect(back, 303)


def _back() -> str:
    return session.local_path(request.form.get("back"), url_for("dashboard.overview"))
