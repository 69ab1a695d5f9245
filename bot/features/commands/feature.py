"""Commands: acknowledge or refuse ``/bouncer ...`` and remember what was accepted, paused or resumed."""

from bot.core import events
from bot.features.commands.handler import concerns, handle
from bot.features.feature import Feature
from bot.features.shared.records import CommandsRecord

FEATURE = Feature(
    name="commands",
    handle=handle,
    record=CommandsRecord,
    concerns=concerns,
    events=(events.CommentCreated, events.ReviewCommentCreated, events.IssueUnlabeled),
    checks_staleness=False,
    permissions={"issues": "write", "pull_requests": "write"},
)
