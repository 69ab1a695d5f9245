"""Output bouncer: does this patch solve the issue that it says it solves?

The answer is one check run. Without a linked issue it is about the description of the pull request, if
``verify.description`` is set, else an abstention. The verdicts themselves are those of ``judging``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.core import events
from bot.core.actions import Decision, Usage
from bot.core.commands import Command
from bot.core.errors import ForgeError
from bot.core.events import Event
from bot.core.subjects import Issue, PullRequest, Subject, text_revision
from bot.features.services import Services
from bot.features.shared import history, pull_requests
from bot.features.shared.labels import severity
from bot.features.shared.links import issue_links, linked_issues
from bot.features.shared.pull_requests import ChangedPaths, JudgementRequest
from bot.features.shared.rights import no_run_reason
from bot.features.verify import texts
from bot.features.verify.record import PullContent, Unjudged, VerifyRecord
from bot.features.verify.rivals import closed, named_rivals, renewed_check, rivals
from bot.github.protocol import Forge, IssueLink

#: Why an empty patch, and a pull request without an issue, is not judged.
EMPTY, NO_ISSUE = "the patch is empty", "no linked issue"
#: Characters of a patch in one question. GitHub shows no diff above 1 MB. A patch is judged whole or not at all.
MAX_PATCH = 1_000_000


@dataclass(frozen=True, slots=True)
class PatchCase:
    """A pull request to judge by its issues, or by its own description."""

    subject: Subject
    pull: PullRequest
    patch: str
    issues: tuple[Issue, ...]
    by_description: bool
    no_run: str | None
    """Why its head may not be executed; None if it may."""


@dataclass(frozen=True, slots=True)
class PatchOutcome:
    """The verdicts and the runs of tests, as they are recorded."""

    record: VerifyRecord
    usage: Usage
    model: str
    abstained: str
    """The word for why the model gave no verdict; empty if it did, or was not asked."""


@dataclass(frozen=True, slots=True)
class VerifyTools:
    """Functions that read the change, ask the model and run tests; the declaration gives them to the handler."""

    changed_paths: ChangedPaths
    content_of: Callable[[PullRequest, Sequence[IssueLink], Services], PullContent | None]
    """Returns what a pull request changes and closes; None if it is not compared with others."""
    judge: Callable[[PatchCase, Services], PatchOutcome]


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if the event can ask for a verdict on its pull request, or for a check that names others."""
    if isinstance(event, events.MergeGroupRequested | events.PullRequestClosed):
        return True
    if isinstance(event, events.LinkedIssueChanged):
        return event.task == "verify"
    return pull_requests.concerns(event, commands, frozenset({"verify", "recheck"}), texts.CHECK)


def handle(event: Event, services: Services, tools: VerifyTools) -> Decision | None:
    """Judge the pull request of an event against the issues that it closes; None if nothing asks for it."""
    if services.config.verify.mode == "off":
        return None
    if isinstance(event, events.MergeGroupRequested):
        return _skip_queue(event)
    if isinstance(event, events.LinkedIssueChanged):
        return renewed_check(event, services)
    if isinstance(event, events.PullRequestClosed):
        return closed(event, services)
    request = pull_requests.read_request(event, services, "verify")
    if request is None:
        return None
    pull = request.pull_request
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    past = services.history.decisions(subject.key, "verify", "commands")
    paths = tools.changed_paths
    skip = None if request.is_explicit else pull_requests.skip_reason(pull, services, past, paths)
    if skip is not None:
        return _abstain(subject, pull, *skip).model_copy(update={"record": _lasting(past, subject)})
    return _judged(event, request, subject, past, services, tools)


def _judged(
    event: Event,
    request: JudgementRequest,
    subject: Subject,
    past: Sequence[Decision],
    services: Services,
    tools: VerifyTools,
) -> Decision | None:
    """Return the verdicts on a pull request, or an abstention; None if its new text changes nothing."""
    pull, config, links = request.pull_request, services.config.verify, issue_links(request.pull_request, services)
    before = named_rivals(past)
    content = tools.content_of(pull, links, services)
    twins = _twins(content, services)
    if not (links or config.description or config.tests):
        return _abstain(subject, pull, "no-issue", NO_ISSUE, content=content, note=twins, affects=before)
    issues, unjudged = linked_issues(links, services)
    if not (links or config.description):
        unjudged.append(Unjudged(why=NO_ISSUE))
    by_description = config.description and not issues
    revisions = {str(issue.number): issue.revision for issue in issues}
    if by_description:
        revisions = {"description": text_revision(pull.title, pull.body)}
    if isinstance(event, events.PullRequestEdited) and _same(past, subject, revisions):
        return None
    patch, unfit = _patch(pull, services.forge)
    if unfit or not (issues or by_description or config.tests):
        fails = bool(unfit) and unfit != EMPTY and texts.fails_unjudged(config)
        word, why = ("unfit", unfit) if unfit else ("no-issue", _why(unjudged))
        return _abstain(subject, pull, word, why, fails=fails, content=content, note=twins, affects=before)
    no_run = no_run_reason(pull, request.command, "verify")
    outcome = tools.judge(PatchCase(subject, pull, patch, tuple(issues), by_description, no_run), services)
    record = outcome.record
    notes = (twins, no_run, pull_requests.not_analysed(record.context.too_slow))
    record = record.model_copy(
        update={
            "unjudged": (*unjudged, *record.unjudged),
            "rivals": rivals(record.runs, pull.number, services),
            "note": "\n\n".join(filter(None, notes)),
            "content": content,
            "issue_revisions": revisions,
            "config": services.config.hash,
            "harm": config.harm,
        }
    )
    return _decision(subject, pull, replace(outcome, record=record), services, before)


def _decision(
    subject: Subject, pull: PullRequest, outcome: PatchOutcome, services: Services, before: Sequence[int]
) -> Decision:
    """Return the decision with one check for all verdicts; ``before``: pull requests that the last check names."""
    record = outcome.record
    check = texts.check(
        pull.head_sha,
        record,
        config=services.config.verify,
        repository=services.repository,
        usage=outcome.usage,
        model=outcome.model,
    )
    return Decision(
        kind="verify",
        subject=subject,
        verdict=max((verdict.label for verdict in record.verdicts), key=severity, default=None),
        actions=(check,),
        reason=check.title if record.verdicts else _why(record.unjudged),
        abstained=None if record.verdicts else outcome.abstained or "no-issue",
        record=record,
        affects=tuple(dict.fromkeys((*(rival.pull for rival in record.rivals), *before))),
        usage=outcome.usage,
        model=outcome.model,
    )


def _why(unjudged: Sequence[Unjudged]) -> str:
    return "; ".join(issue.why for issue in unjudged)


def _patch(pull: PullRequest, forge: Forge) -> tuple[str, str]:
    """Return the patch, and why it cannot be judged as a whole, if so."""
    try:
        diff = forge.diff(pull.number)
    except ForgeError as error:
        return "", f"the diff cannot be read ({error})"
    if diff.omitted:
        return "", f"the patch is too large, GitHub leaves out {len(diff.omitted)} of its files"
    if len(diff.text) > MAX_PATCH:
        return "", f"the patch is too large ({len(diff.text):,} characters)"
    return diff.text, "" if diff.text.strip() else EMPTY


def _lasting(past: Sequence[Decision], subject: Subject) -> VerifyRecord | None:
    """Return what is still known of a skipped pull request, for checks of others; of tests, on this head only."""
    last = history.last_record(past, VerifyRecord)
    here = [decision for decision in past if decision.subject.revision == subject.revision]
    tested = history.last_record(here, VerifyRecord) or VerifyRecord()
    return last and VerifyRecord(
        content=last.content, rivals=last.rivals, runs=tested.runs, new_tests=tested.new_tests
    )


def _skip_queue(event: events.MergeGroupRequested) -> Decision:
    """Complete the check of a merge queue's commit, because a required check would block the queue."""
    why = "this is a merge queue's commit; each pull request in it has a verdict of its own"
    actions = (texts.skipped(event.head_sha, why),)
    return Decision(kind="verify", subject=event.subject, actions=actions, abstained="skipped:queue", reason=why)


def _abstain(
    subject: Subject,
    pull: PullRequest,
    word: str,
    why: str,
    *,
    fails: bool = False,
    content: PullContent | None = None,
    note: str = "",
    affects: tuple[int, ...] = (),
) -> Decision:
    """Return an abstention; the check is completed, because a required check would wait for it."""
    return Decision(
        kind="verify",
        subject=subject,
        actions=(texts.skipped(pull.head_sha, why, fails=fails, note=note),) if pull.state == "open" else (),
        abstained=word,
        reason=why,
        record=None if content is None else VerifyRecord(content=content),
        affects=affects,
    )


def _twins(content: PullContent | None, services: Services) -> str:
    """Return the sentences that name earlier pull requests; empty in shadow mode."""
    return texts.twins(content.twins) if content and services.config.duplicates.mode == "comment" else ""


def _same(past: Sequence[Decision], subject: Subject, revisions: Mapping[str, str]) -> bool:
    """Return True if this code was judged against these texts, and nothing was said about it since."""
    last = next((decision for decision in reversed(past) if decision.kind == "verify"), None)
    return (
        last is not None
        and last.abstained is None
        and last.subject == subject
        and isinstance(last.record, VerifyRecord)
        and last.record.issue_revisions == revisions
    )
