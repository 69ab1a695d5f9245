"""Reproduce: draft a test that fails as an issue reports, run it in the sandbox, and offer it."""

from typing import get_args

from bot.core.commands import SlashCommand
from bot.features.feature import Feature
from bot.features.reproduce.handler import Trigger, concerns, handle
from bot.features.reproduce.record import ReproduceRecord

FEATURE = Feature(
    name="reproduce",
    handle=handle,
    record=ReproduceRecord,
    concerns=concerns,
    events=get_args(Trigger),
    commands=(
        SlashCommand(
            "reproduce", help="draft a test that fails the way the issue describes", on_pull_requests=False
        ),
    ),
    # Without being asked it only tries issues that triage found clear.
    after=("commands", "triage"),
    judges=True,
    executes=True,
    permissions={"issues": "write"},
)
