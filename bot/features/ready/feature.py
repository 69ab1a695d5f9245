"""Ready: say that an issue is ready for work, with a brief for the person who does it, if maintainers opt in."""

from typing import get_args

from bot.features.feature import Feature
from bot.features.ready.handler import ReadyRecord, Trigger, concerns, handle

FEATURE = Feature(
    name="ready",
    handle=handle,
    record=ReadyRecord,
    concerns=concerns,
    events=get_args(Trigger),
    after=("commands", "triage", "reproduce"),
    is_wanted=lambda _, config: config.triage.brief and config.triage.mode in ("comment", "label"),
    permissions={"issues": "write"},
)
