"""What the GitHub App needs: read from ``app.yml``, asked for at set-up, and held against what was granted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from bot.core.frozen import Frozen
from bot.errors import OperatorError

Level = Literal["read", "write"]

#: In a checkout the file lies beside the package, in an installation inside of it.
_PLACES = tuple(folder / "app.yml" for folder in Path(__file__).parents[2:4])

#: Permission -> what it is for, as the set-up page explains it.
PURPOSES: Mapping[str, str] = {
    "checks": "the check that says whether a patch solves its issue",
    "contents": "files: the configuration, and the code around a change",
    "issues": "comments, labels and reactions on issues",
    "members": "seeing who belongs to the organization: its members may open the dashboard",
    "merge_queues": "hearing of merge queues, so that a required check does not hold them up",
    "metadata": "the repository's name and who may do what; every app has it",
    "pull_requests": "reviews with inline comments",
}


class Manifest(Frozen):
    """``app.yml``."""

    name: str = Field(min_length=1, max_length=34)
    description: str = ""
    public: bool = False
    default_events: tuple[str, ...]
    default_permissions: Mapping[str, Level]

    def with_test_pulls(self) -> Manifest:
        """The same with what test pull requests need on top: a branch with one new file."""
        permissions = {**self.default_permissions, "contents": "write"}
        return Manifest(**{**self.model_dump(), "default_permissions": permissions})

    def with_members(self) -> Manifest:
        """The same with what it takes to let an organisation's members open the dashboard."""
        permissions = {**self.default_permissions, "members": "read"}
        return Manifest(**{**self.model_dump(), "default_permissions": permissions})

    def gaps(self, permissions: Mapping[str, str], events: Iterable[str]) -> tuple[str, ...]:
        """What is needed and not granted, one readable item each."""
        lacking = [
            f"permission {name}: {level} (granted: {permissions.get(name, 'none')})"
            for name, level in self.default_permissions.items()
            if not _covers(permissions.get(name), level)
        ]
        return (*lacking, *(f"event {event}" for event in self.default_events if event not in set(events)))

    def posted(self, public_url: str, name: str = "") -> dict[str, Any]:
        """The JSON object of GitHub's manifest flow, for a server that people reach at ``public_url``."""
        base = public_url.rstrip("/")
        return {
            "name": name or self.name,
            "url": base,
            "description": self.description,
            "public": self.public,
            "hook_attributes": {"url": f"{base}/webhook", "active": True},
            "redirect_url": f"{base}/setup/callback",
            "setup_url": f"{base}/setup/installed",
            "callback_urls": [f"{base}/login/github/callback"],
            "default_events": list(self.default_events),
            "default_permissions": dict(self.default_permissions),
        }


def _covers(granted: str | None, needed: Level) -> bool:
    return granted in ("write", "admin") or granted == needed


@cache
def load() -> Manifest:
    """The manifest that ships with this version. Raises OperatorError where it is missing or wrong."""
    for place in _PLACES:
        if place.is_file():
            return _read(place)
    raise OperatorError(f"app.yml is missing from the installation: looked at {_PLACES[0]}")


def _read(place: Path) -> Manifest:
    try:
        return Manifest(**yaml.safe_load(place.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, TypeError, ValidationError) as error:
        raise OperatorError(f"{place}: cannot be used: {str(error).splitlines()[0]}") from None
