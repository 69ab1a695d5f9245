"""``bouncer jobs`` and ``bouncer export``: the stored jobs and decisions, for a terminal or a script."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

import click

from bot.cli.files import confirm, json_option, print_json
from bot.cli.running import without_password
from bot.core.errors import OperatorError
from bot.core.text import amount
from bot.pipeline.job import State

if TYPE_CHECKING:
    from bot.pipeline.admin import Jobs
    from bot.pipeline.job import Job
    from bot.pipeline.store import Ledger

_database = click.option(
    "--database-url",
    metavar="URL",
    callback=without_password,
    help="sqlite:///FILE or postgresql://... [DATABASE_URL]",
)


def _start(_context: click.Context, _option: click.Parameter, value: str) -> datetime:
    """Return the moment that a date, a weekday of the last week, or a duration names."""
    now = datetime.now(UTC)
    weekdays = [name.lower() for name in calendar.day_name]
    if value.lower() in weekdays:
        days = (now.weekday() - weekdays.index(value.lower())) % 7
        return datetime.combine(now.date() - timedelta(days=days), datetime.min.time(), UTC)
    try:
        if match := re.fullmatch(r"(\d{1,6})([dhms])", value):
            return now - int(match[1]) * timedelta(seconds={"d": 86_400, "h": 3_600, "m": 60, "s": 1}[match[2]])
        return datetime.combine(date.fromisoformat(value), datetime.min.time(), UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter("must be a date, a weekday, or a number and d, h, m or s, such as 2d") from None


@click.group(no_args_is_help=True)
def jobs_command() -> None:
    """List, show, retry, rejudge and cancel jobs. A job's id is <delivery>:<task>."""


@jobs_command.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(get_args(State)),
    multiple=True,
    help="Only this state (repeatable).",
)
@click.option("--repository", default="", metavar="OWNER/NAME", help="Only this repository.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Most jobs.")
@_database
@json_option
def list_jobs(
    states: tuple[State, ...], repository: str, limit: int, database_url: str | None, as_json: bool
) -> None:
    """List the newest jobs; --state dead lists failed ones."""
    with _open(database_url) as (jobs, _):
        rows = jobs.list(states, repository, limit)
        counts, untaken = jobs.counts(), jobs.untaken()
    if as_json:
        print_json({"jobs": [job.model_dump() for job in rows], "counts": counts, "untaken_deliveries": untaken})
        return
    for job in rows:
        click.echo(_row(job))
    totals = [f"{count} {state}" for state, count in sorted(counts.items())] or ["no jobs"]
    if untaken:
        totals.append(f"{untaken} recorded deliveries that no worker has taken up yet")
    click.echo(", ".join(totals), err=True)


@jobs_command.command("show")
@click.argument("job_id", metavar="ID")
@_database
@json_option
def show_job(job_id: str, database_url: str | None, as_json: bool) -> None:
    """Show one job: its state, what it decided, what went wrong."""
    with _open(database_url) as (jobs, ledger):
        job = jobs.get(job_id)
        decisions = ledger.decisions.of_job(job_id)
    if as_json:
        print_json(
            {"job": job.model_dump(), "decisions": [decision.model_dump(mode="json") for decision in decisions]}
        )
        return
    for name, value in job.model_dump(exclude_none=True).items():
        click.echo(f"{name + ':':17}{_moment(value) if name.endswith('_at') or name == 'due' else value}")
    for decision in decisions:
        click.echo(f"{'decision:':17}{decision.verdict or decision.abstained or 'none'}: {decision.reason}")


@jobs_command.command("retry", short_help="Retry jobs; what was paid for is kept.")
@click.argument("job_ids", metavar="[ID...]", nargs=-1)
@click.option(
    "--abstained",
    default="",
    metavar="WORD",
    help="Every job that abstained with model:unavailable, for example.",
)
@click.option(
    "--since",
    default="7d",
    show_default=True,
    metavar="TIME",
    callback=_start,
    help="With --abstained: how long ago at most, such as 2d, 12h or 30m.",
)
@_database
@json_option
def retry_jobs(
    job_ids: tuple[str, ...], abstained: str, since: datetime, database_url: str | None, as_json: bool
) -> None:
    """Retry failed, cancelled or waiting jobs, or those that abstained. What was decided and paid for is kept."""
    if bool(job_ids) == bool(abstained):
        raise OperatorError("name either jobs or --abstained WORD")
    with _open(database_url) as (jobs, ledger):
        if job_ids:
            _print_jobs([jobs.retry(job_id) for job_id in job_ids], as_json)
            return
        abstentions = ledger.decisions.abstentions(abstained, since.timestamp())
        retried = [jobs.decide_again(job_id, words) for job_id, words in abstentions.items()]
        _print_jobs([job for job in retried if job is not None], as_json)
        skipped = retried.count(None)
        queued = amount(len(retried) - skipped, "job")
        click.echo(f"{queued} queued again, {skipped} skipped (open, or deleted)", err=True)


@jobs_command.command("rejudge", short_help="Judge again what an outage left without a verdict.")
@click.option("--since", required=True, metavar="DATE", callback=_start, help="Date, weekday, or 2d, 12h, 30m.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Most jobs.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_database
@json_option
def rejudge_jobs(since: datetime, limit: int, yes: bool, database_url: str | None, as_json: bool) -> None:
    """Judge again what an outage of a model, GitHub or the sandbox left without a verdict."""
    with _open(database_url) as (jobs, ledger):
        count = min(jobs.unjudged(since.timestamp()), limit)
        mean = ledger.overview.mean_cost(datetime.now(UTC) - timedelta(days=30))
        cost = "cost unknown" if mean is None else f"about {mean * count:.2f} USD"
        click.echo(f"{amount(count, 'job')} without a verdict since {since:%Y-%m-%d %H:%M} UTC; {cost}", err=True)
        if count and not yes:
            confirm("Judge them again?", "add --yes")
        queued = jobs.rejudge(since.timestamp(), limit) if count else 0
    if as_json:
        print_json({"queued": queued})
    else:
        click.echo(f"{amount(queued, 'job')} queued")


@jobs_command.command("redeliver", short_help="Ask GitHub again for deliveries that are missing.")
@click.option("--since", required=True, metavar="DATE", callback=_start, help="Date, weekday, or 2d, 12h, 30m.")
@_database
@json_option
def redeliver(since: datetime, database_url: str | None, as_json: bool) -> None:
    """Ask GitHub for the deliveries that are not stored, after a backup was restored. It keeps them for 3 days."""
    from bot.app import build_app
    from bot.pipeline.worker import Reconciler
    from bot.settings import load

    with _open(database_url) as (_, ledger), build_app(load()) as github:
        count = Reconciler(github, ledger.database).ask_again(since)
    if as_json:
        print_json({"deliveries": count})
    else:
        click.echo(f"{amount(count, 'delivery', 'deliveries')} requested from GitHub")


@jobs_command.command("cancel")
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@_database
@json_option
def cancel_jobs(job_ids: tuple[str, ...], database_url: str | None, as_json: bool) -> None:
    """Cancel jobs. Waiting ones never start, running ones post nothing more."""
    with _open(database_url) as (jobs, _):
        _print_jobs([jobs.cancel(job_id) for job_id in job_ids], as_json)


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(("csv", "json")),
    default="csv",
    show_default=True,
    help="CSV for a spreadsheet, or JSON.",
)
@click.option("--repository", default="", metavar="OWNER/NAME", help="Only this repository.")
@_database
def export_command(form: str, repository: str, database_url: str | None) -> None:
    """Print every decision on record, newest first: verdict, reason, model, tokens and cost."""
    from bot import settings
    from bot.pipeline.store import migrated
    from bot.pipeline.store.overview import Filter, Overview, as_csv, as_json

    loaded = settings.load(database_url=database_url)
    with migrated(loaded.database_url, must_exist=True) as database:
        make = as_csv if form == "csv" else as_json
        for line in make(Overview(database), Filter(repository=repository), loaded.github_web_url):
            click.echo(line, nl=False)


@contextmanager
def _open(database_url: str | None) -> Iterator[tuple[Jobs, Ledger]]:
    from bot import settings
    from bot.pipeline.admin import Jobs
    from bot.pipeline.store import Ledger, migrated

    url = settings.load(database_url=database_url).database_url
    with migrated(url, must_exist=True) as database, closing(Jobs(database)) as jobs:
        yield jobs, Ledger(database)


def _print_jobs(jobs: list[Job], as_json: bool) -> None:
    if as_json:
        print_json({"jobs": [job.model_dump() for job in jobs]})
        return
    for job in jobs:
        click.echo(_row(job))


def _row(job: Job) -> str:
    about = f"{job.repository}#{job.number}" if job.number else job.repository
    why = job.error or job.outcome or ""
    return f"{job.id}  {job.state:10}  {_moment(job.created_at)}  {about}  {why}".rstrip()


def _moment(value: Any) -> str:
    return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
