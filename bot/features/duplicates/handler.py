"""Name an earlier issue that a new one may repeat, if it is likely enough. Nothing is closed or labelled.

Candidates come from the index of issues. One model call compares the new issue with all of them. ``evidence`` runs
the drafted tests of both issues.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from bot.core.actions import Decision, UpsertComment
from bot.core.commands import Command
from bot.core.events import Event, IssueLabeled, IssueOpened
from bot.core.frozen import Lenient
from bot.core.text import folded
from bot.features.duplicates import texts
from bot.features.duplicates.evidence import compare_tests
from bot.features.duplicates.record import Comparison, DuplicatesRecord
from bot.features.services import IndexedIssue, Services
from bot.features.shared.issues import skip_reason, with_suggestion
from bot.models.protocol import Prompt, Templates

#: Earlier issues in one question, and characters of each text.
MAX_CANDIDATES, MAX_TEXT = 5, 6_000


class ComparisonReply(Lenient):
    """The model's reply."""

    comparisons: tuple[Comparison, ...] = Field(description="one for each earlier issue")


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True for a new issue, and for a label: one of them tells that a test was drafted."""
    return isinstance(event, IssueOpened | IssueLabeled) and not event.issue.is_pull_request


def handle(event: IssueOpened | IssueLabeled, services: Services) -> Decision | None:
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
    prompt = question(services.prompts, issue.title, issue.body, candidates)
    reply = services.model.complete(prompt.model_copy(update={"subject": event.subject.key}), ComparisonReply)
    numbers = tuple(candidate.number for candidate in candidates)
    comparisons = tuple(row for row in reply.value.comparisons if row.number in numbers)
    match = best(comparisons, config.suggest_above or 0)
    actions: tuple[UpsertComment, ...] = ()
    reason, root, sentence = "no earlier issue has the same cause", None, ""
    if match:
        root = next(candidate.root for candidate in candidates if candidate.number == match.number)
        sentence = texts.suggestion(root, match.both, event.repository.host)
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
    return UpsertComment(task="duplicates", number=number, body=sentence + texts.ALONE)
