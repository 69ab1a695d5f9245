"""Review: does this change introduce a defect?"""

from functools import partial
from typing import get_args

from bot.code.diff import changed_paths
from bot.core import events
from bot.core.commands import SlashCommand
from bot.features.feature import Feature, same_text
from bot.features.review.handler import ReviewTools, concerns, handle
from bot.features.review.record import ReviewRecord
from bot.features.review.reviewing import review
from bot.features.review.standing import standing

FEATURE = Feature(
    name="review",
    handle=partial(handle, tools=ReviewTools(changed_paths, review)),
    record=ReviewRecord,
    standing=standing,
    concerns=concerns,
    events=(
        *get_args(events.PullShown),
        events.CommentCreated,
        events.ReviewCommentCreated,
        events.CheckRerequested,
        events.RecheckRequested,
    ),
    commands=(
        SlashCommand(
            "review",
            help="review the pull request now; `--run <commit>` also tries to prove findings by running that "
            "commit of a fork (its whole id)",
            on_issues=False,
            takes_run=True,
            sections=("review",),
        ),
        SlashCommand(
            "dismiss",
            help="below a finding, or below the pull request if there is only one: it is wrong or unwanted, and "
            "is not posted here again",
            on_issues=False,
            sections=("review",),
        ),
    ),
    after=("commands",),
    # A new title is no reason to review again.
    supersedes=same_text(*get_args(events.HeadShown)),
    judges=True,
    permissions={"pull_requests": "write", "checks": "write"},
)
