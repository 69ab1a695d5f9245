"""Who spoke, as people are told: a verdict carries its model's name, and what that model is worth."""

from __future__ import annotations

_CAVEATS = {
    "local": "A very small local model spoke: its verdicts carry no signal.",
    "scripted": "A scripted model spoke: this is a rehearsal, not a verdict.",
    "recorded": "A recorded reply was replayed: no model was asked.",
}


def caveat(model: str) -> str:
    """What people must know about a model beside its name; empty for one that can be taken at its word."""
    return _CAVEATS.get(model.partition(":")[0], "")
