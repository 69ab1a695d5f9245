"""``bouncer index``: read a repository's issues once, so that later ones can be compared with them."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from bot.cli.numbers import Finite
from bot.cli.remote import reached, repository
from bot.core.text import amount

if TYPE_CHECKING:
    from bot.app import Access
    from bot.pipeline.store.issues import Issues

#: Seconds between two requests.
PAUSE_SECONDS = 1.0


@click.command()
@click.argument("name", metavar="OWNER/REPO")
@click.option("--fresh", is_flag=True, help="Delete the index and begin anew.")
@click.option(
    "--pause",
    type=Finite(0, 60),
    default=PAUSE_SECONDS,
    show_default=True,
    help="Seconds between requests.",
)
def command(name: str, fresh: bool, pause: float) -> int:
    """Index the open issues of OWNER/REPO, and those closed within a year, in DATABASE_URL.

    It asks no model and writes nothing to GitHub. If interrupted, the same command resumes. From then on webhooks
    keep the index up to date.
    """
    from bot.pipeline.store import Ledger, migrated
    from bot.settings import load

    settings = load()
    name = repository(name, settings)
    with migrated(settings.database_url, must_exist=True) as database, reached(settings, name) as access:
        database.withheld = lambda: settings.secrets
        issues = Ledger(database).issues
        # Deliveries name the repository as GitHub spells it.
        name = access.forge.about().full_name
        _read(name, issues, access, pause, fresh=fresh)
        click.echo(f"{name}: {amount(issues.count(name), 'issue is', 'issues are')} indexed")
    return 0


def _read(name: str, issues: Issues, access: Access, pause: float, *, fresh: bool) -> None:
    from bot import app
    from bot.pipeline.store.issues import KEEP_SECONDS, FirstPass, duplicate_of, is_duplicate

    progress = issues.progress(name)
    if progress is None or fresh:
        progress = issues.begin(name)
    since = app.now() - timedelta(seconds=KEEP_SECONDS)
    while not progress.complete:
        time.sleep(pause)
        if progress.listing == "comments":
            comments, more = access.forge.comment_page(progress.page, since)
            click.echo(f"comments, page {progress.page}", err=True)
            turned = {"page": progress.page + 1} if more else {"complete": True}
            progress = progress.model_copy(update=turned)
            issues.add_questions(name, comments, progress)
            continue
        page, more = access.forge.issue_page(
            progress.listing, progress.page, since if progress.listing == "closed" else None
        )
        click.echo(f"{progress.listing} issues, page {progress.page}", err=True)
        rows = [
            issue
            for issue in page
            if not issue.is_pull_request and (issue.closed_at is None or issue.closed_at >= since)
        ]
        roots: dict[int, int] = {}
        for issue in rows:
            if is_duplicate(issue):
                time.sleep(pause)
                roots[issue.number] = issue.number
                for comment in access.forge.comments(issue.number):
                    roots[issue.number] = duplicate_of(name, comment) or roots[issue.number]
        if more:
            progress = progress.model_copy(update={"page": progress.page + 1})
        elif progress.listing == "open":
            progress = FirstPass(listing="closed")
        else:
            progress = FirstPass(listing="comments")
        issues.add(name, rows, roots, progress)
