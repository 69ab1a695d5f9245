"""Every exception that Bouncer raises on purpose, sorted by its reader.

    BouncerError
    ├── OperatorError          one clear line for the operator; a command ends with exit code 2
    │   └── SettingsError      a setting, key file, URL or secret is missing or wrong
    │       └── DatabaseAway   the database server does not answer now
    ├── UserError              its text may be posted: the person on GitHub can do something about it
    │   └── ConfigError        the repository's .github/bouncer.yml cannot be used
    ├── TransientError         worth another try, after ``wait`` seconds if the other side named them
    │   ├── OperatorNeeded     a job waits, up to a week, until an operator has repaired something
    │   ├── Unauthorized       GitHub refused the credentials: a job waits for a repair, a command ends
    │   ├── Suspended          the account suspended the App's installation: a job waits until that ends
    │   └── AnswerLost         a model was asked and no answer arrived: it may cost all the same
    ├── ModelError             a language model failed or gave no usable answer; the decision is an abstention
    │   ├── BudgetExceeded     not asked at all: the budget of the day is spent
    │   └── ProviderRefused    a wrong key, model name or account; on a server it becomes OperatorNeeded
    ├── SandboxError           the sandbox itself failed (a program that fails inside it is a result, no error)
    ├── ForgeError             GitHub refused for good (not found, forbidden, invalid)
    │   ├── NotFound           404 or 410: the thing is not there, or not for us
    │   └── NotInstalled       the App may not use the repository, or not any more
    ├── NotRecorded            a replay asked for something that its snapshot does not hold
    ├── InvalidSignature       a webhook delivery is refused with 401: the bytes are not signed with the secret
    └── MalformedDelivery      ... with 400: headers or JSON are not what GitHub sends

Anything else is a bug: logged with its delivery id, recorded, and never shown raw in a comment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.core.actions import Usage


class BouncerError(Exception):
    """The root of all errors that Bouncer raises on purpose."""


class OperatorError(BouncerError):
    """Wrong usage or bad input; the message is one line that names the fault and its place."""


class SettingsError(OperatorError):
    """A setting is missing or wrong; the message names it."""


class DatabaseAway(SettingsError):
    """The database server cannot be reached: a wrong URL at a first start, an outage at any later one."""


class UserError(BouncerError):
    """Something that a person on GitHub can fix; the message may be posted as it stands."""


class ConfigError(UserError):
    """``.github/bouncer.yml`` cannot be used; the message names key, line and allowed values."""


class TransientError(BouncerError):
    """A failure that may pass: worth another try.

    ``wait`` is the pause that the other side asked for, in seconds; None if it named none. ``usage`` is what model
    calls consumed before the failure; None if none was made.
    """

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait
        self.usage: Usage | None = None


#: What people read if no model answered.
UNREACHABLE = "the model could not be reached"


class ModelError(BouncerError):
    """A model failed, refused, was cut off or answered with something that the schema does not allow.

    ``reason`` is a short stable word for counting: ``refused``, ``length``, ``malformed``, ``invalid``,
    ``unavailable``, ``unrecorded`` or ``budget``. ``usage`` is what was consumed all the same; None if no
    call was made.
    """

    def __init__(self, message: str, reason: str = "invalid") -> None:
        super().__init__(message)
        self.reason = reason
        self.usage: Usage | None = None

    @property
    def sentence(self) -> str:
        """The sentence that people read instead of a verdict."""
        if self.reason == "unavailable":
            return UNREACHABLE
        return f"the model gave no usable answer ({self.reason})"


class BudgetExceeded(ModelError):
    """The call was not made: it would exceed the budget. Never shown as a verdict."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="budget")


class ProviderRefused(ModelError):
    """The provider refuses every question until an operator acts: wrong key, unknown model, no credit."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="unavailable")


class OperatorNeeded(TransientError):
    """The job waits until an operator has repaired something."""


class Unauthorized(TransientError):
    """GitHub refused the credentials (401). On a server an operator may repair them while the job waits."""


class Suspended(TransientError):
    """The account suspended the installation of the App. Its jobs wait until that ends, however long it takes."""


class AnswerLost(TransientError):
    """A request reached a model's provider, and no complete answer came back: it may be billed."""


class SandboxError(BouncerError):
    """The sandbox could not be started or watched."""


class ForgeError(BouncerError):
    """GitHub refused a request and would refuse it again; ``status`` is the HTTP status if there was one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


#: GitHub's words for a token without the permission that a request needs.
LACKING = "Resource not accessible by integration"


class NotFound(ForgeError):
    """404 or 410."""


class NotInstalled(ForgeError):
    """GitHub gives no token for the repository: the App was removed from it, or it was renamed."""


class NotRecorded(BouncerError):
    """The snapshot of a replay does not hold what was asked for: a broken experiment, never an empty answer."""


class InvalidSignature(BouncerError):
    """No configured secret produces the signature that came with these bytes."""


class MalformedDelivery(BouncerError):
    """Headers or body are not what GitHub sends."""
