"""Other open pull requests for the same issue: what the issue's stored test said there."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.errors import ForgeError
from bot.features.services import Services
from bot.features.verify.record import ExecutedTest, Rival, VerifyRecord

#: Other pull requests of one issue that are named.
MAX_RIVALS = 10


def rivals(runs: Sequence[ExecutedTest], number: int, services: Services) -> tuple[Rival, ...]:
    """Return the other open pull requests for the issues of ``runs``, with their own last outcomes.

    Nothing is run for them here: each is executed for itself, if that is allowed.
    """
    others: list[Rival] = []
    for run in runs:
        try:
            pulls = services.forge.pulls_for_issue(run.issue)
        except ForgeError:
            continue  # No GraphQL, or no permission to use it.
        others += [
            Rival(issue=run.issue, pull=pull, head=_outcome(pull, run, services))
            for pull in sorted(set(pulls) - {number})[:MAX_RIVALS]
        ]
    return tuple(others)


def _outcome(pull: int, run: ExecutedTest, services: Services) -> str:
    """Return the newest outcome of the same test on another pull request; empty if there is none."""
    past = services.history.decisions(f"{services.forge.repository}#{pull}", "verify")
    for decision in reversed(past):
        if isinstance(decision.record, VerifyRecord):
            same = (other for other in decision.record.runs if other.issue == run.issue and other.test == run.test)
            return next((other.head for other in same), "")
    return ""
