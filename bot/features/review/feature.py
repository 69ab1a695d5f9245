"""Review: does this change introduce a defect?"""

from typing import get_args

from bot.core import events
from bot.features.feature import Feature, same_text
from bot.features.review.handler import concerns, handle
from bot.features.shared.records import ReviewRecord

FEATURE = Feature(
    name="review",
    handle=handle,
    record=ReviewRecord,
    concerns=concerns,
    events=(
        *get_args(events.PullShown),
        events.CommentCreated,
        events.ReviewCommentCreated,
        events.CheckRerequested,
        events.RecheckRequested,
    ),
    after=("commands",),
    # A new title is no reason to review again.
    supersedes=same_text(*get_args(events.HeadShown)),
    judges=True,
    permissions={"pull_requests": "write"},
)
