"""Closing: a bounced issue that its author never answers is closed after a warning, if maintainers opt in."""

from bot.core import events
from bot.features.closing.handler import concerns, handle
from bot.features.closing.record import ClosingRecord
from bot.features.feature import Feature

FEATURE = Feature(
    name="closing",
    handle=handle,
    record=ClosingRecord,
    concerns=concerns,
    events=(
        events.IssueUnanswered,
        events.IssueEdited,
        events.CommentCreated,
        events.CommentEdited,
        events.CommentDeleted,
    ),
    permissions={"issues": "write"},
)
