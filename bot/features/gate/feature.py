"""Gate: a pull request needs an issue that is ready for work, if maintainers opt in. No model is asked."""

from typing import get_args

from bot.features.feature import Feature
from bot.features.gate.handler import GateRecord, Trigger, concerns, handle, supersedes

FEATURE = Feature(
    name="gate",
    handle=handle,
    record=GateRecord,
    concerns=concerns,
    events=get_args(Trigger),
    after=("commands",),
    supersedes=supersedes,
    # Each evaluation reads everything that it rests on, and a newer event has an evaluation of its own.
    checks_staleness=False,
    # If it was switched off, an evaluation undoes what this one does.
    is_wanted=lambda _decision, _config: True,
    permissions={"checks": "write", "pull_requests": "write"},
)
