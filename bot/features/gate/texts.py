"""The check and the comment of the gate. Pure."""

from __future__ import annotations

from bot.core.actions import SetCheck
from bot.core.config import RepoConfig
from bot.core.markdown import code_span
from bot.features.gate.judgement import Readiness

#: The name of the check run.
CHECK = "bouncer / ready"
_NO_MODEL = "*I'm a bot; no AI model was asked.*"
_LINK = (
    "Link the issue with a closing keyword in the description, for example `Fixes #12`. "
    "If you link it in the sidebar instead, comment `/bouncer recheck`."
)

#: The comment on a draft after the maintainers chose another mode.
RELEASED = f"Pull requests are no longer made drafts here, so this one is ready for review again. {_NO_MODEL}"


def unchecked(head_sha: str, why: str) -> SetCheck:
    """Return a check that lets the pull request pass unseen, for a reason."""
    return _skipped(head_sha, f"Not checked: {why}")


def _skipped(head_sha: str, title: str) -> SetCheck:
    return SetCheck(name=CHECK, head_sha=head_sha, conclusion="skipped", title=title, summary=title)


def check(head_sha: str, readiness: Readiness, config: RepoConfig) -> SetCheck:
    """Return the check: passed, failed, or skipped for an exemption."""
    if readiness.exempt:
        return _skipped(head_sha, readiness.sentence)
    if readiness.passes:
        return SetCheck(
            name=CHECK,
            head_sha=head_sha,
            conclusion="success",
            title=readiness.sentence,
            summary="The issue is open and ready, and no earlier pull request is open for it.",
        )
    parts = (
        "Here a pull request needs an issue that is ready for work.",
        _missing(readiness),
        _how(config),
        _LINK,
        "This check runs again when the pull request or its issue changes. No AI model was asked.",
    )
    return SetCheck(
        name=CHECK,
        head_sha=head_sha,
        conclusion="failure",
        title=readiness.sentence,
        summary="\n\n".join(parts),
    )


def converted(readiness: Readiness, config: RepoConfig) -> str:
    """Return the comment on a pull request that was converted to a draft."""
    return "\n\n".join(
        (
            "Thanks for the pull request. Here it needs an issue that is ready for work, so I made it a draft:",
            _missing(readiness),
            f"{_how(config)} {_LINK}",
            "I'll mark it as ready for review when that is done. You can also do that yourself; I won't undo it. "
            + _NO_MODEL,
        )
    )


def returned(readiness: Readiness) -> str:
    """Return the same comment once the pull request may be reviewed."""
    return f"{readiness.sentence}, so this pull request is ready for review again. {_NO_MODEL}"


def _missing(readiness: Readiness) -> str:
    return "\n".join(f"- {clause[0].upper()}{clause[1:]}." for clause in readiness.missing)


def _how(config: RepoConfig) -> str:
    labels = " or ".join(code_span(label) for label in config.gate.ready_labels)
    label = f"the label {labels}, " if labels else ""
    clear = ", or it is clear enough to me" if config.gate.trust_triage else ""
    return (
        f"An issue is ready when a maintainer gives it {label}an assignee or a milestone, "
        f"or comments `/bouncer accept`{clear}."
    )
