"""Ready: say that an issue is ready for work, with a brief for the person who does it, if maintainers opt in."""

from bot.core import events
from bot.features.feature import Feature
from bot.features.ready.handler import ReadyRecord, concerns, handle

FEATURE = Feature(
    name="ready",
    handle=handle,
    record=ReadyRecord,
    concerns=concerns,
    events=(
        events.IssueEdited,
        events.IssueReopened,
        events.IssueLabeled,
        events.IssueUnlabeled,
        events.CommentCreated,
    ),
    after=("commands", "triage", "reproduce"),
    permissions={"issues": "write"},
)
