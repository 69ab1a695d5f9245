"""How alike two texts are by the words in them: BM25 over identifiers and words. Pure, no dependency."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

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


class Bm25:
    """Scores of a query against a fixed set of named documents."""

    def __init__(self, documents: Mapping[str, Iterable[str]]) -> None:
        """``documents``: words by name, as ``words`` gives them."""
        self._counts = {name: Counter(found) for name, found in documents.items()}
        self._lengths = {name: sum(counts.values()) for name, counts in self._counts.items()}
        self._mean = max(1.0, sum(self._lengths.values()) / max(1, len(self._lengths)))
        self._documents = Counter(word for counts in self._counts.values() for word in counts)

    def best(self, query: Sequence[str], limit: int) -> tuple[str, ...]:
        """Names of the ``limit`` best documents, best first, those without a common word left out.

        Equal scores are ordered by name, so that the answer never depends on the order of files on disk.
        """
        scores = {name: self.score(query, name) for name in self._counts}
        ranked = sorted(
            (name for name, score in scores.items() if score > 0), key=lambda name: (-scores[name], name)
        )
        return tuple(ranked[:limit])

    def score(self, query: Sequence[str], name: str) -> float:
        """BM25 of one document; each word of the query counts once."""
        counts = self._counts[name]
        norm = _K1 * (1 - _B + _B * self._lengths[name] / self._mean)
        return sum(
            self._idf(word) * counts[word] * (_K1 + 1) / (counts[word] + norm)
            for word in set(query)
            if word in counts
        )

    def _idf(self, word: str) -> float:
        having = self._documents[word]
        return math.log(1 + (len(self._counts) - having + 0.5) / (having + 0.5))
