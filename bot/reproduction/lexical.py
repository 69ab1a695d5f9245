"""Similarity of texts: BM25 over identifiers and words. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Usual values: Robertson and Zaragoza, The Probabilistic Relevance Framework.
_K1 = 1.5
_B = 0.75


def words(text: str) -> list[str]:
    """Return lower-case words of prose and code: every identifier, and its parts if it has several."""
    results: list[str] = []
    for word in _WORD.findall(text):
        whole = word.lower()
        results.append(whole)
        parts = [part.lower() for part in _HUMP.findall(word) if len(part) > 1]
        if len(parts) > 1:
            results.extend(parts)
    return results


def scores(query: str, texts: Mapping[str, str]) -> dict[str, float]:
    """Return the BM25 score of each text by name; each word of the query counts once."""
    counts = {name: Counter(words(text)) for name, text in texts.items()}
    mean = max(1.0, sum(counter.total() for counter in counts.values()) / max(1, len(counts)))
    having = Counter(word for counter in counts.values() for word in counter)
    rarity = {
        word: math.log(1 + (len(counts) - having[word] + 0.5) / (having[word] + 0.5)) for word in words(query)
    }

    def score(counter: Counter[str]) -> float:
        norm = _K1 * (1 - _B + _B * counter.total() / mean)
        return sum(
            rarity[word] * counter[word] * (_K1 + 1) / (counter[word] + norm) for word in rarity if word in counter
        )

    return {name: score(counter) for name, counter in counts.items()}


def most_alike(query: str, texts: Mapping[str, str], limit: int) -> tuple[str, ...]:
    """Return the names of the ``limit`` most similar texts, best first, without those that share no word.

    Equal scores are ordered by name, so that the result does not depend on the order of files on disk.
    """
    positive = {name: score for name, score in scores(query, texts).items() if score > 0}
    return tuple(sorted(positive, key=lambda name: (-positive[name], name))[:limit])
