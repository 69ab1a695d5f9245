"""The pages that only show: read from the ledger, hand to a template."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlencode

from flask import Response, abort, g, render_template, request
from markupsafe import Markup
from pydantic import ValidationError

from bot.calibration import plots, reliability, risk
from bot.calibration.fates import KnownFate
from bot.calibration.risk import Judged, OperatingPoint, PromiseRecord
from bot.core import events
from bot.core.actions import Task
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen
from bot.core.markdown import clean
from bot.pipeline.admin import Jobs
from bot.pipeline.body import MAX_BODY, as_html
from bot.pipeline.store.installations import EVERYTHING
from bot.pipeline.store.overview import PAGE, Came, Filter, Overview, as_csv, as_json
from bot.web.app import Backend
from bot.web.dashboard import DashboardSettings, acting, posted

DAYS = 30
#: Comments on a page that shows them whole.
PREVIEWS = 15

_WORDS: dict[Literal["triage", "verify"], tuple[str, str, str]] = {
    "triage": ("Issues", "issues that a merged pull request closed", "issues closed as not planned"),
    "verify": ("Pull requests", "patches merged and kept for 30 days", "patches reverted or repaired"),
}
_TENTHS = range(10, 100, 10)


class Spending(Frozen):
    """What may be spent a day in one scope, and what was."""

    name: str
    spent_usd: float | None
    unpriced: int
    limit_usd: float | None
    calls: int
    limit_calls: int | None


class Drawn(NamedTuple):
    """One bouncer's line, for the template."""

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


def overview(settings: DashboardSettings, backend: Backend) -> str:
    """How it stands and how it went."""
    seen = _overview(backend)
    repository = request.args.get("repository", "")
    days = seen.days(g.now.date(), DAYS, repository)
    bars = [(day.day.strftime("%d %b"), (day.bounced, day.passed, day.abstained)) for day in days]
    return render_template(
        "dashboard/overview.html",
        days=days,
        bars=bars,
        top=_axis(bars),
        repositories=seen.repositories(),
        repository=repository,
        rates=backend.ledger().signals.rates(repository or None),
        budgets=_budgets(settings, seen, g.now),
        jobs=backend.jobs().counts(),
        oldest=backend.jobs().oldest_age(),
        worker=backend.jobs().worker_age(),
        everything=backend.ledger().installations.pauses().get(EVERYTHING),
        wrong_configurations=seen.wrong_configurations(),
        faults=backend.ledger().faults.all(),
    )


def decisions(settings: DashboardSettings, backend: Backend) -> str:
    """A page of decisions, newest first."""
    seen, chosen = _overview(backend), _chosen()
    lines = seen.decisions(chosen, _number(request.args.get("before")))
    older = urlencode({**_given(chosen), "before": lines[-1].id}) if len(lines) == PAGE else ""
    return render_template(
        "dashboard/decisions.html",
        lines=lines,
        chosen=chosen,
        given=_given(chosen),
        older=older,
        kinds=get_args(Task),
        repositories=seen.repositories(),
    )


def export(settings: DashboardSettings, backend: Backend, form: str) -> Response:
    """The decisions that pass the filter, all of them, as a file."""
    make, kind = {"csv": (as_csv, "text/csv"), "json": (as_json, "application/json")}.get(form) or abort(404)
    response = Response(
        make(_overview(backend), _chosen(), settings.web_url), content_type=f"{kind}; charset=utf-8"
    )
    response.headers["Content-Disposition"] = f"attachment; filename=bouncer-decisions.{form}"
    return response


def installations(settings: DashboardSettings, backend: Backend) -> str:
    """Where the app is installed, when something was last heard from there, and what is paused."""
    known = backend.ledger().installations
    pauses = known.pauses()
    return render_template(
        "dashboard/installations.html",
        installations=known.all(),
        repositories=known.repositories(),
        pauses=pauses,
        everything=pauses.get(EVERYTHING),
    )


def decision(settings: DashboardSettings, backend: Backend, number: int) -> str:
    """Everything about one decision."""
    seen = _overview(backend)
    found = seen.decision(number) if number < 2**63 else None
    if found is None:
        abort(404, "There is no such decision, or it was deleted after its time.")
    line, whole = found
    return render_template(
        "dashboard/decision.html",
        line=line,
        decision=whole,
        calls=seen.calls(line.job),
        cards=posted.cards(whole, seen.posted(line.job), settings.web_url),
        held=posted.held_back(whole),
        paused=acting.left_alone(backend, whole.subject),
        subject=_subject(backend.jobs(), line.job),
    )


def shadow(settings: DashboardSettings, backend: Backend) -> str:
    """What people would have seen."""
    seen = _overview(backend)
    chosen = Filter(outcome="withheld")
    lines = seen.decisions(chosen, _number(request.args.get("before")), PREVIEWS)
    rows = [
        (line, posted.cards(found[1], (), settings.web_url)) for line in lines if (found := seen.decision(line.id))
    ]
    older = urlencode({"before": lines[-1].id}) if len(lines) == PREVIEWS else ""
    return render_template("dashboard/shadow.html", rows=rows, older=older)


def costs(settings: DashboardSettings, backend: Backend) -> str:
    """What was spent, on what."""
    seen = _overview(backend)
    since = g.now - timedelta(days=DAYS)
    days = seen.costs(since, "day")
    bars = [(row.name[5:], (row.cost_usd or 0.0,)) for row in days]
    return render_template(
        "dashboard/costs.html",
        bars=bars,
        top=_axis(bars),
        days=days,
        repositories=seen.costs(since, "repository"),
        models=seen.costs(since, "model"),
        budgets=_budgets(settings, seen, g.now),
    )


def line(settings: DashboardSettings, backend: Backend) -> str:
    """What each bouncer did in a repository, what another line would have done, and whether its promise holds."""
    repositories = _overview(backend).repositories()
    repository = request.args.get("repository") or (repositories[0] if len(repositories) == 1 else "")
    drawn = [
        _drawn(bouncer, fates)
        for bouncer in _WORDS
        if repository and (fates := backend.ledger().fates.of(repository, bouncer))
    ]
    return render_template("dashboard/line.html", repositories=repositories, repository=repository, drawn=drawn)


def _chosen() -> Filter:
    return Filter(
        repository=request.args.get("repository", ""),
        kind=_one_of(get_args(Task), request.args.get("kind")),
        came=next((each for each in get_args(Came) if each == request.args.get("came")), None),
        text=request.args.get("text", "")[:200].strip(),
    )


def _overview(backend: Backend) -> Overview:
    return Overview(backend.ledger().database)


def _subject(jobs: Jobs, job: str) -> tuple[str, Markup] | None:
    """Title and text of the issue or pull request as the job was given it; None after its time."""
    try:
        stored = jobs.event(jobs.get(job))
        if stored is None:
            return None
        event = events.from_json(stored)
    except (OperatorError, ValidationError):
        return None
    about = getattr(event, "issue", None) or getattr(event, "pull_request", None)
    return (about.title, as_html(clean(about.body, limit=MAX_BODY))) if about else None


def _drawn(bouncer: Literal["triage", "verify"], fates: Sequence[KnownFate]) -> Drawn:
    name, fine, wrong = _WORDS[bouncer]
    cases = [
        Judged(subject=each.subject, p_bounce=each.p_bounce, good=each.good)
        for each in fates
        if each.p_bounce is not None
    ]
    good = [each for each in fates if each.good]
    bad = [each for each in fates if not each.good]
    # The promise that is in force is the one under which the newest subject was judged.
    harm = fates[-1].harm
    watch = (
        None
        if harm is None
        else risk.watch_promise((each.bounced for each in good if each.harm == harm), harm / 100)
    )
    curve = risk.curve(cases)
    return Drawn(
        name=name,
        fine=fine,
        wrong=wrong,
        good=len(good),
        harmed=sum(each.bounced for each in good),
        bad=len(bad),
        caught=sum(each.bounced for each in bad),
        harm=harm,
        watch=watch,
        rows=tuple((f"from {at} %", risk.line_at(cases, at)) for at in _TENTHS) if cases else (),
        by_line=plots.by_line(curve, None, fine, wrong),
        coverage=plots.risk_over_coverage(curve, None),
        reliability=plots.reliability(reliability.bins(cases)),
    )


def _budgets(settings: DashboardSettings, overview: Overview, now: datetime) -> list[Spending]:
    """Today's spending against its limits, all together first, then by repository."""
    limits = {"all": (settings.daily_usd, None)}
    unknown = {
        row.name: row.unpriced
        for row in overview.costs(now.replace(hour=0, minute=0, second=0, microsecond=0), "repository")
    }
    found = []
    for scope, spent in sorted(overview.spent(now.date()).items()):
        kind, _, name = scope.partition(":")
        if kind == "owner":
            continue
        usd, calls = limits.get(scope, (settings.repository_usd, settings.repository_calls))
        unpriced = unknown.get(name, 0) if name else sum(unknown.values())
        found.append(
            Spending(
                name=name or "everything",
                spent_usd=spent.micros / 1e6 if spent.micros or not unpriced else None,
                unpriced=unpriced,
                limit_usd=usd,
                calls=spent.calls,
                limit_calls=calls,
            )
        )
    return found


def _axis(bars: Sequence[tuple[str, Sequence[float]]]) -> float:
    """Where the axis ends: the next of 1, 2, 4, 10, 20, 40, ... (or 0.1, 0.2, ...), which people can read."""
    value = max((sum(values) for _, values in bars), default=0.0)
    if value <= 0:
        return 1.0
    size = 1.0
    while size * 10 < value:
        size *= 10
    while size >= value * 10:
        size /= 10
    return next(size * step for step in (1, 2, 4, 10) if size * step >= value)


def _given(chosen: Filter) -> dict[str, str]:
    return {name: value for name, value in chosen.model_dump().items() if value}


def _one_of(known: tuple[str, ...], value: str | None) -> str:
    return value if value in known else ""


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 19 else None
