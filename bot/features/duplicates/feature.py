"""Duplicates: name an earlier issue that a new one may repeat."""

from bot.core import events
from bot.features.duplicates.handler import handle
from bot.features.duplicates.record import DuplicatesRecord
from bot.features.feature import Feature

FEATURE = Feature(
    name="duplicates",
    handle=handle,
    record=DuplicatesRecord,
    events=(events.IssueOpened,),
    after=("commands", "triage"),
    permissions={"issues": "write"},
)
