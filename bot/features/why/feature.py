"""Why: ``/bouncer why`` is answered from what was recorded with a verdict or a finding."""

from bot.core import events
from bot.features.feature import Feature
from bot.features.shared.records import WhyRecord
from bot.features.why.handler import concerns, handle

FEATURE = Feature(
    name="why",
    handle=handle,
    record=WhyRecord,
    concerns=concerns,
    events=(events.CommentCreated, events.ReviewCommentCreated),
    checks_staleness=False,
    permissions={"issues": "write", "pull_requests": "write"},
)
