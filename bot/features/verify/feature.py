"""Verify, the output bouncer: does this patch solve the issue that it says it solves?"""

from functools import partial
from typing import get_args

from bot.core import events
from bot.core.commands import SlashCommand
from bot.features.feature import Feature, same_text
from bot.features.verify.handler import Trigger, concerns, handle
from bot.features.verify.judging import judge
from bot.features.verify.record import VerifyRecord

FEATURE = Feature(
    name="verify",
    handle=partial(handle, judge=judge),
    record=VerifyRecord,
    concerns=concerns,
    events=get_args(Trigger),
    commands=(
        SlashCommand(
            "verify",
            help="check the pull request against its issue now; `--run <commit>` also runs tests on "
            "that commit of a fork (its whole id)",
            on_issues=False,
            takes_run=True,
            sections=("verify",),
        ),
    ),
    after=("commands",),
    supersedes=same_text(*get_args(events.PullShown)),
    debounces=(events.PullRequestSynchronized, events.PullRequestEdited),
    judges=True,
    permissions={"checks": "write"},
)
