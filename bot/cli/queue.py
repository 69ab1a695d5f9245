"""``bouncer queue``: the open pull requests of a repository in the order in which to look at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bot.cli.files import json_option, print_json, show_card
from bot.cli.remote import reached, repository
from bot.core.text import amount

if TYPE_CHECKING:
    from datetime import datetime

    from bot.features.verify.pull_queue import QueuedPull


@click.command()
@click.argument("name", metavar="OWNER/REPO")
@click.option(
    "--limit",
    type=click.IntRange(1, 500),
    default=100,
    show_default=True,
    help="Most pull requests, oldest first.",
)
@json_option
def command(name: str, limit: int, as_json: bool) -> int:
    """List the open pull requests of OWNER/REPO: verified ones first, then by tests, whose turn it is, and age.

    Verdicts come from DATABASE_URL, the list from GitHub: one request for 50. No model is asked.
    """
    from bot import app
    from bot.features.verify.pull_queue import in_order
    from bot.pipeline.store import Ledger, migrated
    from bot.settings import load

    settings = load()
    name = repository(name, settings)
    with migrated(settings.database_url, must_exist=True) as database, reached(settings, name) as access:
        # Deliveries name the repository as GitHub spells it.
        about = access.forge.about()
        rows = in_order(about.full_name, access.forge.open_pulls(limit), Ledger(database).decisions.decisions)
    if as_json:
        pulls = [row.as_object(app.now(), about.html_url) for row in rows]
        print_json({"repository": about.full_name, "pulls": pulls})
    else:
        show_card(_as_text(about.full_name, rows, app.now()))
    return 0


def _as_text(name: str, rows: Sequence[QueuedPull], now: datetime) -> str:
    turns = Counter(row.turn for row in rows)
    lines = [
        f"{name}, {amount(len(rows), 'open pull request')}: {turns['maintainers']} wait for a maintainer, "
        f"{turns['author']} for the author."
    ]
    lines += [""] if rows else []
    for row in rows:
        draft = " (draft)" if row.pull.draft else ""
        facts = f"{row.verdict:14}  tests {row.tests:7}  turn: {row.turn:11}  {row.days(now):4} days"
        lines.append(f"{facts}  #{row.pull.number:<5} {row.pull.title}{draft}, by {row.pull.author or 'ghost'}")
    return "\n".join(lines)
