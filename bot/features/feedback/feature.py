"""Feedback: what people made of what was posted, and how judged subjects ended."""

from bot.core import events
from bot.features.feature import Feature
from bot.features.feedback.handler import concerns, handle
from bot.features.feedback.record import FeedbackRecord

FEATURE = Feature(
    name="feedback",
    handle=handle,
    record=FeedbackRecord,
    concerns=concerns,
    events=(
        events.IssueClosed,
        events.CommentEdited,
        events.CommentDeleted,
        events.PullRequestClosed,
        events.ReviewCommentEdited,
        events.ReviewCommentDeleted,
        events.ReviewThreadResolved,
    ),
    checks_staleness=False,
)
