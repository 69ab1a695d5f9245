"""``bouncer export``: the decisions on record as CSV or JSON, for a spreadsheet or a script."""

from __future__ import annotations

import click

from bot.cli.running import without_password


@click.command()
@click.option("--format", "form", type=click.Choice(("csv", "json")), default="csv", show_default=True)
@click.option("--repository", default="", metavar="OWNER/NAME", help="Only of this repository.")
@click.option(
    "--database-url",
    metavar="URL",
    callback=without_password,
    help="sqlite:///FILE or postgresql://... [DATABASE_URL]",
)
def command(form: str, repository: str, database_url: str | None) -> None:
    """Print every decision on record, newest first: verdict, reason, model, tokens and cost."""
    from bot.ops import settings
    from bot.store import migrated
    from bot.store.export import as_csv, as_json
    from bot.store.overview import Filter, Overview

    loaded = settings.load(database_url=database_url)
    with migrated(loaded.database_url, must_exist=True) as database:
        make = as_csv if form == "csv" else as_json
        for line in make(Overview(database), Filter(repository=repository), loaded.github_web_url):
            click.echo(line, nl=False)
