"""Feedback: what people made of what was posted, and how judged subjects ended."""

from typing import get_args

from bot.features.feature import Feature
from bot.features.feedback.handler import Trigger, concerns, handle
from bot.features.feedback.record import FeedbackRecord

FEATURE = Feature(
    name="feedback",
    handle=handle,
    record=FeedbackRecord,
    concerns=concerns,
    events=get_args(Trigger),
    checks_staleness=False,
)
