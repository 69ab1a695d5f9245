"""Duplicates: name an earlier issue that a new one may repeat."""

from typing import get_args

from bot.features.duplicates.handler import Trigger, concerns, handle
from bot.features.duplicates.record import DuplicatesRecord
from bot.features.feature import Feature

FEATURE = Feature(
    name="duplicates",
    handle=handle,
    record=DuplicatesRecord,
    concerns=concerns,
    events=get_args(Trigger),
    after=("commands", "triage"),
    permissions={"issues": "write"},
)
