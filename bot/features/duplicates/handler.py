"""Name an earlier issue that a new one may repeat, if it is likely enough. Nothing is closed or labelled.

Candidates come from the index of issues. One model call compares the new issue with all of them. When both issues
have a drafted test, each test is run on the other's commit: the same failure is evidence of one cause. A drafted
test was stored when the label for reproduced issues was set; both commits are of the default branch.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from bot.core.actions import Decision, UpsertComment
from bot.core.commands import Command
from bot.core.errors import ForgeError, SandboxError
from bot.core.events import IssueLabeled, IssueOpened
from bot.core.frozen import Lenient
from bot.core.markdown import clean_line, code_span
from bot.core.subjects import Subject
from bot.core.text import folded
from bot.features.duplicates.record import Comparison, CrossRun, DuplicatesRecord
from bot.features.reproduce.record import StoredTest, stored_test
from bot.features.services import IndexedIssue, Services
from bot.features.shared import history
from bot.features.shared.builds import Builds
from bot.features.shared.history import skip_reason, with_suggestion
from bot.features.shared.rights import is_paused
from bot.models.protocol import Prompt, Templates

Trigger = IssueOpened | IssueLabeled

#: Earlier issues in one question, and characters of each text.
MAX_CANDIDATES, MAX_TEXT = 5, 6_000
#: Characters of what both issues have in common.
MAX_BOTH = 200

_SENTENCE = "This may be the same as #{root}: both {both}."
#: What follows the sentence in a comment of its own.
ALONE = (
    "\n\nNothing was closed or changed: that is for you and the maintainers to decide. "
    "*I'm a bot using an AI model and may be wrong.*"
)
_EVIDENCE = " The drafted tests of both issues fail in the same way, "


class ComparisonReply(Lenient):
    """The model's reply."""

    comparisons: tuple[Comparison, ...] = Field(description="one for each earlier issue")


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True for a new issue, and for a label: one of them tells that a test was drafted."""
    return not event.issue.is_pull_request


def handle(event: Trigger, services: Services) -> Decision | None:
    """Compare a new issue with earlier ones; None if the repository has no index."""
    if isinstance(event, IssueLabeled):
        return compare_tests(event, services)
    config, issue = services.config.duplicates, event.issue
    if config.mode == "off":
        return None
    candidates = services.issue_index.similar(event.repository.full_name, issue, MAX_CANDIDATES)
    if candidates is None:
        return None
    past = services.history.decisions(event.subject.key, "triage", "commands")
    skip = skip_reason(issue, services.config.triage, past)
    # An issue never repeats itself, and not one that repeats it.
    candidates = tuple(
        candidate for candidate in candidates if issue.number not in (candidate.number, candidate.root)
    )
    if not candidates:
        skip = skip or ("skipped:unique", "no earlier issue shares its words")
    if skip:
        word, reason = skip
        return Decision(kind="duplicates", subject=event.subject, abstained=word, reason=reason)
    return _compare_texts(event, candidates, past, services)


def _compare_texts(
    event: IssueOpened, candidates: Sequence[IndexedIssue], past: Sequence[Decision], services: Services
) -> Decision:
    """Ask which of the candidates the new issue repeats, and name it if that is likely enough."""
    config, issue = services.config.duplicates, event.issue
    prompt = question(services.prompts, issue.title, issue.body, candidates)
    reply = services.model.complete(prompt.model_copy(update={"subject": event.subject.key}), ComparisonReply)
    numbers = tuple(candidate.number for candidate in candidates)
    comparisons = tuple(row for row in reply.value.comparisons if row.number in numbers)
    match = best(comparisons, config.suggest_above or 0)
    actions: tuple[UpsertComment, ...] = ()
    reason, root, sentence = "no earlier issue has the same cause", None, ""
    if match:
        root = next(candidate.root for candidate in candidates if candidate.number == match.number)
        sentence = suggestion_of(root, match.both, event.repository.host)
        actions = (_comment(issue.number, sentence, past),)
        reason = f"may be the same as #{root} ({match.p_same_cause}% likely)"
    posts = config.mode == "comment" and config.suggest_above is not None
    if match and config.mode == "comment" and not posts:
        reason = f"shadow mode until duplicates.suggest_above is set, nothing written: {reason}"
    return Decision(
        kind="duplicates",
        subject=event.subject,
        verdict="duplicate" if match else "new",
        actions=actions if posts or config.mode == "shadow" else (),
        withheld=() if posts or config.mode == "shadow" else actions,
        reason=reason,
        record=DuplicatesRecord(
            candidates=numbers,
            comparisons=comparisons,
            root=root,
            p_same_cause=match.p_same_cause if match else None,
            suggestion=sentence if posts else "",
            prompt_hash=prompt.hash,
        ),
        only_open=True,
        usage=reply.usage,
        model=reply.model,
    )


def question(prompts: Templates, title: str, body: str, candidates: Sequence[IndexedIssue]) -> Prompt:
    """Return the prompt that compares a new issue with earlier ones."""
    excerpts = [
        candidate.model_copy(update={"body": folded(candidate.body, MAX_TEXT)}) for candidate in candidates
    ]
    system, user = prompts.render(
        "duplicates.compare", title=title, body=folded(body, MAX_TEXT), candidates=excerpts
    )
    return Prompt(purpose="duplicates", system=system, user=user)


def best(comparisons: Sequence[Comparison], above: int) -> Comparison | None:
    """Return the most likely duplicate at a threshold in percent."""
    same = [row for row in comparisons if row.relation == "same cause" and row.p_same_cause >= above]
    return max(same, key=lambda row: (row.p_same_cause, -row.number), default=None)


def _comment(number: int, sentence: str, past: Sequence[Decision]) -> UpsertComment:
    """Return the bounce comment with one more line, or a comment of its own on a clear issue."""
    for decision in reversed(past):
        for action in decision.actions:
            if isinstance(action, UpsertComment) and action.task == "triage" and not action.only_edit:
                return action.model_copy(update={"body": with_suggestion(action.body, sentence)})
    return UpsertComment(task="duplicates", number=number, body=sentence + ALONE)


def suggestion_of(root: int, both: str, host: str) -> str:
    """Return the sentence that names an earlier issue."""
    end = clean_line(both, host=host, limit=MAX_BOTH).removeprefix("both ").rstrip(".")
    return _SENTENCE.format(root=root, both=end)


def with_failure(sentence: str, failure: str, shas: tuple[str, str]) -> str:
    """Return the sentence with the evidence of two tests, in place of earlier evidence.

    ``shas``: the commits on which both tests were run.
    """
    first, second = (sha[:7] for sha in shas)
    place = f"on {first}" if first == second else f"on {first} and on {second}"
    return f"{sentence.partition(_EVIDENCE)[0]}{_EVIDENCE}{place}: {code_span(failure, limit=MAX_BOTH)}."


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
        # The newest open issue that may repeat this one.
        decisions = services.history.newest(services.forge.repository, "duplicates") or ()
        repeats = (
            decision.subject.number
            for decision in decisions
            if isinstance(decision.record, DuplicatesRecord) and decision.record.root == number
        )
        number = max(repeats, default=number)
        record = _last_record(number, services)
    if record is None or record.root is None:
        return None
    return _compare(number, record, record.root, event, services)


def _compare(
    number: int, record: DuplicatesRecord, root_number: int, event: IssueLabeled, services: Services
) -> Decision | None:
    """Run the test of an issue, and that of the issue that it may repeat, on each other's commit."""
    repository = services.forge.repository
    newer, root = (
        stored_test(services.history.decisions(f"{repository}#{issue}", "reproduce"))
        for issue in (number, root_number)
    )
    if newer is None or root is None or {run.sha for run in record.runs} == {newer.sha, root.sha}:
        return None
    if is_paused(services.history.decisions(f"{repository}#{number}", "commands")):
        return None
    issue = event.issue if number == event.number else services.forge.issue(number)
    subject = Subject(repository=repository, number=number, revision=issue.revision)
    try:
        runs = (
            CrossRun(issue=number, sha=root.sha, state=Builds(newer, services).state(root.sha, "fails")),
            CrossRun(issue=root_number, sha=newer.sha, state=Builds(root, services).state(newer.sha, "fails")),
        )
    except (SandboxError, ForgeError) as error:
        return Decision(
            kind="duplicates", subject=subject, abstained="sandbox", reason=f"cannot run: {error}", record=record
        )
    failure = _failure(newer)
    if not newer.exception_type or failure != _failure(root) or any(run.state != "fails" for run in runs):
        failure = ""
    comment = _comment_with(record.suggestion, subject.key, services) if failure else None
    sentence, actions = record.suggestion, tuple[UpsertComment, ...]()
    if comment:
        sentence = with_failure(record.suggestion, failure, (newer.sha, root.sha))
        body = comment.body.replace(record.suggestion, sentence)
        actions = (comment.model_copy(update={"body": body, "only_edit": True}),)
    alike = "fail in the same way" if failure else "do not fail in the same way"
    return Decision(
        kind="duplicates",
        subject=subject,
        verdict="same failure" if failure else "other failure",
        actions=actions,
        reason=f"the drafted tests of #{number} and #{root_number} {alike}",
        record=record.model_copy(update={"runs": runs, "same_failure": failure, "suggestion": sentence}),
    )


def _last_record(number: int, services: Services) -> DuplicatesRecord | None:
    """Return the newest comparison of an issue with earlier ones."""
    past = services.history.decisions(f"{services.forge.repository}#{number}", "duplicates")
    return history.last_record(past, DuplicatesRecord)


def _failure(test: StoredTest) -> str:
    """Return how a test fails, in one line."""
    return ": ".join(filter(None, (test.exception_type, test.message.partition("\n")[0].strip())))


def _comment_with(sentence: str, subject: str, services: Services) -> UpsertComment | None:
    """Return the newest posted comment with that sentence: a suggestion's own, or that of triage."""
    actions = [
        action
        for decision in services.history.decisions(subject, "triage", "duplicates")
        for action in decision.actions
    ]
    comments = [action for action in actions if isinstance(action, UpsertComment) and sentence in action.body]
    return comments[-1] if sentence and comments else None
