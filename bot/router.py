"""The explicit table from what happened to who deals with it, and the one function that decides.

live:        publish(decide(event))
evaluation:  score(decide(event))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.core import events
from bot.core.actions import Decision, Task, Usage
from bot.core.config import PATH
from bot.core.errors import BudgetExceeded, ForgeError, ModelError, SandboxError, TransientError, UserError
from bot.core.events import Event
from bot.features.closing import handler as closing
from bot.features.commands import handler as commands
from bot.features.config import handler as config
from bot.features.feedback import handler as feedback
from bot.features.reproduce import handler as reproduce
from bot.features.review import handler as review
from bot.features.services import Handler, Services
from bot.features.triage import handler as triage
from bot.features.verify import handler as verify
from bot.features.why import handler as why

#: Who deals with a task, and what can be told of an event before anything is read for it.
HANDLERS: Mapping[Task, tuple[Handler, Callable[[Event], bool]]] = {
    "closing": (closing.handle, closing.concerns),
    "commands": (commands.handle, commands.concerns),
    "config": (config.handle, config.concerns),
    "feedback": (feedback.handle, feedback.concerns),
    "reproduce": (reproduce.handle, reproduce.concerns),
    "review": (review.handle, review.concerns),
    "triage": (triage.handle, triage.concerns),
    "verify": (verify.handle, verify.concerns),
    "why": (why.handle, why.concerns),
}

ROUTES: Mapping[type[Event], tuple[Task, ...]] = {
    # Reproduction comes after triage: by itself it only tries what triage found clear enough.
    events.BranchPushed: ("config",),
    events.IssueOpened: ("triage", "reproduce"),
    events.IssueEdited: ("closing", "triage", "reproduce"),
    events.IssueReopened: ("triage", "reproduce"),
    events.IssueLabeled: ("triage", "reproduce"),
    events.IssueUnlabeled: ("commands",),
    events.IssueClosed: ("feedback",),
    events.IssueUnanswered: ("closing",),
    events.CommentCreated: ("commands", "closing", "triage", "reproduce", "verify", "review", "why"),
    events.CommentEdited: ("closing", "triage", "feedback"),
    events.CommentDeleted: ("feedback",),
    events.PullRequestOpened: ("config", "verify", "review"),
    events.PullRequestSynchronized: ("config", "verify", "review"),
    events.PullRequestReopened: ("config", "verify", "review"),
    events.PullRequestReadied: ("verify", "review"),
    events.PullRequestEdited: ("verify", "review"),
    events.PullRequestClosed: ("feedback",),
    events.ReviewCommentCreated: ("commands", "verify", "review", "why"),
    events.ReviewCommentEdited: ("feedback",),
    events.ReviewCommentDeleted: ("feedback",),
    events.ReviewThreadResolved: ("feedback",),
    events.CheckRerequested: ("verify", "review"),
    events.RecheckRequested: ("triage", "verify", "review"),
    events.MergeGroupRequested: ("verify",),
}

#: What a task builds upon: it does not begin while one of these may still decide about the same event. A command
#: changes what the others find, and reproduction by itself takes only what triage found clear.
BUILDS_ON: Mapping[Task, frozenset[Task]] = {
    "triage": frozenset({"commands"}),
    "reproduce": frozenset({"commands", "triage"}),
    "verify": frozenset({"commands"}),
    "review": frozenset({"commands"}),
}


def tasks(event: Event) -> tuple[Task, ...]:
    """Who deals with an event, in this order; nobody where it is of no interest."""
    return tuple(task for task in ROUTES.get(type(event), ()) if HANDLERS[task][1](event))


def decide(event: Event, services: Services, only: Task | None = None) -> tuple[Decision, ...]:
    """What each handler makes of the event; ``only`` one of them where a job runs a single task.

    A handler that cannot decide abstains and does not stop its siblings. Raises TransientError (after the
    siblings had their turn) where a later try may succeed.
    """
    chosen = tuple(task for task in tasks(event) if only in (None, task))
    decisions: list[Decision] = []
    later: TransientError | None = None
    for task in chosen:
        try:
            decision = _decide_one(task, event, services)
        except TransientError as error:
            later = later or error
        else:
            decisions += () if decision is None else (decision,)
    if later is not None:
        raise later
    return tuple(decisions)


def _decide_one(task: Task, event: Event, services: Services) -> Decision | None:
    try:
        handle, _ = HANDLERS[task]
        return _in_shadow(handle(event, services), services)
    except BudgetExceeded as error:
        # Not a failure and no verdict: nobody was asked (or nobody any more), and tomorrow somebody will be.
        return _abstain(task, event, "skipped:budget", str(error), error.usage)
    except ModelError as error:
        return _abstain(task, event, f"model:{error.reason}", str(error), error.usage)
    except SandboxError as error:
        return _abstain(task, event, "sandbox", str(error))
    except UserError as error:
        return _abstain(task, event, "input", str(error))
    except ForgeError as error:
        return _abstain(task, event, f"forge:{error.status or 'refused'}", str(error))


def _in_shadow(decision: Decision | None, services: Services) -> Decision | None:
    """In shadow mode everything is decided as ever, and nothing is done: the actions are kept to be looked at."""
    if decision is None or getattr(getattr(services.config, decision.kind, None), "mode", "") != "shadow":
        return decision
    cause = next((problem for problem in services.config_problems if decision.kind in problem.shadowed), None)
    because = f" because of {PATH} ({cause})" if cause else ""
    reason = f"shadow mode{because}, nothing written: {decision.reason}"
    return decision.model_copy(update={"actions": (), "withheld": decision.actions, "reason": reason})


def _abstain(task: Task, event: Event, word: str, reason: str, usage: Usage | None = None) -> Decision | None:
    if not isinstance(event, events.RepositoryEvent):
        return None
    return Decision(kind=task, subject=event.subject, reason=reason, abstained=word, usage=usage or Usage())
