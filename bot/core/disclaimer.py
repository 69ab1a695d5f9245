"""Who spoke, as people are told: a verdict carries its model's name, and what that model is worth."""

from __future__ import annotations

import re

#: Also inside of ``mean(...)``, ``cascade(...)`` and a chain.
_PROVIDERS = re.compile(r"(?:^|[(,])([a-z]+):")

_CAVEATS = {
    "local": "A very small local model spoke: its verdicts carry no signal.",
    "scripted": "A scripted model spoke: this is a rehearsal, not a verdict.",
    "recorded": "A recorded reply was replayed: no model was asked.",
}


def caveat(model: str) -> str:
    """What people must know about a model beside its name; empty for one that can be taken at its word."""
    providers = _PROVIDERS.findall(model)
    return next((text for provider, text in _CAVEATS.items() if provider in providers), "")
