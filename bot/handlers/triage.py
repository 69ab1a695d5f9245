"""Input bouncer: is this issue specified well enough to act on?"""

from __future__ import annotations

from bot.actions import Decision
from bot.events import Event
from bot.services import Services


def handle(event: Event, services: Services) -> Decision | None:
    """Judge an issue that was opened, edited, reopened or answered."""
    return None
