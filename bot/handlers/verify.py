"""Output bouncer: does this patch solve the issue that it says it solves?

The answer is one check run. No linked issue is an abstention that the check shows, not a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.bouncers import history, judgement, linked, output_check, pull_request
from bot.bouncers.judgement import Judgement
from bot.core import events
from bot.core.actions import Decision
from bot.core.events import Event
from bot.core.model import Subject
from bot.services import Services


def concerns(event: Event) -> bool:
    """Whether an event can ask for a verdict on its pull request."""
    if isinstance(event, events.MergeGroupRequested):
        return True
    return pull_request.concerns(event, output_check.NAME, frozenset({"verify", "recheck"}))


def handle(event: Event, services: Services) -> Decision | None:
    """Judge the pull request of an event against the issues that it closes; None where nothing asks for it."""
    if services.config.verify.mode == "off":
        return None
    if isinstance(event, events.MergeGroupRequested):
        return _passed_on(event, services)
    asked = pull_request.asked(event, services, "verify", output_check.NAME)
    if asked is None:
        return None
    pull = asked.pull_request
    subject = Subject(repository=services.forge.repository, number=pull.number, revision=pull.revision)
    past = services.history.decisions(subject.key, "verify", "commands")
    left_alone = pull_request.why_not(pull, services)
    if left_alone is None and history.paused(past):
        left_alone = "skipped:paused", "paused by a maintainer"
    if left_alone and not asked.explicitly:
        return judgement.abstain(subject, pull, *left_alone)
    links = linked.links(pull, services)
    if not links:
        return judgement.abstain(subject, pull, "no-issue", "no linked issue")
    issues, unjudged = linked.issues(links, services)
    judged = {str(issue.number): issue.revision for issue in issues}
    if isinstance(event, events.PullRequestEdited) and _same(past, subject, judged):
        return None
    no_run = pull_request.no_run(asked, "verify")
    return Judgement(subject, pull, services, no_run=no_run).decide(issues, unjudged, judged)


def _passed_on(event: events.MergeGroupRequested, services: Services) -> Decision:
    """A merge queue's commit is not judged; a required check must not hold the queue up."""
    why = "this is a merge queue's commit; each pull request in it has a verdict of its own"
    actions = (output_check.skipped(event.head_sha, why),)
    return Decision(kind="verify", subject=event.subject, actions=actions, abstained="skipped:queue", reason=why)


def _same(past: Sequence[Decision], subject: Subject, judged: dict[str, str]) -> bool:
    """Whether exactly this code was judged against exactly these issues already."""
    last = history.last_verdict(past)
    return last is not None and last.subject == subject and last.evidence.get("judged") == judged
