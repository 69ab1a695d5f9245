"""What makes two findings the same finding, although lines shifted and words changed in between."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bot.review.findings import Finding
from bot.review.taxonomy import Category


def fingerprint(path: str, code: Sequence[str], category: Category) -> str:
    """16 hex digits over path, code (white space squeezed, blank lines left out) and defect class."""
    lines = (" ".join(line.split()) for line in code)
    content = "\0".join((path, category.value, *(line for line in lines if line)))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def same_defect(one: Finding, other: Finding) -> bool:
    """Equal fingerprints, or the same class of defect on overlapping code of one file.

    The second half is for models that quote one line today and two tomorrow: advice that was given, or
    rejected, must not come back in a slightly different frame.
    """
    if one.fingerprint == other.fingerprint:
        return True
    if (one.path, one.category) != (other.path, other.category):
        return False
    return bool(_telling(one.code) & _telling(other.code))


def _telling(code: Sequence[str]) -> frozenset[str]:
    """Lines that say something by themselves: not ``}``, ``else:`` or ``return``."""
    return frozenset(line for line in code if sum(char.isalnum() for char in line) >= _TELLING)


# Fewer letters and digits than this stand in many places of a file.
_TELLING = 8
