"""Label an issue that is ready for work, and fold a brief into the comment on it. Nothing here asks a model.

An issue is ready if triage found it clear, a maintainer accepted it and, unless reproduction is off, a test
reproduces it. All of it was recorded by other features for the same event or an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from pydantic import Field

from bot.core import events
from bot.core.actions import Action, Decision, Record, SetLabels, UpsertComment
from bot.core.commands import Command
from bot.core.markdown import clean_line, code_span, details, fence
from bot.core.subjects import Repository
from bot.features.reproduce.record import StoredTest, stored_test
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.history import posted_suggestion, with_suggestion
from bot.features.shared.rights import is_paused
from bot.features.triage.record import TriageRecord

Trigger = (
    events.IssueEdited | events.IssueReopened | events.IssueLabeled | events.IssueUnlabeled | events.CommentCreated
)

#: Characters of the request, and of the test.
MAX_REQUEST, MAX_CODE = 1_000, 8_000

DISCLOSURE = "*I'm a bot; an AI model wrote the brief and may be wrong.*"


class ReadyRecord(Record):
    """The facts on which label and brief rest."""

    ready: bool = False
    accepted_by: str = Field("", description="login")
    request: str = Field("", description="what is asked for, in the model's words")
    sha: str = Field("", description="the commit at which the code was looked at")
    files: tuple[str, ...] = ()
    test: str = Field("", description="the reproducing test, as path and name; empty if reproduction is off")


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the event can complete what an issue needs, or take it back."""
    if event.issue.is_pull_request or event.sender.is_bot:
        return False
    if isinstance(event, events.CommentCreated):
        return any(command.word in ("accept", "reproduce") for command in commands)
    return True


def handle(event: Trigger, services: Services) -> Decision | None:
    """Decide if the issue became ready, or is not ready any more; None if nothing changed."""
    config = services.config.triage
    if not config.brief or config.mode == "off":
        return None
    past = services.history.decisions(event.subject.key)
    if event.issue.state == "closed" or event.issue.locked or is_paused(past):
        return None
    test = None if services.config.reproduce.mode == "off" else stored_test(past)
    record = _readiness(services, past, test)
    before = history.last_record(past, ReadyRecord) or ReadyRecord()
    if record == before or not (record.ready or before.ready):
        return None
    actions: tuple[Action, ...] = (SetLabels(number=event.number, remove=(config.ready_label,)),)
    if record.ready:
        body = comment_on(record, test, event.issue.title, services.repository)
        body = with_suggestion(body, posted_suggestion(event.number, services))
        label = SetLabels(number=event.number, add=(config.ready_label,))
        comment = UpsertComment(task="triage", number=event.number, body=body)
        actions = (label,) if config.mode == "label" else (comment, label)
    in_shadow = config.mode == "shadow"
    reason = (
        f"clear, accepted{' and reproduced' if test else ''}" if record.ready else "something is missing again"
    )
    return Decision(
        kind="ready",
        subject=event.subject,
        verdict="ready" if record.ready else "not ready",
        actions=() if in_shadow else actions,
        withheld=actions if in_shadow else (),
        reason=reason,
        record=record,
    )


def _readiness(services: Services, past: Sequence[Decision], test: StoredTest | None) -> ReadyRecord:
    """Return what the issue is ready by; an empty record if something is missing."""
    verdict = history.last_verdict([decision for decision in past if decision.kind == "triage"])
    if verdict is None or not isinstance(verdict.record, TriageRecord) or history.bounced(verdict):
        return ReadyRecord()
    is_reproduced = test is not None or services.config.reproduce.mode == "off"
    if not history.accepted(past) or not is_reproduced:
        return ReadyRecord()
    return ReadyRecord(
        ready=True,
        accepted_by=history.accepted_by(past),
        request=verdict.record.request,
        sha=verdict.record.sha,
        files=verdict.record.files,
        test=f"{test.path}::{test.name}" if test else "",
    )


def comment_on(record: ReadyRecord, test: StoredTest | None, title: str, repository: Repository) -> str:
    """Return the comment with a folded brief: what is asked, where in the code, and the test that has to pass."""
    steps = ["clear", f"accepted by {record.accepted_by}", *(["reproduced by a test"] if test else [])]
    first = f"This issue is ready for work: {', '.join(steps[:-1])} and {steps[-1]}. {DISCLOSURE}"
    # On one line: it stands behind words of ours, where no block may begin.
    request = clean_line(record.request or title, host=repository.host, limit=MAX_REQUEST)
    parts = [f"**What is asked:** {request}"]
    if record.files:
        parts.append(f"**Where to look**, as of `{record.sha[:7]}`:")
        url = repository.html_url and f"{repository.html_url}/blob/{record.sha}/"
        names = ((code_span(path), quote(path, errors="replace")) for path in record.files)
        parts.append("\n".join(f"- [{name}]({url}{path})" if url else f"- {name}" for name, path in names))
    if test:
        name = code_span(f"{test.path}::{test.name}")
        where = "a new file" if test.new_file else f"an addition to {code_span(test.path)}"
        parts.append(
            f"**Done when** {name} passes. It fails on {code_span(test.branch)} at `{test.sha[:7]}`. It is "
            f"{where}, run with {code_span(' '.join(test.command))}:"
        )
        parts.append(fence(test.code[:MAX_CODE].rstrip("\n"), "java" if test.path.endswith(".java") else "python"))
    brief = details("Brief", "\n\n".join(parts))
    return f"{first}\n\n{brief}"
