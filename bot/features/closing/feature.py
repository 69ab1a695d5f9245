"""Closing: a bounced issue that its author never answers is closed after a warning, if maintainers opt in."""

from typing import get_args

from bot.features.closing.handler import Trigger, closes_issues, concerns, handle
from bot.features.closing.record import ClosingRecord
from bot.features.feature import Feature

FEATURE = Feature(
    name="closing",
    handle=handle,
    record=ClosingRecord,
    concerns=concerns,
    events=get_args(Trigger),
    # An answer takes back what was done before that.
    is_wanted=lambda decision, config: decision.verdict == "answered" or closes_issues(config.triage),
    permissions={"issues": "write"},
)
