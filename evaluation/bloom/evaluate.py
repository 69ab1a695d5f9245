"""Evaluate: can a model choose the best among diverse, failing tests? (section 3.5) Pure.

Both rankings come from ``bouncer-eval replay brt`` on the same cases, without and with ``--pick``: the first is
the order that clustering gives, in the second the model had the last word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.brt.metrics import found_at_n
from evaluation.brt.rankings import Ranking
from evaluation.brt.scores import RankingScores
from evaluation.statistics import mcnemar


class Evaluated:
    """Figures of both orders, and whether the first suggestion is right more often with the model's word."""

    def __init__(
        self,
        ranked: Sequence[Ranking],
        picked: Sequence[Ranking],
        generated: Sequence[Ranking],
        *,
        seed: int = 0,
        replicates: int = 2000,
    ) -> None:
        """``generated``: rankings of everything that failed, before selection; the ground of recall."""
        self.ranked = RankingScores(ranked, generated, seed=seed, replicates=replicates)
        self.picked = RankingScores(picked, generated, seed=seed, replicates=replicates)
        before = dict(zip((r.bug_id for r in ranked), found_at_n(ranked, 1), strict=True))
        after = dict(zip((r.bug_id for r in picked), found_at_n(picked, 1), strict=True))
        # A bug for which the model finds every test wrong is suggested nothing: then nothing right is first.
        bugs = set(before) | set(after)
        self.lost = sum(before.get(bug, False) and not after.get(bug, False) for bug in bugs)
        self.gained = sum(after.get(bug, False) and not before.get(bug, False) for bug in bugs)
        self.p = mcnemar(self.lost, self.gained)

    def as_json(self) -> dict[str, Any]:
        """Both sets of figures, and the paired comparison of the first suggestion."""
        return {
            "ranked": self.ranked.as_json(),
            "picked": self.picked.as_json(),
            "first_suggestion": {"lost": self.lost, "gained": self.gained, "p": self.p},
        }
