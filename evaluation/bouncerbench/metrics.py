"""The paper's metrics (BouncerBench, II.B and IV.C), each with a bootstrap interval over tasks.

Missing answers. By default a task without an answer stays in every denominator of its class and is right in none:
it lowers recall, F and R_b, adds nothing to I-Score and O-Score, and agrees with no annotator. ``accept`` is the
authors' convention (no answer lets the subject pass). ``exclude`` scores the answered tasks alone. Rank
correlation and AUC need a label or probability and are taken over the tasks that have one; ``auc_tasks`` is how
many the AUC is over. Whatever is chosen, the counts are shown.

O-Score, as published, has quirks worth knowing. Each decision is weighed by the share of tests that pass: turning
away a patch that passes nothing earns nothing and letting it through costs nothing, while a patch that fails one
test of a thousand counts almost fully. A bouncer that lets everything pass therefore scores about the share of
correct patches minus the mean pass share of the wrong ones. Our ``pass_fraction`` of a correct patch is 1 by
definition; if a wrong patch's share is not known, the score is not defined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bot.calibration.risk import BINS
from bot.core.errors import OperatorError
from evaluation import statistics
from evaluation.benchmark import Missing
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.tasks import INPUT, InputTask, Kind, OutputTask
from evaluation.statistics import USUAL, Array, Counts, Estimate, Resampling

Tasks = Sequence[InputTask | OutputTask]

ACCEPT, BOUNCE, NOTHING = 0, 1, 2
NO_LABEL = 4


#: Figure -> what it is called, and whether it is a share that is shown in percent.
FIGURES: dict[str, tuple[str, bool]] = {
    "f_m": ("F_m", False),
    "i_score": ("I-Score", False),
    "o_score": ("O-Score", False),
    "r_b": ("R_b %", True),
    "fnr_a": ("FNR_a %", True),
    "fpr_a": ("FPR_a %", True),
    "precision_bounce": ("precision, bounce %", True),
    "f_bounce": ("F, bounce", False),
    "precision_accept": ("precision, accept %", True),
    "recall_accept": ("recall, accept %", True),
    "f_accept": ("F, accept", False),
    "raw_agreement": ("agreement with annotators %", True),
    "cohen_kappa": ("Cohen's kappa", False),
    "spearman_rho": ("Spearman's rho", False),
    "auc": ("AUC (of the probability)", False),
    "auc_of_label": ("AUC (of the label)", False),
    "calibration_error": ("expected calibration error", False),
    "brier": ("Brier score", False),
}


def as_cell(figure: str, estimate: Estimate) -> str:
    return estimate.percent() if FIGURES[figure][1] else estimate.text()


@dataclass(frozen=True)
class Pair:
    """A task with known truth beside what was answered, as codes."""

    instance_id: str
    truth: int
    predicted: int
    quality: int | None
    pass_fraction: float | None
    level: int
    p_bounce: float | None


@dataclass(frozen=True)
class Tally:
    """Counts of tasks, and of the answers to them."""

    tasks: int
    unlabelled_tasks: int
    answered: int
    missing: int
    errors: int
    unknown_instances: int


@dataclass(frozen=True)
class Metrics:
    """One model's figures on one task list; ``auc_tasks`` answers have the probability or label of the AUC."""

    benchmark: str
    missing_counts_as: Missing
    tally: Tally
    counts: dict[str, int]
    estimates: dict[str, Estimate]
    auc_tasks: int
    pairs: tuple[Pair, ...] = field(repr=False)

    @property
    def n(self) -> int:
        return len(self.pairs)

    def value(self, name: str) -> float | None:
        return self.estimates[name].value if name in self.estimates else None

    @property
    def auc(self) -> float | None:
        """The AUC of the probability, or of the label if answers have no probability."""
        return self.value("auc" if "auc" in self.estimates else "auc_of_label")

    def as_cell(self, name: str) -> str:
        return as_cell(name, self.estimates.get(name, Estimate(None)))

    def as_json(self) -> dict[str, Any]:
        """Flat: ``n``, the four counts, every figure by name, and ``intervals``."""
        estimates = self.estimates.items()
        return {
            "benchmark": self.benchmark,
            "n": self.n,
            **self.counts,
            **{name: estimate.value for name, estimate in estimates},
            "auc_tasks": self.auc_tasks,
            **vars(self.tally),
            "missing_counts_as": self.missing_counts_as,
            "intervals": {
                name: [estimate.low, estimate.high] for name, estimate in estimates if estimate.low is not None
            },
        }


@dataclass(frozen=True)
class Scored:
    """One run's answers, or those of a file, with their figures."""

    name: str
    benchmark: Kind
    tasks: Tasks
    answers: Mapping[str, Answer]
    metrics: Metrics


def title_of(benchmark: Kind) -> str:
    return "Input bouncer" if benchmark == INPUT else "Output bouncer"


def score(
    benchmark: str,
    tasks: Tasks,
    answers: Mapping[str, Answer],
    missing: Missing = "count",
    how: Resampling = USUAL,
) -> Metrics:
    """Every figure of the paper for one model.

    Raises OperatorError without tasks or answers, and if no answer is about any of the tasks."""
    if not tasks or not answers:
        raise OperatorError("nothing to score: there are no " + ("tasks" if not tasks else "answers"))
    pairs, tally = pair(tasks, answers, missing)
    if not any(task.instance_id in answers for task in tasks):
        raise OperatorError(f"none of the {len(answers)} answers is about one of the {len(tasks)} tasks")
    if missing == "exclude" and not pairs:
        raise OperatorError(f"nothing to score: none of the {len(tasks)} tasks has a known label and an answer")
    statistic = Figures(pairs)
    estimates = statistics.bootstrap(statistic, len(pairs), how)
    cells = Counter((pair.truth, pair.predicted) for pair in pairs)
    counts = {
        "tp_bounce": cells[1, BOUNCE],
        "fp_bounce": cells[0, BOUNCE],
        "fn_bounce": cells[1, ACCEPT],
        "tn_bounce": cells[0, ACCEPT],
        "unanswered_bounce": cells[1, NOTHING],
        "unanswered_accept": cells[0, NOTHING],
    }
    return Metrics(benchmark, missing, tally, counts, estimates, statistic.ranked, tuple(pairs))


def pair(tasks: Tasks, answers: Mapping[str, Answer], missing: Missing) -> tuple[list[Pair], Tally]:
    """Tasks whose truth is known beside their answers; the others are counted."""
    pairs: list[Pair] = []
    answer_count = errors = unlabelled = 0
    for task in tasks:
        answer = answers.get(task.instance_id)
        has_answer = answer is not None and answer.bounce is not None
        answer_count += has_answer
        errors += answer is not None and answer.error is not None
        if task.bounce is None:
            unlabelled += 1
        elif has_answer or missing != "exclude":
            pairs.append(_pair(task, task.bounce, answer, missing))
    identities = {task.instance_id for task in tasks}
    unknown = sum(identity not in identities for identity in answers)
    return pairs, Tally(len(tasks), unlabelled, answer_count, len(tasks) - answer_count, errors, unknown)


def _pair(task: InputTask | OutputTask, truth: bool, answer: Answer | None, missing: Missing) -> Pair:
    predicted = ACCEPT if missing == "accept" else NOTHING
    if answer is not None and answer.bounce is not None:
        predicted = BOUNCE if answer.bounce else ACCEPT
    return Pair(
        instance_id=task.instance_id,
        truth=int(truth),
        predicted=predicted,
        quality=task.quality if isinstance(task, InputTask) else None,
        pass_fraction=task.pass_fraction if isinstance(task, OutputTask) else None,
        level=NO_LABEL if answer is None or answer.level is None else answer.level,
        p_bounce=None if answer is None else answer.p_bounce,
    )


class Figures:
    """All figures as functions of resampled task indices; see ``statistics.bootstrap``."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.truth = np.array([pair.truth for pair in pairs], dtype=np.int64)
        self.predicted = np.array([pair.predicted for pair in pairs], dtype=np.int64)
        self.level = np.array([pair.level for pair in pairs], dtype=np.int64)
        self.quality = _column([pair.quality for pair in pairs])
        self.fraction = _column([pair.pass_fraction for pair in pairs])
        self.probability = np.array([pair.p_bounce for pair in pairs], dtype=float)  # NaN for None
        #: +1 for a bounce, -1 for letting pass, 0 for no answer.
        self.sign = np.array([-1.0, 1.0, 0.0])[self.predicted]

    def __call__(self, draws: Counts) -> dict[str, Array]:
        table = statistics.contingency(self.truth, self.predicted, (2, 3), draws)
        figures = {
            "f_m": statistics.macro_f(table),
            "r_b": _rate(table, 1, BOUNCE),
            "fnr_a": _rate(table, 0, BOUNCE),
            "fpr_a": _rate(table, 1, ACCEPT),
        }
        for label, name in ((BOUNCE, "bounce"), (ACCEPT, "accept")):
            figures[f"precision_{name}"] = statistics.precision(table, label)
            figures[f"recall_{name}"] = statistics.recall(table, label)
            figures[f"f_{name}"] = statistics.f_measure(table, label)
        if self.quality is not None:
            figures |= self._on_annotations(draws, self.quality)
        if self.fraction is not None:
            figures["o_score"] = statistics.resampled_mean(
                self.sign * np.where(self.truth == 1, 1, -1) * self.fraction, draws
            )
        figures |= self._ranking(draws)
        figures |= self._calibration(draws)
        return figures

    def _calibration(self, draws: Counts) -> dict[str, Array]:
        """Brier score and expected calibration error, over the answers, if all of them carry a probability."""
        name, percent = self._ranks()
        if name != "auc":
            return {}
        is_answered = ~np.isnan(percent)
        percent = np.where(is_answered, percent, 0.0)
        probability = percent / 100
        weights = is_answered.astype(float)
        squares = statistics.resampled_mean(weights * (probability - self.truth) ** 2, draws)
        brier = statistics.ratio(squares, statistics.resampled_mean(weights, draws))
        places = np.minimum(BINS - 1, percent * BINS // 100)
        gap = np.zeros(len(draws))
        for place in range(BINS):
            inside = weights * (places == place)
            gap += np.abs((inside * (probability - self.truth))[draws].sum(axis=1))
        return {"brier": brier, "calibration_error": statistics.ratio(gap, weights[draws].sum(axis=1))}

    def _on_annotations(self, draws: Counts, quality: Array) -> dict[str, Array]:
        """I-Score, and agreement with the annotators if answers have labels."""
        figures = {"i_score": statistics.resampled_mean(2 / 3 * self.sign * (quality - 1.5), draws)}
        if len(self.level) and (self.level != NO_LABEL).any():
            # A fifth row, empty, makes "no label" a word that only the model uses.
            table = statistics.contingency(quality.astype(np.int64), self.level, (5, 5), draws)
            figures["raw_agreement"] = statistics.raw_agreement(table)
            figures["cohen_kappa"] = statistics.cohen_kappa(table)
            figures["spearman_rho"] = statistics.spearman_rho(table[:, :4, :4])
        return figures

    def _ranking(self, draws: Counts) -> dict[str, Array]:
        """AUC over the answered tasks: of the probability if all of them have one, else of the label."""
        name, scores = self._ranks()
        is_ranked = ~np.isnan(scores)
        if not is_ranked.any():
            return {}
        order, position = np.unique(scores[is_ranked], return_inverse=True)
        # Tasks without an answer get a row of their own, cut off again: they have no rank.
        rows = np.full(len(scores), len(order), dtype=np.int64)
        rows[is_ranked] = position
        table = statistics.contingency(rows, self.truth, (len(order) + 1, 2), draws)
        return {name: statistics.auc(table[:, :-1])}

    def _ranks(self) -> tuple[str, Array]:
        """Return the name of the AUC and the value of every task; NaN for a task without one."""
        levels = np.where(self.level == NO_LABEL, np.nan, self.level.astype(float))
        is_answered = ~np.isnan(levels) | ~np.isnan(self.probability)
        if is_answered.any() and not np.isnan(self.probability[is_answered]).any():
            return "auc", self.probability
        return "auc_of_label", levels

    @property
    def ranked(self) -> int:
        """How many tasks the AUC is over."""
        return int((~np.isnan(self._ranks()[1])).sum())


def _rate(table: Counts, truth: int, predicted: int) -> Array:
    return statistics.ratio(table[:, truth, predicted], table[:, truth].sum(-1))


def _column(values: Sequence[float | None]) -> Array | None:
    """A column as floats; None if it is empty or has gaps."""
    if not values or any(value is None for value in values):
        return None
    return np.array(values, dtype=float)
