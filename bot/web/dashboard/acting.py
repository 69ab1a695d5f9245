"""The queue, and the two things that an operator can do to a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from flask import abort, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as Answer

from bot.errors import OperatorError
from bot.jobs.admin import Jobs
from bot.jobs.job import OPEN, Job, State
from bot.web import session
from bot.web.dashboard.backing import DashboardBackend, DashboardSettings


def jobs(settings: DashboardSettings, backend: DashboardBackend) -> str:
    """Jobs by state; the dead letters are here."""
    states: tuple[State, ...] = tuple(each for each in get_args(State) if each == request.args.get("state"))
    return render_template(
        "dashboard/jobs.html",
        jobs=backend.jobs().list(states, request.args.get("repository", ""), 100),
        counts=backend.jobs().counts(),
        state=states[0] if states else "",
        states=get_args(State),
        open=OPEN,
    )


def job(settings: DashboardSettings, backend: DashboardBackend, job: str) -> str:
    """One job, with what can be done about it."""
    return render_template("dashboard/job.html", job=_found(backend.jobs(), job), open=OPEN)


def retry(settings: DashboardSettings, backend: DashboardBackend, job: str) -> Answer:
    """Start a dead or cancelled job anew."""
    return _act(backend.jobs().retry, job)


def cancel(settings: DashboardSettings, backend: DashboardBackend, job: str) -> Answer:
    """Stop a job that has not ended."""
    return _act(backend.jobs().cancel, job)


def _act(act: Callable[[str], object], job: str) -> Answer:
    session.check_form(request.cookies.get(session.COOKIE, ""))
    try:
        act(job)
    except OperatorError as error:
        abort(409, str(error))
    return redirect(url_for("dashboard.job", job=job), 303)


def _found(jobs: Jobs, job: str) -> Job:
    try:
        return jobs.get(job)
    except OperatorError as error:
        abort(404, str(error))
