"""The pages that only read: from the ledger to a template."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlencode

from flask import Response, abort, g, render_template, request
from markupsafe import Markup
from pydantic import ValidationError

from bot.calibration import plots, risk
from bot.calibration.risk import OperatingPoint, PromiseRecord
from bot.core import events
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from bot.core.markdown import clean
from bot.core.subjects import KnownFate
from bot.features.verify.pull_queue import QueuedPull, in_order
from bot.pipeline.admin import Jobs
from bot.pipeline.body import MAX_BODY, as_html
from bot.pipeline.store.feedback import watch
from bot.pipeline.store.installations import EVERYTHING
from bot.pipeline.store.overview import PAGE, DecisionResult, Filter, Overview, as_csv, as_json
from bot.router import FEATURES
from bot.settings import Settings
from bot.web.app import Backend
from bot.web.dashboard import DashboardSettings, acting, posted

DAYS = 30
#: The overview reloads itself.
REFRESH_SECONDS = "60"
#: Comments on a page that shows them whole.
PREVIEWS = 15

_WORDS: dict[Literal["triage", "verify"], tuple[str, str, str]] = {
    "triage": ("Issues", "issues that a merged pull request closed", "issues closed as not planned"),
    "verify": ("Pull requests", "patches merged and kept for 30 days", "patches reverted or repaired"),
}
_TENTHS = range(10, 100, 10)


class Spending(Frozen):
    """Spending and limits of one scope today."""

    name: str
    spent_usd: float | None
    unpriced: int
    limit_usd: float | None
    calls: int
    limit_calls: int | None


class Drawn(NamedTuple):
    """One bouncer's results, for the template."""

    name: str
    fine: str
    wrong: str
    good: int
    harmed: int
    bad: int
    caught: int
    harm: int | None
    watch: PromiseRecord | None
    rows: tuple[tuple[str, OperatingPoint], ...]
    by_line: Markup
    coverage: Markup
    reliability: Markup


def overview(settings: DashboardSettings, backend: Backend) -> Response:
    """Show the current state and the last 30 days."""
    overview = backend.ledger.overview
    repository = request.args.get("repository", "")
    days = overview.days(g.now.date(), DAYS, repository)
    bars = [(day.day.strftime("%d %b"), (day.bounced, day.passed, day.abstained)) for day in days]
    page = render_template(
        "dashboard/overview.html",
        days=days,
        bars=bars,
        top=_axis(bars),
        repositories=overview.repositories(),
        repository=repository,
        rates=backend.ledger.signals.rates(repository or None),
        budgets=_budgets(settings.server, overview, g.now),
        jobs=backend.jobs.unfinished(),
        oldest=backend.jobs.oldest_age(),
        worker=backend.jobs.worker_age(),
        everything=backend.ledger.installations.pauses().get(EVERYTHING),
        wrong_configurations=overview.wrong_configurations(),
        faults=backend.ledger.faults.all(),
        alarm=overview.abstention_alarm(),
    )
    return Response(page, headers={"Refresh": REFRESH_SECONDS})


def decisions(settings: DashboardSettings, backend: Backend) -> str:
    overview, query = backend.ledger.overview, _filter()
    lines = overview.decisions(query, _number(request.args.get("before")))
    older = urlencode({**_parameters(query), "before": lines[-1].id}) if len(lines) == PAGE else ""
    return render_template(
        "dashboard/decisions.html",
        lines=lines,
        query=query,
        parameters=_parameters(query),
        older=older,
        kinds=[feature.name for feature in FEATURES],
        repositories=overview.repositories(),
    )


def export(settings: DashboardSettings, backend: Backend, form: str) -> Response:
    """Return all decisions that pass the filter as a file."""
    make, kind = {"csv": (as_csv, "text/csv"), "json": (as_json, "application/json")}.get(form) or abort(404)
    response = Response(
        make(backend.ledger.overview, _filter(), settings.server.github_web_url),
        content_type=f"{kind}; charset=utf-8",
    )
    response.headers["Content-Disposition"] = f"attachment; filename=bouncer-decisions.{form}"
    return response


def installations(settings: DashboardSettings, backend: Backend) -> str:
    """Show installations, their last delivery, and what is paused."""
    store = backend.ledger.installations
    pauses = store.pauses()
    return render_template(
        "dashboard/installations.html",
        installations=store.all(),
        repositories=store.repositories(),
        pauses=pauses,
        everything=pauses.get(EVERYTHING),
    )


def decision(settings: DashboardSettings, backend: Backend, number: int) -> str:
    overview = backend.ledger.overview
    row = overview.decision(number) if number < 2**63 else None
    if row is None:
        abort(404, "No such decision, or it has expired.")
    line, whole = row
    return render_template(
        "dashboard/decision.html",
        line=line,
        decision=whole,
        calls=overview.calls(line.job),
        cards=posted.cards(
            whole, overview.postings(line.job), settings.server.github_web_url, settings.server.about_url
        ),
        unposted=posted.unposted(whole),
        paused=acting.is_paused(backend, whole.subject),
        subject=_subject(backend.jobs, line.job),
    )


def shadow(settings: DashboardSettings, backend: Backend) -> str:
    """Show what shadow mode did not post."""
    overview = backend.ledger.overview
    rows = [
        (line, posted.cards(decision, (), settings.server.github_web_url, settings.server.about_url))
        for line, decision in overview.full_decisions(
            Filter(outcome="withheld"), _number(request.args.get("before")), PREVIEWS
        )
    ]
    older = urlencode({"before": rows[-1][0].id}) if len(rows) == PREVIEWS else ""
    return render_template("dashboard/shadow.html", rows=rows, older=older)


def queue(settings: DashboardSettings, backend: Backend) -> str:
    """Show the open pull requests of a repository in the order in which to look at them."""
    ledger = backend.ledger
    repositories, repository = ledger.overview.repositories(), request.args.get("repository", "")
    if repository and repository not in repositories:
        abort(404, "No such repository here.")
    rows: tuple[QueuedPull, ...] = ()
    problem = ""
    if repository:
        try:
            rows = in_order(repository, settings.open_pulls(repository), ledger.decisions.decisions)
        except OperatorError as error:
            problem = str(error)
    return render_template(
        "dashboard/queue.html", repositories=repositories, repository=repository, rows=rows, problem=problem
    )


def costs(settings: DashboardSettings, backend: Backend) -> str:
    overview = backend.ledger.overview
    since = g.now - timedelta(days=DAYS)
    days = overview.costs(since, "day")
    is_priced = any(row.cost_usd is not None for row in days)
    bars = [(row.name[5:], ((row.cost_usd or 0.0) if is_priced else float(row.calls),)) for row in days]
    return render_template(
        "dashboard/costs.html",
        bars=bars,
        is_priced=is_priced,
        top=_axis(bars),
        days=days,
        repositories=overview.costs(since, "repository"),
        models=overview.costs(since, "model"),
        budgets=_budgets(settings.server, overview, g.now),
    )


def line(settings: DashboardSettings, backend: Backend) -> str:
    """Show each bouncer's results in a repository, other thresholds, and whether its promise holds."""
    repositories = backend.ledger.overview.repositories()
    repository = request.args.get("repository") or (repositories[0] if len(repositories) == 1 else "")
    charts = [
        _drawn(bouncer, fates)
        for bouncer in _WORDS
        if repository and (fates := backend.ledger.fates.of(repository, bouncer))
    ]
    return render_template("dashboard/line.html", repositories=repositories, repository=repository, charts=charts)


def _filter() -> Filter:
    return Filter(
        repository=request.args.get("repository", ""),
        kind=next((feature.name for feature in FEATURES if feature.name == request.args.get("kind")), ""),
        result=next((name for name in get_args(DecisionResult) if name == request.args.get("came")), None),
        text=request.args.get("text", "")[:200].strip(),
    )


def _subject(jobs: Jobs, job: str) -> tuple[str, Markup] | None:
    """Return title and text of the issue or pull request as the job received it; None if that expired."""
    try:
        text = jobs.event(jobs.get(job))
        if text is None:
            return None
        event = events.from_json(text)
    except (OperatorError, ValidationError):
        return None
    about = getattr(event, "issue", None) or getattr(event, "pull_request", None)
    return (about.title, as_html(clean(about.body, limit=MAX_BODY))) if about else None


def _drawn(bouncer: Literal["triage", "verify"], fates: Sequence[KnownFate]) -> Drawn:
    name, fine, wrong = _WORDS[bouncer]
    cases = risk.judged(fates)
    good = [fate for fate in fates if fate.good]
    bad = [fate for fate in fates if not fate.good]
    curve = risk.curve(cases)
    return Drawn(
        name=name,
        fine=fine,
        wrong=wrong,
        good=len(good),
        harmed=sum(fate.bounced for fate in good),
        bad=len(bad),
        caught=sum(fate.bounced for fate in bad),
        harm=fates[-1].harm,
        watch=watch(fates),
        rows=tuple((f"at or above {at} %", risk.line_at(cases, at)) for at in _TENTHS) if cases else (),
        by_line=plots.by_line(curve, None, fine, wrong),
        coverage=plots.risk_over_coverage(curve, None),
        reliability=plots.reliability(risk.bins(cases)),
    )


def _budgets(server: Settings, overview: Overview, now: datetime) -> list[Spending]:
    """Return today's spending and limits, all together first, then by repository."""
    limits = {"all": (server.bouncer_daily_budget_usd, None)}
    unknown = {
        row.name: row.unpriced
        for row in overview.costs(now.replace(hour=0, minute=0, second=0, microsecond=0), "repository")
    }
    spending = []
    for scope, spent in sorted(overview.spent(now.date()).items()):
        kind, _, name = scope.partition(":")
        if kind == "owner":
            continue
        usd, calls = limits.get(scope, (server.bouncer_repository_budget_usd, server.bouncer_repository_calls))
        unpriced = unknown.get(name, 0) if name else sum(unknown.values())
        spending.append(
            Spending(
                name=name or "everything",
                spent_usd=spent.micros / 1e6 if spent.micros or not unpriced else None,
                unpriced=unpriced,
                limit_usd=usd,
                calls=spent.calls,
                limit_calls=calls,
            )
        )
    return spending


def _axis(bars: Sequence[tuple[str, Sequence[float]]]) -> float:
    """Return the end of the axis: the next of 1, 2, 4, 10, 20, 40, ... (or 0.1, 0.2, ...)."""
    value = max((sum(values) for _, values in bars), default=0.0)
    if value <= 0:
        return 1.0
    size = 1.0
    while size * 10 < value:
        size *= 10
    while size >= value * 10:
        size /= 10
    return next(size * step for step in (1, 2, 4, 10) if size * step >= value)


def _parameters(query: Filter) -> dict[str, str]:
    return {name: value for name, value in query.model_dump(by_alias=True).items() if value}


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 19 else None
