"""Configuration: validate ``.github/bouncer.yml`` when it changes, and propose a first one on request."""

from typing import get_args

from bot.features.config.handler import ConfigRecord, Proposal, Trigger, concerns, handle
from bot.features.feature import Feature, same_text

FEATURE = Feature(
    name="config",
    handle=handle,
    record=ConfigRecord,
    concerns=concerns,
    events=get_args(Trigger),
    supersedes=same_text(*get_args(Proposal)),
    checks_staleness=False,
    permissions={"checks": "write"},
)
