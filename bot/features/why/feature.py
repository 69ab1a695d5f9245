"""Why: ``/bouncer why`` is answered from what was recorded with a verdict or a finding."""

from datetime import timedelta
from functools import partial

from bot.core import events
from bot.core.commands import AuthorLimit, SlashCommand
from bot.features.feature import Feature
from bot.features.why.explained import verdict_of
from bot.features.why.handler import concerns, handle
from bot.features.why.record import WhyRecord
from bot.features.why.standing import standing

FEATURE = Feature(
    name="why",
    handle=partial(handle, verdict_of=verdict_of),
    record=WhyRecord,
    standing=standing,
    concerns=concerns,
    events=(events.CommentCreated, events.ReviewCommentCreated),
    commands=(
        SlashCommand(
            "why",
            help="explain what the verdict rests on, or in a finding's thread, that finding",
            author_limit=AuthorLimit(3, timedelta(days=1), text="three times a day"),
        ),
    ),
    checks_staleness=False,
    permissions={"issues": "write", "pull_requests": "write"},
)
