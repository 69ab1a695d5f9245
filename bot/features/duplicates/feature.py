"""Duplicates: name an earlier issue that a new one may repeat."""

from bot.core import events
from bot.features.duplicates.handler import concerns, handle
from bot.features.duplicates.record import DuplicatesRecord
from bot.features.feature import Feature

FEATURE = Feature(
    name="duplicates",
    handle=handle,
    record=DuplicatesRecord,
    concerns=concerns,
    events=(events.IssueOpened, events.IssueLabeled),
    after=("commands", "triage"),
    permissions={"issues": "write"},
)
