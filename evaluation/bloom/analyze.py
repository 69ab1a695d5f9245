"""Analyze: which components of a report go with success, by random forests (section 3.4).

Ten forests, each on a random 80 % of the reports; how much a component matters is how far the AUC on the other
20 % falls when the component is shuffled. The ten values of each are ranked by Scott-Knott ESD. (Closed against
open book is a comparison of two runs of ``bouncer-eval replay brt``, without and with ``--book``.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from bot.core.frozen import Frozen
from evaluation.bloom.components import COMPONENTS, PUBLISHED, Component, Presence, shares
from evaluation.bloom.scott_knott import scott_knott_esd

FORESTS = 10
TREES = 100
_REPEATS = 5


class Importance(Frozen):
    """How much one component says about success."""

    component: Component
    rank: int = Field(description="by Scott-Knott ESD; 1 matters most")
    mean: float = Field(description="mean fall of the AUC when the component is shuffled")
    values: tuple[float, ...] = Field(description="one a forest")


class Analysis(Frozen):
    """What the forests found."""

    reports: int
    successes: int
    auc: float = Field(description="mean AUC on the held-out fifths: 0.5 = the components say nothing")
    importances: tuple[Importance, ...] = Field(description="most important first")
    presence: dict[Component, float]
    success_with: dict[Component, float | None] = Field(description="success rate of reports that hold it")
    success_without: dict[Component, float | None] = Field(description="of those that do not")

    def as_json(self) -> dict[str, Any]:
        """With the authors' annotated shares beside ours."""
        return {**self.model_dump(mode="json"), "published_presence": dict(PUBLISHED)}


def analyze(reports: Sequence[Presence], success: Mapping[str, bool], seed: int = 0) -> Analysis:
    """Train the forests and rank the components.

    Only components known of every report take part. Raises ValueError where fewer than 50 reports have a known
    outcome, or all have the same one.
    """
    known = [each for each in reports if each.bug_id in success]
    columns = [c for c in COMPONENTS if all(c in each.found for each in known)]
    labels = np.array([success[each.bug_id] for each in known], dtype=int)
    if len(known) < 50 or len(set(labels.tolist())) < 2:
        raise ValueError("50 reports with both outcomes are needed")
    features = np.array([[each.found[c] for c in columns] for each in known], dtype=int)
    runs = [_forest(features, labels, seed + number) for number in range(FORESTS)]
    values: dict[str, list[float]] = {
        c: [float(importance[i]) for _, importance in runs] for i, c in enumerate(columns)
    }
    ranks = scott_knott_esd(values)
    return Analysis(
        reports=len(known),
        successes=int(labels.sum()),
        auc=float(np.mean([auc for auc, _ in runs])),
        importances=tuple(
            Importance(component=c, rank=ranks[c], mean=float(np.mean(values[c])), values=tuple(values[c]))
            for c in sorted(columns, key=lambda c: (ranks[c], -float(np.mean(values[c]))))
        ),
        presence=shares(known),
        success_with={c: _rate(labels[features[:, i] == 1]) for i, c in enumerate(columns)},
        success_without={c: _rate(labels[features[:, i] == 0]) for i, c in enumerate(columns)},
    )


def _forest(features: Any, labels: Any, seed: int) -> tuple[float, Any]:
    # Two seconds to import: not for who only asks for --help.
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.inspection import permutation_importance
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import train_test_split

    train_x, test_x, train_y, test_y = train_test_split(
        features, labels, test_size=0.2, random_state=seed, stratify=labels
    )
    forest = RandomForestClassifier(n_estimators=TREES, random_state=seed, min_samples_leaf=2).fit(
        train_x, train_y
    )
    auc = float(roc_auc_score(test_y, forest.predict_proba(test_x)[:, 1]))
    found = permutation_importance(
        forest, test_x, test_y, scoring="roc_auc", n_repeats=_REPEATS, random_state=seed
    )
    return auc, found.importances_mean


def _rate(labels: Any) -> float | None:
    return float(labels.mean()) if len(labels) else None
