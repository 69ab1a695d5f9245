"""Commands: acknowledge or refuse ``/bouncer ...`` and remember what was accepted, paused or resumed."""

from datetime import timedelta

from bot.core import events
from bot.core.commands import AuthorLimit, SlashCommand
from bot.features.commands.handler import concerns, handle
from bot.features.commands.record import CommandsRecord
from bot.features.commands.standing import standing
from bot.features.feature import Feature

FEATURE = Feature(
    name="commands",
    handle=handle,
    record=CommandsRecord,
    standing=standing,
    concerns=concerns,
    events=(events.CommentCreated, events.ReviewCommentCreated, events.IssueUnlabeled),
    commands=(
        SlashCommand("help", help="show this list", open_to_all=True),
        SlashCommand(
            "recheck",
            help="read the issue or pull request again",
            author_limit=AuthorLimit(1, timedelta(minutes=10), text="every ten minutes, six times a day"),
            sections=("verify", "review"),
        ),
        SlashCommand("accept", help="this issue is fine as is; it is not bounced again", on_pull_requests=False),
        SlashCommand("pause", help="leave this issue or pull request alone"),
        SlashCommand("resume", help="look at it again from now on"),
    ),
    checks_staleness=False,
    permissions={"issues": "write", "pull_requests": "write"},
)
