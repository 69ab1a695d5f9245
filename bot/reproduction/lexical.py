"""How alike two texts are by the words in them: BM25 over identifiers and words. Pure, no dependency."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Robertson and Zaragoza, The Probabilistic Relevance Framework: the usual values.
_K1 = 1.5
_B = 0.75


def words(text: str) -> list[str]:
    """Lower-case words of prose and code: every identifier whole, and its parts where it has several."""
    found: list[str] = []
    for word in _WORD.findall(text):
        whole = word.lower()
        found.append(whole)
        parts = [part.lower() for part in _HUMP.findall(word) if len(part) > 1]
        if len(parts) > 1:
            found.extend(parts)
    return found


def scores(query: str, texts: Mapping[str, str]) -> dict[str, float]:
    """BM25 of each text, by name; each word of the query counts once."""
    counts = {name: Counter(words(text)) for name, text in texts.items()}
    mean = max(1.0, sum(found.total() for found in counts.values()) / max(1, len(counts)))
    having = Counter(word for found in counts.values() for word in found)
    rarity = {
        word: math.log(1 + (len(counts) - having[word] + 0.5) / (having[word] + 0.5)) for word in words(query)
    }

    def score(found: Counter[str]) -> float:
        norm = _K1 * (1 - _B + _B * found.total() / mean)
        return sum(
            rarity[word] * found[word] * (_K1 + 1) / (found[word] + norm) for word in rarity if word in found
        )

    return {name: score(found) for name, found in counts.items()}


def most_alike(query: str, texts: Mapping[str, str], limit: int) -> tuple[str, ...]:
    """Names of the ``limit`` texts most like ``query``, best first, those without a common word left out.

    Equal scores are ordered by name, so that the answer never depends on the order of files on disk.
    """
    found = {name: score for name, score in scores(query, texts).items() if score > 0}
    return tuple(sorted(found, key=lambda name: (-found[name], name))[:limit])
