"""Run the drafted tests of two issues on each other's commit. The same failure is evidence of one cause.

A drafted test was stored when the label for reproduced issues was set. Both commits are of the default branch.
"""

from __future__ import annotations

from bot.core.actions import Decision, UpsertComment
from bot.core.errors import ForgeError, SandboxError
from bot.core.events import IssueLabeled
from bot.core.subjects import Subject
from bot.features.commands.record import is_paused
from bot.features.duplicates import texts
from bot.features.duplicates.record import CrossRun, DuplicatesRecord
from bot.features.reproduce.record import StoredTest, stored_test
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.builds import Builds


def compare_tests(event: IssueLabeled, services: Services) -> Decision | None:
    """Compare the tests of the labelled issue and of the one that it may repeat, or that may repeat it.

    None if there is nothing to compare.
    """
    config = services.config
    is_reproduced = event.label.lower() == config.reproduce.reproduced_label.lower()
    if not is_reproduced or "off" in (config.duplicates.mode, config.reproduce.mode) or services.harnesses is None:
        return None
    number = event.number
    record = _last_record(number, services)
    if record is None or record.root is None:
        number = _newer(number, services)
        record = _last_record(number, services)
    if record is None or record.root is None:
        return None
    newer, root = (_test_of(issue, services) for issue in (number, record.root))
    if newer is None or root is None or {run.sha for run in record.runs} == {newer.sha, root.sha}:
        return None
    if is_paused(services.history.decisions(f"{services.forge.repository}#{number}", "commands")):
        return None
    issue = event.issue if number == event.number else services.forge.issue(number)
    subject = Subject(repository=services.forge.repository, number=number, revision=issue.revision)
    try:
        runs = (
            CrossRun(issue=number, sha=root.sha, state=Builds(newer, services).state(root.sha, "fails")),
            CrossRun(issue=record.root, sha=newer.sha, state=Builds(root, services).state(newer.sha, "fails")),
        )
    except (SandboxError, ForgeError) as error:
        return Decision(
            kind="duplicates", subject=subject, abstained="sandbox", reason=f"cannot run: {error}", record=record
        )
    failure = _failure(newer) if all(run.state == "fails" for run in runs) and _alike(newer, root) else ""
    comment = _comment_with(record.suggestion, subject.key, services) if failure else None
    sentence, actions = record.suggestion, tuple[UpsertComment, ...]()
    if comment:
        sentence = texts.with_failure(record.suggestion, failure, (newer.sha, root.sha))
        body = comment.body.replace(record.suggestion, sentence)
        actions = (comment.model_copy(update={"body": body, "only_edit": True}),)
    alike = "fail in the same way" if failure else "do not fail in the same way"
    return Decision(
        kind="duplicates",
        subject=subject,
        verdict="same failure" if failure else "other failure",
        actions=actions,
        reason=f"the drafted tests of #{number} and #{record.root} {alike}",
        record=record.model_copy(update={"runs": runs, "same_failure": failure, "suggestion": sentence}),
    )


def _newer(number: int, services: Services) -> int:
    """Return the newest open issue that may repeat this one; the issue itself if there is none."""
    decisions = services.history.newest(services.forge.repository, "duplicates") or ()
    return max(
        (
            decision.subject.number
            for decision in decisions
            if isinstance(decision.record, DuplicatesRecord) and decision.record.root == number
        ),
        default=number,
    )


def _last_record(number: int, services: Services) -> DuplicatesRecord | None:
    """Return the newest comparison of an issue with earlier ones."""
    past = services.history.decisions(f"{services.forge.repository}#{number}", "duplicates")
    return history.last_record(past, DuplicatesRecord)


def _test_of(number: int, services: Services) -> StoredTest | None:
    return stored_test(services.history.decisions(f"{services.forge.repository}#{number}", "reproduce"))


def _failure(test: StoredTest) -> str:
    """Return how a test fails, in one line."""
    return ": ".join(filter(None, (test.exception_type, test.message.partition("\n")[0].strip())))


def _alike(test: StoredTest, other: StoredTest) -> bool:
    return bool(test.exception_type) and _failure(test) == _failure(other)


def _comment_with(sentence: str, subject: str, services: Services) -> UpsertComment | None:
    """Return the newest posted comment with that sentence: a suggestion's own, or that of triage."""
    actions = [
        action
        for decision in services.history.decisions(subject, "triage", "duplicates")
        for action in decision.actions
    ]
    comments = [action for action in actions if isinstance(action, UpsertComment) and sentence in action.body]
    return comments[-1] if sentence and comments else None
