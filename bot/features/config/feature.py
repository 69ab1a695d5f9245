"""Configuration: validate ``.github/bouncer.yml`` when a push or a pull request changes it."""

from bot.core import events
from bot.features.config.handler import concerns, handle
from bot.features.feature import Feature
from bot.features.shared.records import ConfigRecord

FEATURE = Feature(
    name="config",
    handle=handle,
    record=ConfigRecord,
    concerns=concerns,
    events=(
        events.BranchPushed,
        events.PullRequestOpened,
        events.PullRequestSynchronized,
        events.PullRequestReopened,
    ),
    checks_staleness=False,
    permissions={"checks": "write"},
)
