"""Watch: run an issue's stored test on the default branch, once a day and for `/bouncer bisect`. Asks no model."""

from typing import get_args

from bot.core.actions import Decision
from bot.core.commands import SlashCommand
from bot.core.config import RepoConfig
from bot.features.feature import Feature
from bot.features.watch.handler import Trigger, WatchRecord, concerns, handle


def is_wanted(decision: Decision, config: RepoConfig) -> bool:
    """Return False if running tests is off, or for a daily decision, running them daily."""
    if not decision.verdict:
        return True  # It says that it is switched off.
    config_of_tests = config.reproduce
    return config_of_tests.mode != "off" and (decision.verdict == "bisected" or config_of_tests.watch != "off")


FEATURE = Feature(
    name="watch",
    handle=handle,
    record=WatchRecord,
    concerns=concerns,
    events=get_args(Trigger),
    commands=(
        SlashCommand("bisect", help="find the commit since which the drafted test fails", on_pull_requests=False),
    ),
    after=("commands",),
    # An outcome of the default branch does not depend on the text.
    checks_staleness=False,
    is_wanted=is_wanted,
    executes=True,
    permissions={"issues": "write"},
)
