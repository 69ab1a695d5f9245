"""Other open pull requests for the same issue: what the issue's stored test said there, and their checks."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core import events
from bot.core.actions import Decision
from bot.core.errors import ForgeError
from bot.features.services import Services
from bot.features.shared import history
from bot.features.verify import texts
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
    record = history.last_record(past, VerifyRecord) or VerifyRecord()
    return next((other.head for other in record.runs if (other.issue, other.test) == (run.issue, run.test)), "")


def named_rivals(past: Sequence[Decision]) -> tuple[int, ...]:
    """Return the pull requests that the last check of a run test names; their checks name this one."""
    records = (decision.record_of(VerifyRecord) for decision in reversed(past))
    rivals = (record.rivals for record in records if record.runs)
    return tuple(dict.fromkeys(rival.pull for rival in next(rivals, ())))


def closed(event: events.PullRequestClosed, services: Services) -> Decision | None:
    """Have the checks renewed that name a pull request which is closed now; None if there are none."""
    others = named_rivals(services.history.decisions(event.subject.key, "verify"))
    if not others:
        return None
    reason = "closed; other pull requests for the same issue name it"
    return Decision(kind="verify", subject=event.subject, affects=others, reason=reason)


def renewed_check(event: events.LinkedIssueChanged, services: Services) -> Decision | None:
    """Renew the check when something changed about another pull request for the same issue.

    Return None if there is nothing new to say. Neither a model is asked nor is anything run.
    """
    past = services.history.decisions(event.subject.key, "verify")
    decision = next((decision for decision in reversed(past) if isinstance(decision.record, VerifyRecord)), None)
    # A check that says why the pull request is skipped stands.
    if decision is None or decision.abstained:
        return None
    record = decision.record_of(VerifyRecord)
    if not record.runs:
        return None
    others = rivals(record.runs, event.number, services)
    pull = services.forge.pull_request(event.number)
    if others == record.rivals or pull.state == "closed" or pull.revision != decision.subject.revision:
        return None
    record = record.model_copy(update={"rivals": others, "replies": ()})
    check = texts.check(
        pull.head_sha,
        record,
        config=services.config.verify,
        repository=services.repository,
        usage=decision.usage,
        model=decision.model,
    )
    reason = "another pull request for the same issue was run, closed, or links it no longer"
    return Decision(kind="verify", subject=decision.subject, actions=(check,), reason=reason, record=record)
