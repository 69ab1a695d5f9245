"""Configuration: validate ``.github/bouncer.yml`` when it changes, and propose a first one on request."""

from bot.core import events
from bot.features.config.handler import ConfigRecord, concerns, handle
from bot.features.feature import Feature, same_text

_PULLS = (events.PullRequestOpened, events.PullRequestSynchronized, events.PullRequestReopened)

FEATURE = Feature(
    name="config",
    handle=handle,
    record=ConfigRecord,
    concerns=concerns,
    events=(events.BranchPushed, events.OnboardingRequested, *_PULLS),
    supersedes=same_text(*_PULLS),
    checks_staleness=False,
    permissions={"checks": "write"},
)
