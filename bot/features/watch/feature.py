"""Watch: run an issue's stored test on the default branch, once a day and for `/bouncer bisect`. Asks no model."""

from typing import get_args

from bot.core.commands import SlashCommand
from bot.features.feature import Feature
from bot.features.watch.handler import Trigger, WatchRecord, concerns, handle

FEATURE = Feature(
    name="watch",
    handle=handle,
    record=WatchRecord,
    concerns=concerns,
    events=get_args(Trigger),
    commands=(
        SlashCommand("bisect", help="find the commit since which the drafted test fails", on_pull_requests=False),
    ),
    after=("commands",),
    # An outcome of the default branch does not depend on the text.
    checks_staleness=False,
    executes=True,
    permissions={"issues": "write"},
)
