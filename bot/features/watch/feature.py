"""Watch: run an issue's stored test on the default branch, once a day and for `/bouncer bisect`. Asks no model."""

from bot.core import events
from bot.core.commands import SlashCommand
from bot.features.feature import Feature
from bot.features.watch.handler import WatchRecord, concerns, handle

FEATURE = Feature(
    name="watch",
    handle=handle,
    record=WatchRecord,
    concerns=concerns,
    events=(events.IssueUnanswered, events.IssueReopened, events.CommentCreated),
    commands=(
        SlashCommand("bisect", help="find the commit since which the drafted test fails", on_pull_requests=False),
    ),
    after=("commands",),
    # An outcome of the default branch does not depend on the issue's text.
    checks_staleness=False,
    executes=True,
    permissions={"issues": "write"},
)
