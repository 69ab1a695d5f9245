"""The list of features, and the one function that decides.

live:        publish(decide(event))
evaluation:  score(decide(event))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.core import events
from bot.core.actions import Decision, Task, Usage
from bot.core.commands import Command, CommandSet
from bot.core.config import PATH
from bot.core.errors import (
    BudgetExceeded,
    ForgeError,
    ModelError,
    NotInstalled,
    SandboxError,
    TransientError,
    UserError,
)
from bot.core.events import Event
from bot.core.redaction import protecting
from bot.features.closing.feature import FEATURE as CLOSING
from bot.features.commands.feature import FEATURE as COMMANDS
from bot.features.config.feature import FEATURE as CONFIG
from bot.features.duplicates.feature import FEATURE as DUPLICATES
from bot.features.feature import Feature
from bot.features.feedback.feature import FEATURE as FEEDBACK
from bot.features.gate.feature import FEATURE as GATE
from bot.features.ready.feature import FEATURE as READY
from bot.features.reproduce.feature import FEATURE as REPRODUCE
from bot.features.review.feature import FEATURE as REVIEW
from bot.features.services import Services
from bot.features.shared.rights import OFF
from bot.features.triage.feature import FEATURE as TRIAGE
from bot.features.verify.feature import FEATURE as VERIFY
from bot.features.watch.feature import FEATURE as WATCH
from bot.features.why.feature import FEATURE as WHY

#: All features, in the order in which they decide about one event. Every other table about them is derived.
FEATURES: tuple[Feature, ...] = (
    CONFIG,
    COMMANDS,
    CLOSING,
    TRIAGE,
    DUPLICATES,
    REPRODUCE,
    READY,
    WATCH,
    GATE,
    VERIFY,
    REVIEW,
    WHY,
    FEEDBACK,
)
#: Features that judge the subject of every event. One that executes code judges only some.
JUDGES: tuple[Task, ...] = tuple(feature.name for feature in FEATURES if feature.judges and not feature.executes)
_BY_NAME = {feature.name: feature for feature in FEATURES}

#: The slash commands of all features.
SLASH_COMMANDS = CommandSet(command for feature in FEATURES for command in feature.commands)


def feature_named(name: Task) -> Feature:
    """Return the feature of that name."""
    return _BY_NAME[name]


def read_decision(values: Mapping[str, Any]) -> Decision:
    """Return a decision from its JSON object, with the record that its feature declares.

    Raises ValidationError. Rows of version 0.2 have their record under ``evidence``.
    """
    plain = dict(values)
    record = plain.pop("record", None) or plain.pop("evidence", None)
    plain.pop("evidence", None)
    decision = Decision.model_validate(plain)
    if not record:
        return decision
    return decision.model_copy(update={"record": feature_named(decision.kind).record.model_validate(record)})


def tasks(event: Event) -> tuple[Task, ...]:
    """Return the names of the features that an event may concern, in order; empty if it is of no interest."""
    commands: tuple[Command, ...] = ()
    if isinstance(event, events.CommentCreated | events.CommentEdited | events.ReviewCommentCreated):
        commands = SLASH_COMMANDS.read(event.comment.body)
    # A mention may be of another account, which only the handler can tell: both readings count.
    readings = {commands, tuple(command for command in commands if not command.mention)}
    return tuple(
        feature.name
        for feature in FEATURES
        if isinstance(event, feature.events) and any(feature.concerns(event, reading) for reading in readings)
    )


def debounced(event: Event) -> bool:
    """Return True if the jobs of an event are to wait for a moment, as a newer event may supersede them."""
    return any(isinstance(event, feature.debounces) for feature in FEATURES)


def decide(event: Event, services: Services, only: Task | None = None) -> tuple[Decision, ...]:
    """Return the decisions of the features that the event concerns, or of ``only`` one of them.

    A feature that cannot decide abstains and does not stop the others. Raises TransientError, after the others
    have decided, if a later try may succeed, and NotInstalled.
    """
    decisions: list[Decision] = []
    transient_error: TransientError | None = None
    for task in tasks(event):
        if only not in (None, task):
            continue
        try:
            decision = _decide_one(task, event, services)
        except TransientError as error:
            transient_error = transient_error or error
        else:
            decisions += () if decision is None else (decision,)
    if transient_error is not None:
        raise transient_error
    return tuple(decisions)


def _decide_one(task: Task, event: Event, services: Services) -> Decision | None:
    try:
        with protecting(services.secrets):
            return _in_shadow(feature_named(task).handle(event, services), services)
    except BudgetExceeded as error:
        # Neither a failure nor a verdict: the job runs again when there is a new budget.
        return _abstain(task, event, "skipped:budget", str(error), error.usage)
    except ModelError as error:
        return _abstain(task, event, f"model:{error.reason}", str(error), error.usage)
    except SandboxError as error:
        return _abstain(task, event, "sandbox", str(error))
    except UserError as error:
        return _abstain(task, event, "input", str(error))
    except NotInstalled:
        raise
    except ForgeError as error:
        return _abstain(task, event, f"forge:{error.status or 'refused'}", str(error))


def _in_shadow(decision: Decision | None, services: Services) -> Decision | None:
    """Return the decision with its actions withheld if its feature or the server is in shadow mode."""
    if decision is None:
        return None
    # What was posted before shadow mode began must not hold up a merge for ever.
    is_shadowed = services.config.mode(decision.kind) == "shadow" and decision.abstained != OFF
    if not (services.shadow or is_shadowed):
        return decision
    cause = next((problem for problem in services.config_problems if decision.kind in problem.shadowed), None)
    because = f" because of {PATH} ({cause})" if cause else ""
    reason = f"shadow mode{because}, nothing written: {decision.reason}"
    return decision.model_copy(
        update={"actions": (), "withheld": decision.actions or decision.withheld, "reason": reason}
    )


def _abstain(task: Task, event: Event, word: str, reason: str, usage: Usage | None = None) -> Decision | None:
    if not isinstance(event, events.RepositoryEvent):
        return None
    return Decision(kind=task, subject=event.subject, reason=reason, abstained=word, usage=usage or Usage())
