"""The gate: does a pull request link an issue that is ready for work? Nothing here asks a model.

The answer is a check run; with ``gate.mode: draft`` the pull request is also a draft until the answer is yes. It
is converted once: a person who marks it as ready for review decides. An event of an issue only names the pull
requests that link it, and each of them is evaluated again in the order of its own events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from pydantic import Field

from bot.core import events
from bot.core.actions import Action, Decision, Record, SetDraft, UpsertComment
from bot.core.commands import Command
from bot.core.config import RepoConfig
from bot.core.errors import NotFound, NotInstalled
from bot.core.events import Event
from bot.core.subjects import Issue, Subject
from bot.core.text import amount
from bot.features.gate import texts
from bot.features.gate.judgement import LinkedIssue, Readiness, evaluate
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.links import MAX_ISSUES, links_in_text
from bot.features.shared.rights import OFF, asked_for, off_reason, pull_of_check, with_old_check
from bot.github.protocol import IssueLink, PullFacts

IssueEvent = (
    events.IssueLabeled
    | events.IssueUnlabeled
    | events.IssuePlanned
    | events.IssueClosed
    | events.IssueReopened
    | events.IssueRemoved
)
#: Events after which one pull request is evaluated.
PullEvent = events.PullShown | events.LinkedIssueChanged
Trigger = (
    IssueEvent
    | PullEvent
    | events.PullRequestClosed
    | events.CommentCreated
    | events.CheckRerequested
    | events.RecheckRequested
    | events.MergeGroupRequested
)
#: A linked issue: its number, or ``owner/name#12`` for one of another repository.
Claim = int | str
#: What became of the draft state of a pull request.
DraftState = Literal["", "converted", "returned"]
#: Pull requests that are evaluated again after one event at most.
MAX_AFFECTED = 50


class GateRecord(Record):
    """The issues that a pull request links, and what became of its draft state."""

    issues: tuple[int, ...] = Field((), description="linked issues of the same repository")
    elsewhere: tuple[str, ...] = Field((), description="``owner/name#12``: linked issues of other repositories")
    ready: bool = False
    draft: DraftState = Field(
        "", description="converted: it is a draft because of the gate; returned: it was one, and is not any more"
    )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All linked issues."""
        return (*self.issues, *self.elsewhere)


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the event can change the answer for a pull request."""
    if isinstance(event, events.CheckRerequested):
        return event.name in ("", texts.CHECK)
    if isinstance(event, events.CommentCreated):
        word = "recheck" if event.issue.is_pull_request else "accept"
        return not event.sender.is_bot and any(command.word == word for command in commands)
    if isinstance(event, events.LinkedIssueChanged):
        return event.task in ("gate", "config")
    return not isinstance(event, events.RecheckRequested) or event.issue.is_pull_request


def supersedes(newer: Event, older: Event) -> bool:
    """Return True if the evaluation for the newer event covers the older one: each reads everything anew."""
    # Events of other features' decisions have the same type, and are not evaluated.
    return isinstance(newer, PullEvent) and isinstance(older, PullEvent) and concerns(newer, ())


def handle(event: Trigger, services: Services) -> Decision | None:
    """Evaluate a pull request, or name those that an event of an issue concerns; None if there is none."""
    if _is_off(event, services):
        return None
    if isinstance(event, events.MergeGroupRequested):
        why = "this is a merge queue's commit; each pull request in it was checked before"
        check = texts.unchecked(event.head_sha, why)
        return Decision(
            kind="gate", subject=event.subject, actions=(check,), abstained="skipped:queue", reason=why
        )
    if isinstance(event, events.IssueLabeled | events.IssueUnlabeled):
        # Other labels say nothing about readiness.
        labels = (*services.config.gate.ready_labels, services.config.triage.label)
        if event.label.lower() not in map(str.lower, labels):
            return None
    if isinstance(event, IssueEvent):
        return _of_issues((event.number,), event, services)
    if isinstance(event, events.CommentCreated) and not event.issue.is_pull_request:
        return _of_issues((event.number,), event, services) if asked_for("accept", event, services) else None
    if isinstance(event, events.PullRequestClosed):
        record = _last_record(event.subject, services)
        same_head = history.on_same_head(event, "gate", services)
        return _of_issues(record.claims, event, services, same_head) if record else None
    if isinstance(event, events.PullShown) and event.sender.id == services.forge.identity().id:
        return None  # We marked it as ready for review ourselves.
    if isinstance(event, PullEvent):
        return _of_pull(event.number, event, services)
    if isinstance(event, events.CheckRerequested):
        pull = pull_of_check(event, services.forge)
        return _of_pull(pull.number, event, services) if pull else None
    on_request = isinstance(event, events.RecheckRequested) or asked_for("recheck", event, services)
    return _of_pull(event.number, event, services) if on_request else None


def _is_off(event: events.RepositoryEvent, services: Services) -> bool:
    """Return True if the gate is off, and the event does not end what it did to a pull request before that."""
    ends_check = isinstance(event, events.CheckRerequested | events.LinkedIssueChanged)
    if services.config.gate.mode != "off" or ends_check:
        return False
    record = _last_record(event.subject, services)
    return record is None or record.draft != "converted"


def _of_issues(
    claims: Sequence[Claim], event: events.RepositoryEvent, services: Services, more: Collection[int] = ()
) -> Decision | None:
    """Return a decision that has all other pull requests of these issues, and ``more``, evaluated again."""
    find = _evaluated_for if isinstance(event, events.IssueRemoved) else _linking
    affected = {*find(claims, services), *more} - {event.number}
    if not affected:
        return None
    return Decision(
        kind="gate",
        subject=event.subject,
        affects=tuple(sorted(affected))[:MAX_AFFECTED],
        reason=f"{amount(len(affected), 'pull request depends', 'pull requests depend')} on what changed",
    )


def _linking(claims: Sequence[Claim], services: Services) -> set[int]:
    """Return the open pull requests for issues, as GitHub knows them for issues of this repository."""
    pulls = _evaluated_for([claim for claim in claims if isinstance(claim, str)], services)
    for number in [claim for claim in claims if isinstance(claim, int)][:MAX_ISSUES]:
        try:
            pulls.update(services.forge.pulls_for_issue(number))
        except NotFound:
            continue
    return pulls


def _evaluated_for(claims: Sequence[Claim], services: Services) -> set[int]:
    """Return the open pull requests that linked one of these issues when they were evaluated last.

    GitHub names none for an issue that is gone, and another repository would have to be asked.
    """
    newest = services.history.newest(services.forge.repository, "gate") if claims else ()
    return {
        decision.subject.number
        for decision in newest or ()
        if set(claims) & set(decision.record_of(GateRecord).claims)
    }


def _last_record(subject: Subject, services: Services) -> GateRecord | None:
    """Return the record of the last evaluation of a pull request; of one in shadow mode nothing was done."""
    past = services.history.decisions(subject.key, "gate")
    return history.last_record([decision for decision in past if not decision.withheld], GateRecord)


def _of_pull(number: int, event: events.RepositoryEvent, services: Services) -> Decision | None:
    facts = services.forge.pull_facts(number)
    pull = facts.pull
    if pull.state == "closed":
        return None
    subject = Subject(repository=services.forge.repository, number=number, revision=pull.revision)
    before = _last_record(subject, services)
    off = _off_reason(before, event, services)
    if services.config.gate.mode == "off" and not off:
        return None
    linked = tuple(_linked(facts, services))
    readiness = evaluate(facts, linked, services.config)
    draft: DraftState = before.draft if before else ""
    if draft == "converted" and not pull.draft and isinstance(event, PullEvent):
        draft = "returned"  # By a person. When a recheck runs, the conversion may not be written yet.
    changes, draft = _drafting(facts, readiness, draft, services.config)
    record = GateRecord(
        issues=tuple(claim.issue.number for claim in facts.claims),
        elsewhere=tuple(issue.name.lower() for issue in linked if not issue.name.startswith("#")),
        ready=readiness.passes,
        draft=draft,
    )
    why = f"the gate is {off}" if off else readiness.sentence
    check = texts.unchecked(pull.head_sha, why) if off else texts.check(pull.head_sha, readiness, services.config)
    return Decision(
        kind="gate",
        subject=subject,
        verdict=None if off else "ready" if readiness.passes else "not ready",
        abstained=OFF if off else None,
        actions=(check, *changes),
        reason=why,
        record=record,
        affects=_later_claims(number, event, before, record, services),
    )


def _off_reason(before: GateRecord | None, event: events.RepositoryEvent, services: Services) -> str:
    """Return why what the gate did to a pull request ends; empty if it does not, or if it did nothing."""
    if before is None:
        return ""
    is_held = services.config.gate.mode == "off" or before.draft == "converted"
    return off_reason("gate", services) if is_held or with_old_check("gate", event, services) else ""


def _drafting(
    facts: PullFacts, readiness: Readiness, draft: DraftState, config: RepoConfig
) -> tuple[tuple[Action, ...], DraftState]:
    """Return the actions that make the pull request a draft or end that, and the state after them."""
    number, node_id = facts.pull.number, facts.node_id
    is_released = draft == "converted" and config.gate.mode != "draft"
    if (readiness.passes and draft) or is_released:
        body = texts.returned(readiness) if readiness.passes else texts.RELEASED
        comment = UpsertComment(task="gate", number=number, body=body, only_edit=True)
        back = (SetDraft(number=number, node_id=node_id, draft=False),) * (draft == "converted")
        return (*back, comment), "returned"
    if readiness.passes or config.gate.mode != "draft" or draft == "returned":
        return (), draft
    convert = () if facts.pull.draft else (SetDraft(number=number, node_id=node_id, draft=True),)
    if not (convert or draft):
        return (), draft
    comment = UpsertComment(task="gate", number=number, body=texts.converted(readiness, config))
    return (*convert, comment), "converted" if convert else draft


def _later_claims(
    number: int,
    event: events.RepositoryEvent,
    before: GateRecord | None,
    record: GateRecord,
    services: Services,
) -> tuple[int, ...]:
    """Return the newer pull requests whose issue this one claims now, or does not claim any more."""
    earlier_claims = set(before.claims if before and not isinstance(event, events.PullRequestReopened) else ())
    is_new = before is None and isinstance(event, events.PullRequestOpened)
    changed = record.elsewhere if is_new else tuple(sorted(earlier_claims ^ set(record.claims), key=str))
    return tuple(sorted(other for other in _linking(changed, services) if other > number))[:MAX_AFFECTED]


def _linked(facts: PullFacts, services: Services) -> Iterator[LinkedIssue]:
    """Yield the linked issues: those that the forge links, and those that only the text names."""
    forge, numbers = services.forge, set[int]()
    for claim in facts.claims[:MAX_ISSUES]:
        numbers.add(claim.issue.number)
        earlier = [number for number in claim.pulls if number < facts.pull.number]
        yield _with_history(
            f"#{claim.issue.number}", claim.issue, forge.repository, services, min(earlier, default=None)
        )
    for link in links_in_text(facts.pull, services)[: MAX_ISSUES - len(numbers)]:
        here = link.repository.lower() == forge.repository.lower()
        if here and link.number in numbers:
            continue
        name = f"#{link.number}" if here else f"{link.repository}#{link.number}"
        others = () if here else _evaluated_for([name.lower()], services)
        first = min((number for number in others if number < facts.pull.number), default=None)
        yield _with_history(name, _read(link, services, here=here), link.repository, services, first)


def _read(link: IssueLink, services: Services, *, here: bool) -> Issue | None:
    """Return a linked issue; None if it is not there, or if people who see this repository may not see it."""
    forge = services.forge if here else services.elsewhere(link.repository)
    if forge is None:
        return None
    try:
        if not here and forge.about().private and not services.repository.private:
            return None
        return forge.issue(link.number)
    except (NotFound, NotInstalled):
        return None


def _with_history(
    name: str, issue: Issue | None, repository: str, services: Services, earlier: int | None
) -> LinkedIssue:
    past = services.history.decisions(f"{repository}#{issue.number}", "triage", "commands") if issue else ()
    past = tuple(decision for decision in past if not decision.withheld)
    last, accepted = history.last_verdict(past), history.accepted(past)
    return LinkedIssue(
        name=name,
        issue=issue,
        accepted=accepted,
        bounced=history.bounced(last) and not accepted,
        cleared=last is not None and not history.bounced(last),
        earlier=earlier,
    )
