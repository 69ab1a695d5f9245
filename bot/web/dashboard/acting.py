"""What operators can do: to a job, to an issue or pull request, to a repository, and to everything at once."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import get_args

import structlog
from flask import abort, g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as Answer

from bot.core.actions import Decision
from bot.core.errors import OperatorError
from bot.core.subjects import Subject
from bot.features.commands.record import CommandsRecord
from bot.features.shared import history
from bot.pipeline.admin import Jobs
from bot.pipeline.job import ASKED, OPEN, Job, State
from bot.pipeline.store.decisions import PublishOutcome
from bot.pipeline.store.installations import EVERYTHING
from bot.pipeline.store.overview import Line, Overview
from bot.web import session
from bot.web.app import Backend
from bot.web.dashboard import DashboardSettings

_log = structlog.get_logger(__name__)


def jobs(settings: DashboardSettings, backend: Backend) -> str:
    """Jobs by state; those that failed are here."""
    states: tuple[State, ...] = tuple(each for each in get_args(State) if each == request.args.get("state"))
    return render_template(
        "dashboard/jobs.html",
        jobs=backend.jobs().list(states, request.args.get("repository", ""), 100),
        counts=backend.jobs().counts(),
        state=states[0] if states else "",
        states=get_args(State),
        open=OPEN,
    )


def job(settings: DashboardSettings, backend: Backend, job: str) -> str:
    """One job, with what can be done about it."""
    return render_template("dashboard/job.html", job=_found(backend.jobs(), job), open=OPEN)


def retry(settings: DashboardSettings, backend: Backend, job: str) -> Answer:
    """Run a failed or cancelled job again."""
    return _act("retry", job, lambda: backend.jobs().retry(job), url_for("dashboard.job", job=job))


def cancel(settings: DashboardSettings, backend: Backend, job: str) -> Answer:
    """Stop a job that has not ended."""
    return _act("cancel", job, lambda: backend.jobs().cancel(job), url_for("dashboard.job", job=job))


def retry_failed(settings: DashboardSettings, backend: Backend) -> Answer:
    """Run every failed job again."""
    return _act("retry", "all failed jobs", backend.jobs().retry_failed, url_for("dashboard.jobs"))


def pause(settings: DashboardSettings, backend: Backend) -> Answer:
    """Leave a repository alone, or everything."""
    scope = request.form.get("repository", EVERYTHING)
    known = {each.repository for each in backend.ledger().installations.repositories()}
    if scope and scope not in known | set(Overview(backend.ledger().database).repositories()):
        abort(404, "There is no such repository.")
    return _act("pause", scope, lambda: backend.ledger().installations.pause(scope, who()), _back())


def resume(settings: DashboardSettings, backend: Backend) -> Answer:
    """Look at a repository again, or at everything."""
    scope = request.form.get("repository", EVERYTHING)
    return _act("resume", scope, lambda: backend.ledger().installations.resume(scope), _back())


def recheck(settings: DashboardSettings, backend: Backend, number: int) -> Answer:
    """Have the subject of a decision looked at again."""
    line, subject = _about(backend, number)

    def ask() -> None:
        pull = subject.revision.startswith("sha:")
        backend.jobs().recheck(line.repository, line.number, who(), pull=pull)

    return _act("recheck", subject.key, ask, url_for("dashboard.jobs"))


def leave(settings: DashboardSettings, backend: Backend, number: int) -> Answer:
    """Pause or resume one issue or pull request, as the commands of that name do."""
    _, subject = _about(backend, number)
    word = "resume" if request.form.get("word") == "resume" else "pause"

    def note() -> None:
        told = Decision(
            kind="commands",
            subject=subject,
            verdict=word,
            reason=f"{who()} asked for {word} on the dashboard",
            record=CommandsRecord(done=(word,), by=who(), at=time.time()),
        )
        job = f"{ASKED}{uuid.uuid4().hex}:commands"
        backend.ledger().decisions.record(job, (told,), "")
        backend.ledger().decisions.settle(job, 0, PublishOutcome.NOTHING)

    return _act(word, subject.key, note, url_for("dashboard.decision", number=number))


def left_alone(backend: Backend, subject: Subject) -> bool:
    """Whether somebody paused this issue or pull request."""
    return history.paused(backend.ledger().decisions.decisions(subject.key, "commands"))


def who() -> str:
    """The operator whose request this is, for the record."""
    return g.login or "the operator"


def _about(backend: Backend, number: int) -> tuple[Line, Subject]:
    found = Overview(backend.ledger().database).decision(number) if number < 2**63 else None
    if found is None or not found[0].number:
        abort(404, "There is no such issue or pull request.")
    return found[0], found[1].subject


def _act(word: str, what: str, act: Callable[[], object], back: str) -> Answer:
    try:
        act()
    except OperatorError as error:
        abort(409, str(error))
    _log.info("operator_acted", by=who(), act=word, on=what or "everything")
    return redirect(back, 303)


def _back() -> str:
    return session.local_path(request.form.get("back"), url_for("dashboard.overview"))


def _found(jobs: Jobs, job: str) -> Job:
    try:
        return jobs.get(job)
    except OperatorError as error:
        abort(404, str(error))
