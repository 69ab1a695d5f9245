"""Conclusions from earlier decisions on a subject: what stands, and why an issue is skipped.

Decisions are ordered, oldest first. The sentences are those about a bounced issue that several features post.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from bot.core import events
from bot.core.actions import AnyRecord, Decision, Record, SetLabels, Task, UpsertComment
from bot.core.config import TriageConfig
from bot.core.subjects import Issue
from bot.features.commands.record import CommandsRecord
from bot.features.services import Services
from bot.features.shared.labels import BouncerRecord
from bot.features.shared.rights import is_paused
from bot.features.triage.record import TriageRecord

READ_AGAIN = "Edit the issue or reply below and I'll read it again."
PAUSED = "A maintainer paused me here, so I won't read this again for now."
DISCLOSURE = "I'm a bot using an AI model and may be wrong. Maintainers: `/bouncer accept` to override."


def last_record(past: Sequence[Decision], record_type: type[AnyRecord]) -> AnyRecord | None:
    """Return the newest record of a type, whatever was decided since without one; None if there is none."""
    records = (decision.record for decision in reversed(past))
    return next((record for record in records if isinstance(record, record_type)), None)


def last_verdict(past: Sequence[Decision]) -> Decision | None:
    """Return the newest decision with a verdict; commands and abstentions have none."""
    verdicts = (decision for decision in reversed(past) if decision.kind != "commands" and decision.verdict)
    return next(verdicts, None)


def bounced(decision: Decision | None) -> bool:
    """Return True if the decision bounced its subject."""
    return decision is not None and decision.record_of(BouncerRecord).bounced


def triage_records(past: Sequence[Decision]) -> tuple[TriageRecord, ...]:
    """Return the records of the verdicts on an issue, oldest first."""
    return tuple(decision.record for decision in past if isinstance(decision.record, TriageRecord))


def standing_labels(past: Sequence[Decision]) -> tuple[str, ...] | None:
    """Return the labels that the last bounce set, whatever the file names now; None if they were removed since."""
    for decision in reversed(past):
        labels = [action for action in decision.actions if isinstance(action, SetLabels)]
        if bounced(decision):
            return tuple(label for action in labels for label in action.add)
        if any(action.remove for action in labels):
            return None
    return None


def on_same_head(event: events.PullRequestClosed, kind: Task, services: Services) -> set[int]:
    """Return the other open pull requests whose last decision is about the same head: they share its check."""
    newest = services.history.newest(event.repository.full_name, kind) or ()
    heads = {decision.subject.number: decision.subject.revision for decision in newest}
    return {number for number, head in heads.items() if head == event.revision} - {event.number}


def accepted(past: Sequence[Decision]) -> bool:
    """Return True if a maintainer accepted the issue: then only a maintainer can bounce it again."""
    last = next(
        (decision for decision in reversed(past) if marked(decision) or "accept" in _words(decision)), None
    )
    return last is not None and not marked(last)


def accepted_by(past: Sequence[Decision]) -> str:
    """Return the login of the maintainer who last accepted the issue; empty if no one did."""
    acceptances = (decision for decision in reversed(past) if "accept" in _words(decision))
    return next((decision.record_of(CommandsRecord).by for decision in acceptances), "")


def marked(decision: Decision) -> bool:
    """Return True if a maintainer bounced the subject by setting its label."""
    return bool(decision.record_of(TriageRecord).marked_by)


def _words(decision: Decision) -> tuple[str, ...]:
    """Return the words of the commands that were carried out."""
    return decision.record_of(CommandsRecord).done


class SuggestionRecord(Record):
    """A record of a decision that may name an earlier issue."""

    suggestion: str = Field("", description="the posted sentence; empty if nothing was posted")


def skip_reason(
    issue: Issue, config: TriageConfig, past: Sequence[Decision], *, despite_pause: bool = False
) -> tuple[str, str] | None:
    """Return why an issue is skipped, as a word to count by and a clause; None if it is not."""
    if is_paused(past) and not despite_pause:
        return "skipped:paused", "paused by a maintainer"
    if accepted(past):
        return "skipped:accepted", "a maintainer accepted this issue"
    if issue.state == "closed":
        return "skipped:closed", "the issue is closed"
    if issue.locked:
        return "skipped:locked", "the issue is locked"
    if issue.author.is_bot:
        return "skipped:bot", f"the author {issue.author.login} is a bot"
    if issue.author.login.lower() in {login.lower() for login in config.ignore_authors}:
        return "skipped:author", f"triage.ignore_authors names {issue.author.login}"
    ignored = {label.lower() for label in config.ignore_labels}
    for label in issue.labels:
        if label.lower() in ignored:
            return "skipped:label", f"triage.ignore_labels names {label}"
    if login := _first_match(issue.assignees, config.ignore_assignees):
        return "skipped:assigned", f"triage.ignore_assignees names {login}"
    if title := _first_match((issue.milestone,), config.ignore_milestones):
        return "skipped:milestone", f"triage.ignore_milestones names {title}"
    return None


def _first_match(names: Sequence[str], ignored: Sequence[str]) -> str:
    """Return the first of the names that is ignored, ``*`` meaning all; empty if none is."""
    lower = {name.lower() for name in ignored}
    return next((name for name in names if name and ("*" in lower or name.lower() in lower)), "")


def with_suggestion(body: str, suggestion: str) -> str:
    """Return the comment of a triage verdict with a line that names an earlier issue."""
    request, fold, explanation = body.partition("\n\n<details>")
    return f"{request}\n\n{suggestion}{fold}{explanation}" if suggestion else body


def posted_suggestion(number: int, services: Services) -> str:
    """Return the line of the triage comment that names an earlier issue; empty if it has none."""
    past = services.history.decisions(f"{services.repository.full_name}#{number}", "duplicates")
    for decision in reversed(past):
        in_comment = any(isinstance(act, UpsertComment) and act.task == "triage" for act in decision.actions)
        if in_comment and isinstance(decision.record, SuggestionRecord):
            return decision.record.suggestion
    return ""
