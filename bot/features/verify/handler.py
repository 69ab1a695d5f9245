"""Output bouncer: does this patch solve the issue that it says it solves?

The answer is one check run. Without a linked issue it is about the description of the pull request, if
``verify.description`` is set, else an abstention. The verdicts themselves are those of ``judging``. The check also
names other open pull requests for the same issue, with the outcome of the issue's stored test there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.core import events
from bot.core.actions import Decision, SetCheck
from bot.core.commands import Command
from bot.core.errors import ForgeError
from bot.core.subjects import PullRequest, Subject
from bot.features.services import Services
from bot.features.shared import history, pull_requests
from bot.features.shared.pull_requests import JudgementRequest
from bot.features.shared.rights import OFF, off_reason, with_old_check
from bot.features.verify import texts
from bot.features.verify.record import ExecutedTest, Rival, VerifyRecord

Trigger = pull_requests.Trigger | events.PullRequestClosed | events.MergeGroupRequested | events.LinkedIssueChanged

#: Other pull requests of one issue that are named.
MAX_RIVALS = 10

#: Judges the pull request that an event requests, after earlier decisions; None if its new text changes nothing.
Judge = Callable[[pull_requests.Trigger, JudgementRequest, Sequence[Decision], Services], Decision | None]


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the event can ask for a verdict on its pull request, or for a check that names others."""
    if isinstance(event, events.MergeGroupRequested | events.PullRequestClosed):
        return True
    if isinstance(event, events.LinkedIssueChanged):
        return event.task in ("verify", "config")
    return pull_requests.concerns(event, commands, frozenset({"verify", "recheck"}), texts.CHECK)


def handle(event: Trigger, services: Services, judge: Judge) -> Decision | None:
    """Judge the pull request of an event against the issues that it closes; None if nothing asks for it."""
    if old := with_old_check("verify", event, services):
        why = f"verify is {off_reason('verify', services)}"
        return abstention(old, services, OFF, why)
    if services.config.verify.mode == "off":
        return None
    if isinstance(event, events.MergeGroupRequested):
        # A required check that is not completed would block the queue.
        why = "this is a merge queue's commit; each pull request in it has a verdict of its own"
        check = texts.skipped(event.head_sha, why)
        return Decision(
            kind="verify", subject=event.subject, actions=(check,), abstained="skipped:queue", reason=why
        )
    if isinstance(event, events.LinkedIssueChanged):
        is_own = event.task == "verify"
        return (_renewed_check(event, services) or _restored_check(event, services)) if is_own else None
    if isinstance(event, events.PullRequestClosed):
        return _closed(event, services)
    request = pull_requests.read_request(event, services, "verify")
    if request is None:
        return None
    pull = request.pull_request
    past = services.history.decisions(f"{services.forge.repository}#{pull.number}", "verify", "commands")
    skip = None if request.is_explicit else pull_requests.skip_reason(pull, services, past)
    if skip is not None:
        return abstention(pull, services, *skip, record=_carried_record(past, pull))
    return judge(event, request, past, services)


def abstention(
    pull: PullRequest,
    services: Services,
    word: str,
    why: str,
    *,
    fails: bool = False,
    record: VerifyRecord | None = None,
    note: str = "",
    affects: tuple[int, ...] = (),
) -> Decision:
    """Return an abstention; the check is completed, because a required check would wait for it."""
    return Decision(
        kind="verify",
        subject=Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision),
        actions=(texts.skipped(pull.head_sha, why, fails=fails, note=note),) if pull.state == "open" else (),
        abstained=word,
        reason=why,
        record=record,
        affects=affects,
    )


def _carried_record(past: Sequence[Decision], pull: PullRequest) -> VerifyRecord | None:
    """Return what checks of other pull requests need to know about a skipped one; None without a record.

    Runs of tests are carried over only if they were on the same head.
    """
    last = history.last_record(past, VerifyRecord)
    if last is None:
        return None
    on_this_head = [decision for decision in past if decision.subject.revision == pull.revision]
    tested = history.last_record(on_this_head, VerifyRecord) or VerifyRecord()
    return VerifyRecord(content=last.content, rivals=last.rivals, runs=tested.runs, new_tests=tested.new_tests)


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
        for pull in sorted(set(pulls) - {number})[:MAX_RIVALS]:
            past = services.history.decisions(f"{services.forge.repository}#{pull}", "verify")
            record = history.last_record(past, VerifyRecord) or VerifyRecord()
            heads = (other.head for other in record.runs if (other.issue, other.test) == (run.issue, run.test))
            others.append(Rival(issue=run.issue, pull=pull, head=next(heads, "")))
    return tuple(others)


def named_rivals(past: Sequence[Decision]) -> tuple[int, ...]:
    """Return the pull requests that the last check with a run test names. Their checks name this one."""
    records = (decision.record_of(VerifyRecord) for decision in reversed(past))
    rivals = (record.rivals for record in records if record.runs)
    return tuple(dict.fromkeys(rival.pull for rival in next(rivals, ())))


def _closed(event: events.PullRequestClosed, services: Services) -> Decision | None:
    """Have the checks renewed that name a pull request which is closed now, or share its head; None if none do."""
    rivals = named_rivals(services.history.decisions(event.subject.key, "verify"))
    others = {*rivals, *history.on_same_head(event, "verify", services)}
    if not others:
        return None
    reason = "closed; the checks of other pull requests name it, or are on the same head"
    return Decision(kind="verify", subject=event.subject, affects=tuple(sorted(others)), reason=reason)


def _restored_check(event: events.LinkedIssueChanged, services: Services) -> Decision | None:
    """Write the last check again, in whose place another pull request with the same head had a worse one.

    None if the check that stands has the same conclusion.
    """
    pull = services.forge.pull_request(event.number)
    checks = [
        (decision, action)
        for decision in services.history.decisions(event.subject.key, "verify")
        for action in decision.actions
        if isinstance(action, SetCheck) and action.head_sha == pull.head_sha
    ]
    if not checks or pull.state == "closed":
        return None
    last, check = checks[-1]
    runs = services.forge.check_runs(pull.head_sha, texts.CHECK)
    if not runs or runs[0].conclusion == check.conclusion:
        return None
    record = last.record_of(VerifyRecord).model_copy(update={"replies": ()}) if last.record else None
    return Decision(
        kind="verify",
        subject=last.subject,
        actions=(check,),
        abstained=last.abstained,
        reason="another pull request with the same head was closed",
        record=record,
    )


def _renewed_check(event: events.LinkedIssueChanged, services: Services) -> Decision | None:
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
