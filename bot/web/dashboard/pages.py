"""The dashboard's pages: read, hand to a template, nothing else. Forms act on jobs only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, get_args
from urllib.parse import urlencode

from flask import Blueprint, Response, abort, g, redirect, render_template, request, session, url_for
from pydantic import ValidationError
from sqlalchemy.exc import NoResultFound
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as Answer

from bot import events
from bot.actions import Task
from bot.bouncers.feedback import Row
from bot.errors import OperatorError
from bot.frozen import Frozen
from bot.jobs.job import OPEN, State
from bot.jobs.store import Jobs
from bot.ledger import Ledger
from bot.ledger.overview import Came, Filter, Line, Overview
from bot.web.dashboard import access, charts
from bot.web.dashboard.charts import Bar

DAYS = 30


class Budget(Frozen):
    """What may be spent a day in one scope, and what was."""

    name: str
    spent_usd: float
    limit_usd: float | None
    calls: int
    limit_calls: int | None


class Settings(Frozen):
    """What the dashboard needs of the operator's settings."""

    password: str
    public_url: str | None = None
    host: str = "127.0.0.1"
    web_url: str = "https://github.com"
    model: str = ""
    paused: bool = False
    daily_usd: float | None = None
    repository_usd: float | None = None
    repository_calls: int | None = None


class Backend(Protocol):
    """What the pages read from, in the process that serves."""

    def ledger(self) -> Ledger: ...

    def jobs(self) -> Jobs: ...


def blueprint(settings: Settings) -> Callable[[Backend], Blueprint]:
    """Makes the dashboard for a backend; without a password there is none to make."""

    def make(backend: Backend) -> Blueprint:
        routes = Blueprint("dashboard", __name__, template_folder="../templates")
        routes.record_once(lambda state: _configure(state.app, settings))
        _guard(routes, settings)
        _sessions(routes, settings)
        _reading(routes, settings, backend)
        _acting(routes, backend)
        return routes

    return make


def _configure(app: Any, settings: Settings) -> None:
    app.secret_key = access.session_key(settings.password)
    app.config.update(
        SESSION_COOKIE_NAME="bouncer",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=bool(settings.public_url and settings.public_url.startswith("https:")),
    )


def _guard(routes: Blueprint, settings: Settings) -> None:
    @routes.before_request
    def guard() -> Answer | None:
        if not access.known_host(request.host, settings.public_url, settings.host):
            abort(400, "This server does not go by that name; set BOUNCER_PUBLIC_URL to the address you use.")
        g.now = datetime.now(UTC)
        if request.endpoint == "dashboard.log_in" or access.logged_in():
            return None
        return access.to_log_in()

    @routes.after_request
    def secure(response: Response) -> Response:
        return access.secured(response)

    @routes.errorhandler(HTTPException)
    def failed(error: HTTPException) -> tuple[str, int]:
        status = error.code or 500
        return render_template("dashboard/error.html", status=status, why=error.description), status

    @routes.context_processor
    def shared() -> dict[str, object]:
        return {
            "form_token": access.form_token,
            "settings": settings,
            "logged_in": access.logged_in(),
            "link": _link,
        }


def _sessions(routes: Blueprint, settings: Settings) -> None:
    attempts = access.Attempts()

    @routes.route("/login", methods=["GET", "POST"])
    def log_in() -> Answer | str | tuple[str, int]:
        target = access.local_path(request.values.get("next"), url_for("dashboard.overview"))
        if request.method == "GET":
            return render_template("dashboard/login.html", next=target, why="")
        access.check_form()
        address = request.remote_addr or ""
        if wait := attempts.wait(address):
            why = f"Too many attempts. Try again in {wait:.0f} seconds."
            return render_template("dashboard/login.html", next=target, why=why), 429
        if not access.matches(request.form.get("password", ""), settings.password):
            attempts.fail(address)
            return render_template("dashboard/login.html", next=target, why="That is not the password."), 403
        access.log_in()
        return redirect(target)

    @routes.post("/logout")
    def log_out() -> Answer:
        access.check_form()
        session.clear()
        return redirect(url_for("dashboard.log_in"))


def _reading(routes: Blueprint, settings: Settings, backend: Backend) -> None:
    def looking() -> Overview:
        return Overview(backend.ledger().database)

    @routes.get("/")
    def overview() -> str:
        repository = request.args.get("repository", "")
        days = looking().days(g.now.date(), DAYS, repository)
        bars = [
            Bar(label=day.day.strftime("%d %b"), values=(day.bounced, day.passed, day.abstained)) for day in days
        ]
        names = ("bounced or found", "passed", "abstained")
        return render_template(
            "dashboard/overview.html",
            days=days,
            chart=charts.stacked_bars(bars, names, f"Decisions on each of the last {DAYS} days"),
            repositories=looking().repositories(),
            repository=repository,
            rates=backend.ledger().signals.rates(repository or None),
            rate_chart=_rate_chart,
            budgets=_budgets(settings, looking(), g.now),
            meter=charts.meter,
            jobs=backend.jobs().counts(),
            oldest=backend.jobs().oldest_age(),
            worker=backend.jobs().worker_age(),
        )

    @routes.get("/decisions")
    def decisions() -> str:
        chosen = Filter(
            repository=request.args.get("repository", ""),
            kind=_one_of(get_args(Task), request.args.get("kind")),
            came=next((each for each in get_args(Came) if each == request.args.get("came")), None),
        )
        lines = looking().decisions(chosen, _number(request.args.get("before")))
        older = urlencode({**_given(chosen), "before": lines[-1].id}) if len(lines) == 50 else ""
        return render_template(
            "dashboard/decisions.html",
            lines=lines,
            chosen=chosen,
            older=older,
            kinds=get_args(Task),
            repositories=looking().repositories(),
        )

    @routes.get("/decisions/<int:number>")
    def decision(number: int) -> str:
        found = looking().decision(number) if number < 2**63 else None
        if found is None:
            abort(404, "There is no such decision, or it was deleted after its time.")
        line, whole = found
        return render_template(
            "dashboard/decision.html",
            line=line,
            decision=whole,
            calls=looking().calls(line.job),
            posted=looking().posted(line.job),
            subject=_subject(backend.jobs(), line.job),
        )

    @routes.get("/costs")
    def costs() -> str:
        since = g.now - timedelta(days=DAYS)
        days = looking().costs(since, "day")
        bars = [Bar(label=row.name[5:], values=(row.cost_usd,)) for row in days]
        return render_template(
            "dashboard/costs.html",
            chart=charts.stacked_bars(bars, ("spent",), f"US dollars on each of the last {DAYS} days", " $"),
            days=days,
            repositories=looking().costs(since, "repository"),
            models=looking().costs(since, "model"),
            budgets=_budgets(settings, looking(), g.now),
            meter=charts.meter,
        )


def _acting(routes: Blueprint, backend: Backend) -> None:
    @routes.get("/jobs")
    def jobs() -> str:
        states: tuple[State, ...] = tuple(each for each in get_args(State) if each == request.args.get("state"))
        return render_template(
            "dashboard/jobs.html",
            jobs=backend.jobs().list(states, request.args.get("repository", ""), 100),
            counts=backend.jobs().counts(),
            state=states[0] if states else "",
            states=get_args(State),
            open=OPEN,
        )

    @routes.get("/jobs/<path:job>")
    def job(job: str) -> str:
        return render_template("dashboard/job.html", job=_found(backend.jobs(), job), open=OPEN)

    @routes.post("/jobs/<path:job>/retry")
    def retry(job: str) -> Answer:
        return _act(backend.jobs().retry, job)

    @routes.post("/jobs/<path:job>/cancel")
    def cancel(job: str) -> Answer:
        return _act(backend.jobs().cancel, job)


def _act(act: Callable[[str], object], job: str) -> Answer:
    access.check_form()
    try:
        act(job)
    except OperatorError as error:
        abort(409, str(error))
    return redirect(url_for("dashboard.job", job=job), 303)


def _found(jobs: Jobs, job: str) -> object:
    try:
        return jobs.get(job)
    except OperatorError as error:
        abort(404, str(error))


def _subject(jobs: Jobs, job: str) -> tuple[str, str] | None:
    """Title and text of the issue or pull request as the job was given it; None after its time."""
    try:
        event = events.from_json(jobs.event(jobs.get(job)))
    except (OperatorError, NoResultFound, ValidationError):
        return None
    about = getattr(event, "issue", None) or getattr(event, "pull_request", None)
    return (about.title, about.body) if about else None


def _budgets(settings: Settings, overview: Overview, now: datetime) -> list[Budget]:
    """Today's spending against its limits, all together first, then by repository."""
    limits = {"all": (settings.daily_usd, None)}
    found = []
    for scope, spent in sorted(overview.spent(now.date()).items()):
        kind, _, name = scope.partition(":")
        if kind == "owner":
            continue
        usd, calls = limits.get(scope, (settings.repository_usd, settings.repository_calls))
        found.append(
            Budget(
                name=name or "everything",
                spent_usd=spent.micros / 1e6,
                limit_usd=usd,
                calls=spent.calls,
                limit_calls=calls,
            )
        )
    return found


def _rate_chart(row: Row) -> object:
    rate = row.dismissed
    told = f"{rate.share:.0%} dismissed, 95 % interval {rate.low:.0%} to {rate.high:.0%}"
    return charts.interval(rate.share, rate.low, rate.high, told)


def _link(line: Line, web_url: str) -> str:
    """Where people see the subject of a decision; empty for one about a whole repository."""
    kind = "issues" if line.kind in ("triage", "reproduce") else "pull"
    return f"{web_url}/{line.repository}/{kind}/{line.number}" if line.number else ""


def _given(chosen: Filter) -> dict[str, str]:
    return {name: value for name, value in chosen.model_dump().items() if value}


def _one_of(known: tuple[str, ...], value: str | None) -> str:
    return value if value in known else ""


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 19 else None
