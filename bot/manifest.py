"""What the GitHub App asks for: the one list behind app.yml, set-up and ``bouncer doctor``."""

from __future__ import annotations

from collections.abc import Mapping

#: Permissions that every feature but test pull requests needs; ``metadata`` comes with any of them.
PERMISSIONS: Mapping[str, str] = {
    "metadata": "read",
    "contents": "read",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
}
#: Only where drafted tests are to be opened as pull requests (``reproduce.mode: pull``).
FOR_TEST_PULLS: Mapping[str, str] = {"contents": "write"}

#: ``installation``, ``installation_repositories`` and ``ping`` reach every app unasked.
EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "check_run",
    "check_suite",
)

_LEVELS = ("none", "read", "write", "admin")


def missing(granted: Mapping[str, str], needed: Mapping[str, str] = PERMISSIONS) -> tuple[str, ...]:
    """Needed permissions that ``granted`` does not include, as ``name: level``."""
    return tuple(f"{name}: {level}" for name, level in needed.items() if not _enough(granted.get(name), level))


def excessive(granted: Mapping[str, str]) -> tuple[str, ...]:
    """Permissions that nothing here uses."""
    known = {**PERMISSIONS, **FOR_TEST_PULLS}
    return tuple(f"{name}: {level}" for name, level in granted.items() if not _enough(known.get(name), level))


def _enough(granted: str | None, needed: str) -> bool:
    rank = {level: number for number, level in enumerate(_LEVELS)}
    return rank.get(granted or "none", 0) >= rank.get(needed, len(_LEVELS))
