"""Closing: a bounced issue that its author never answers is closed after a warning, if maintainers opt in."""

from typing import get_args

from bot.features.closing.handler import Trigger, concerns, handle
from bot.features.closing.record import ClosingRecord
from bot.features.feature import Feature

FEATURE = Feature(
    name="closing",
    handle=handle,
    record=ClosingRecord,
    concerns=concerns,
    events=get_args(Trigger),
    permissions={"issues": "write"},
)
