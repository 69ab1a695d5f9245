"""Validate ``.github/bouncer.yml`` when a push or a pull request changes it, and report in a check run.

Only maintainers and the author of the change see the report. A pull request's copy is validated, never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from bot.code.change.diff import parse
from bot.core import config_file, events
from bot.core.actions import Decision, OpenDraftPull, Record, SetCheck, Task
from bot.core.commands import Command
from bot.core.config import PATH, Problem
from bot.core.errors import ForgeError, NotFound
from bot.core.markdown import clean_line
from bot.core.subjects import PullRequest, Subject
from bot.core.text import amount
from bot.features.services import Services
from bot.features.shared.rights import off_reason

#: The check run's name.
CHECK = "bouncer / config"
#: Problems that one check lists; more of them are counted.
MAX_PROBLEMS = 50
#: The features whose checks can fail, and hinder a merge.
_FAILING: tuple[Task, ...] = ("gate", "verify")

Proposal = events.PullRequestOpened | events.PullRequestSynchronized | events.PullRequestReopened
Trigger = Proposal | events.BranchPushed | events.OnboardingRequested


class ConfigRecord(Record):
    """Problems of a version of ``bouncer.yml``."""

    problems: tuple[str, ...] = ()


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the event may change the file, or propose to."""
    return not isinstance(event, events.BranchPushed) or (event.may_change_config and bool(event.head_sha))


def handle(event: Trigger, services: Services) -> Decision | None:
    """Validate the file of a pushed commit or of a pull request; None if the event does not change it."""
    if isinstance(event, events.OnboardingRequested):
        return _propose(event, services)
    if isinstance(event, events.BranchPushed):
        sha, number = event.head_sha, 0
    elif _proposes(event.pull_request, services):
        sha, number = event.pull_request.head_sha, event.pull_request.number
    else:
        return None
    subject = Subject(repository=services.forge.repository, number=number, revision=f"sha:{sha}")
    affected = () if number else _held_up(services)
    try:
        problems = config_file.load(services.forge.file(PATH, sha))[1]
    except NotFound:
        if not (affected or services.history.decisions(subject.key, "config")):
            return None
        reason = f"there is no {PATH} any more"
        return Decision(kind="config", subject=subject, verdict="absent", reason=reason, affects=affected)
    check = report(problems, sha, proposed=bool(number))
    return Decision(
        kind="config",
        subject=subject,
        verdict="wrong" if problems else "valid",
        actions=(check,),
        reason=check.title,
        record=ConfigRecord(problems=tuple(map(str, problems))),
        affects=affected,
    )


def _held_up(services: Services) -> tuple[int, ...]:
    """Return the open pull requests on which a check failed whose feature is off or in shadow mode now."""
    switched_off = [kind for kind in _FAILING if off_reason(kind, services)]
    newest = [services.history.newest(services.forge.repository, kind) or () for kind in switched_off]
    numbers = {
        decision.subject.number
        for decision in chain.from_iterable(newest)
        if any(isinstance(action, SetCheck) and action.conclusion == "failure" for action in decision.actions)
    }
    return tuple(sorted(numbers))


def _propose(event: events.OnboardingRequested, services: Services) -> Decision:
    """Open a pull request that adds the file, unless there is one. An invalid file is a bug of ours."""
    base = services.repository.default_branch
    problems = config_file.load(event.config)[1]
    reason = f"it has problems: {problems[0]}" if problems else ""
    try:
        services.forge.file(PATH, base)
        reason = f"{PATH} exists already"
    except NotFound:
        pass
    if reason:
        return Decision(kind="config", subject=event.subject, abstained="skipped:onboarding", reason=reason)
    pull = OpenDraftPull(
        number=0,
        base=base,
        base_sha=services.forge.head(base),
        branch="bouncer/onboarding",
        path=PATH,
        content=event.config,
        title=f"Add {PATH}",
        body=event.explanation,
    )
    return Decision(
        kind="config",
        subject=event.subject,
        verdict="proposed",
        actions=(pull,),
        reason=f"{event.sender.login} asked for a pull request that adds {PATH}",
        record=ConfigRecord(),
    )


def _proposes(pull: PullRequest, services: Services) -> bool:
    if pull.state == "closed":
        return False
    try:
        diff = services.forge.diff(pull.number)
    except ForgeError:
        return False
    return PATH in diff.omitted or any(file.path == PATH for file in parse(diff.text).files)


def report(problems: Sequence[Problem], sha: str, *, proposed: bool) -> SetCheck:
    """Return the check: key, line and allowed values of each problem."""
    count = len(problems)
    title = f"{PATH} has {amount(count, 'problem')}" if count else f"{PATH} is valid"
    lines = [f"- {clean_line(str(problem), limit=400)}" for problem in problems[:MAX_PROBLEMS]]
    if count > MAX_PROBLEMS:
        lines.append(f"- and {count - MAX_PROBLEMS} more")
    if problems:
        lines += ["", "A wrong value falls back to its default; a wrong mode means shadow mode, in which nothing "
                  "is posted."]  # fmt: skip
    if proposed:
        lines += ["", "This copy was only validated. The file counts once it is on the default branch."]
    return SetCheck(
        name=CHECK,
        head_sha=sha,
        conclusion="failure" if problems else "success",
        title=title,
        summary="\n".join(lines).strip() or "Nothing is wrong with it.",
    )
