"""Who spoke, as people are told: a verdict carries its model's name, and what that model is worth."""

from __future__ import annotations

import re

#: Also inside of ``mean(...)``, ``cascade(...)`` and a chain.
_PROVIDERS = re.compile(r"(?:^|[(,])([a-z]+):")

_CAVEATS = {
    "local": "A small model on this machine answered: do not rely on it.",
    "scripted": "A scripted model answered: this is a rehearsal, not a verdict.",
    "recorded": "This is a recorded answer: no model was asked just now.",
}


def caveat(model: str) -> str:
    """What people must know about a model beside its name; empty for one that can be taken at its word."""
    providers = _PROVIDERS.findall(model)
    return next((text for provider, text in _CAVEATS.items() if provider in providers), "")
