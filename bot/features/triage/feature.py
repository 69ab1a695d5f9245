"""Triage, the input bouncer: is this issue specified well enough to act on?"""

from bot.core import events
from bot.features.feature import Feature
from bot.features.triage.handler import concerns, handle, supersedes
from bot.features.triage.record import TriageRecord
from bot.features.triage.standing import standing

FEATURE = Feature(
    name="triage",
    handle=handle,
    record=TriageRecord,
    standing=standing,
    concerns=concerns,
    events=(
        events.IssueOpened,
        events.IssueEdited,
        events.IssueReopened,
        events.IssueLabeled,
        events.CommentCreated,
        events.CommentEdited,
        events.RecheckRequested,
    ),
    after=("commands",),
    supersedes=supersedes,
    debounces=(events.IssueEdited,),
    judges=True,
    permissions={"issues": "write"},
)
