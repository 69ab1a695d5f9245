"""``bouncer-eval calibrate``: tables of lines, maps and promises, on repositories they were not fitted on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bot.calibration import risk
from bot.core.errors import OperatorError
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.metrics import Tasks
from evaluation.bouncerbench.tasks import INPUT, Kind
from evaluation.bouncerbench.voices import alone
from evaluation.calibration import thresholds
from evaluation.calibration.thresholds import Cases, Proof
from evaluation.report.figures import Curve, curves
from evaluation.report.page import Cell, Figure, Section, Table, percentage
from evaluation.run.lines import write_result
from evaluation.statistics import wilson

Split = Literal["repository", "random"]

#: Groups of a random split.
_FOLDS = 5
#: What a map in BOUNCER_MAPS_FILE is for, by benchmark.
PURPOSE: Mapping[Kind, str] = {"bouncerbench-input": "triage", "bouncerbench-output": "verify"}


def models_as_cases(
    tasks: Tasks, models: Mapping[str, Mapping[str, Answer]], split: Split = "repository", seed: int = 0
) -> list[Cases]:
    """Every model's answers, and of several the mean too; those of fewer than two groups are left out."""
    group = {task.instance_id: task.repo for task in tasks}
    if split == "random":
        parts = np.random.default_rng(seed).integers(1, _FOLDS + 1, len(tasks))
        group = {task.instance_id: f"part {part}" for task, part in zip(tasks, parts, strict=True)}
    cases = [thresholds.cases(name, tasks, answers, group) for name, answers in models.items()]
    if len(models) > 1:
        together = thresholds.mean(tasks, list(models.values()))
        cases.append(thresholds.cases(f"mean of {len(models)}", tasks, together, group))
    return [case for case in cases if len(case.groups) > 1]


def sections(kind: Kind, cases: Sequence[Cases], harm: float, seed: int = 0) -> list[Section]:
    subjects = "issues" if kind == INPUT else "patches"
    return [_lines(cases, harm, subjects), _maps(cases), _coverage(cases, harm, seed)]


def _lines(cases: Sequence[Cases], harm: float, subjects: str) -> Section:
    rows: list[tuple[Cell, ...]] = []
    group_rows: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for model_cases in cases:
        proofs = thresholds.proved(model_cases, thresholds.promised(harm))
        row, data[model_cases.name] = _line_row(model_cases, proofs)
        rows.append(row)
        for proof in proofs:
            good, bad = (proof.good, proof.harmed, percentage(proof.harm)), (proof.bad, proof.caught)
            group_rows.append((f"{model_cases.name}, {proof.held_out}", proof.line, *good, *bad))
    table = Table(
        ("model", "cases", "AUC", "F_m, usual line", "F_m, fitted line", "promise given", "harm %", "R_b %"),
        tuple(rows),
        title="Proved on repositories that were held out",
        note="harm and R_b: good and bad ones bounced by the promised line, with 95 % Wilson intervals.",
    )
    groups = Table(
        ("model, held out", "line", "good", "bounced", "harm %", "bad", "bounced"),
        tuple(group_rows),
        title="Each repository",
        folded=True,
    )
    paragraph = (
        "Each repository is held out in turn: its line comes from all others. The usual line is the paper's "
        "label (or 50 %), the fitted one has the best F_m elsewhere. "
        f"Promise: at most {100 * harm:g} % of the good {subjects} bounce, as sure as that many other "
        "repositories can make it: see strict below."
    )
    return Section("Lines fitted on the other repositories", (paragraph,), (table, groups), data={"lines": data})


def _line_row(model_cases: Cases, proofs: Sequence[Proof]) -> tuple[tuple[Cell, ...], dict[str, Any]]:
    papers = risk.line_at(model_cases.every, 66 if model_cases.by_label else 50)
    usual = thresholds.macro_f(papers.good, papers.harmed, papers.bad, papers.caught)
    fitted = thresholds.pooled_f(thresholds.proved(model_cases, thresholds.best_f))
    auc = thresholds.ranking(model_cases)
    harmed, good = sum(proof.harmed for proof in proofs), sum(proof.good for proof in proofs)
    caught, bad = sum(proof.caught for proof in proofs), sum(proof.bad for proof in proofs)
    promises_given = f"{sum(proof.line is not None for proof in proofs)} of {len(proofs)}"
    shares = (wilson(harmed, good).percent(), wilson(caught, bad).percent())
    return (model_cases.name, len(model_cases.every), auc, usual, fitted, promises_given, *shares), {
        "auc": auc,
        "by_label": model_cases.by_label,
        "left_out": model_cases.left_out,
        "f_m_usual_line": usual,
        "f_m_fitted_line": fitted,
        "promise": [asdict(proof) for proof in proofs],
    }


def _maps(cases: Sequence[Cases]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for model_cases in cases:
        fitted = thresholds.calibrated(model_cases)
        rows.append((model_cases.name, *fitted.error.values(), *fitted.brier.values()))
        data[model_cases.name] = asdict(fitted)
    kinds = ("as said", "isotonic", "Platt")
    diagrams = [
        Curve(
            model_cases.name, [0.0, *(bin_.predicted for bin_ in bins)], [0.0, *(bin_.observed for bin_ in bins)]
        )
        for model_cases in cases
        if not model_cases.by_label and (bins := risk.bins(model_cases.every))
    ]
    figures: tuple[Figure, ...] = ()
    if diagrams:
        perfect = Curve("perfect", [0.0, 1.0], [0.0, 1.0], has_points=False)
        caption = "Reliability: what was said against what came true, in ten bins."
        figures = (
            Figure(lambda: curves([*diagrams, perfect], xlabel="probability said", ylabel="came true"), caption),
        )
    table = Table(
        ("model", *(f"error, {kind}" for kind in kinds), *(f"Brier, {kind}" for kind in kinds)),
        tuple(rows),
        title="Calibration: expected calibration error and Brier score, each map fitted on the other repositories",
        note="Where answers carry no probability, labels stand for 0, 33, 66 and 100 %.",
    )
    return Section("Probabilities", tables=(table,), figures=figures, data={"maps": data})


#: The columns of the summary of coverage.
_SUMMARY = (
    "own_given", "own_broken", "promised", "broken_elsewhere", "strict_given", "strict_broken", "broken_here",
)  # fmt: skip


def _coverage(cases: Sequence[Cases], harm: float, seed: int) -> Section:
    summary: list[tuple[Cell, ...]] = []
    full: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for model_cases in cases:
        rows = thresholds.coverage(model_cases, harm, seed=seed)
        data[model_cases.name] = [asdict(row) for row in rows]
        for row in rows:
            own = (percentage(row.own_given), percentage(row.own_broken))
            same = (percentage(row.promised), percentage(row.broken_elsewhere))
            others = map(percentage, (row.strict_broken, row.strict_harm, row.broken_here, row.harm_here))
            name = f"{model_cases.name}, {row.held_out}"
            full.append((name, row.good_here, *own, row.good_elsewhere, *same, *others))
        columns = ([getattr(row, field) for row in rows] for field in _SUMMARY)
        summary.append((model_cases.name, *map(_percents, columns)))
    tables = (
        Table(
            ("model", "own: given %", "broken %", "same: given %", "broken %", "strict: given %", "broken %",
             "moved: broken %"),
            tuple(summary),
            title="Coverage of the promise by simulation",
            note="Mean over repositories, in brackets the highest. A promise that is not given is not broken.",
        ),
        Table(
            ("model, held out", "good here", "own: given %", "broken %", "good elsewhere", "same: given %",
             "broken %", "strict: broken %", "harm %", "moved: broken %", "harm %"),
            tuple(full),
            title="Coverage, each repository",
            folded=True,
        ),
    )  # fmt: skip
    paragraphs = (_promises(min(len(model_cases.groups) for model_cases in cases) - 1, harm),)
    return Section("How often the promise is broken", paragraphs, tables, data={"coverage": data})


def _promises(others: int, harm: float) -> str:
    """Return a paragraph about the guarantee of each kind of threshold."""
    return (
        f"{thresholds.RESAMPLES:,} resamples for each repository held out; broken: more than {100 * harm:g} % of "
        "its good ones bounce. Own: the line comes from the repository's own cases, as bouncer calibrate draws "
        "it, 95 % sure where the cases of one repository are exchangeable. Same: from the others together, for a "
        "future drawn from these. Strict: from the others, for the one held out, where whole repositories are "
        f"exchangeable (Dunn, Wasserman and Ramdas 2022); with {others} of them that promise is "
        f"{100 * others / (others + 1):.0f} % sure at most, 95 % takes {thresholds.repositories_needed()}. "
        "Moved: the line of same on the one held out, which promises nothing there: what breaks it is the "
        "shift between repositories."
    )


def _percents(shares: Sequence[float]) -> str:
    return f"{100 * sum(shares) / len(shares):.1f} [{100 * max(shares):.1f}]"


def write_maps(
    file: Path, kind: Kind, tasks: Tasks, models: Mapping[str, Mapping[str, Answer]], form: str
) -> list[str]:
    """Add a map for each model, and for each voice behind one, to a file; returns their names.

    Raises OperatorError if the file holds something else, or nothing can be fitted.
    """
    content: dict[str, dict[str, list[tuple[float, float]]]] = {}
    try:
        if file.is_file():
            content = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or not all(isinstance(maps, dict) for maps in content.values()):
                raise ValueError
    except (OSError, ValueError):
        raise OperatorError(f"--maps {file}: holds no maps") from None
    speakers: dict[str, Mapping[str, Answer]] = {}
    for name, answers in models.items():
        speakers |= alone(kind, answers) or {name: dict(answers)}
    names: list[str] = []
    for name, answers in speakers.items():
        own_cases = thresholds.cases(name, tasks, answers)
        if own_cases.every and not own_cases.by_label:
            content.setdefault(name, {})[PURPOSE[kind]] = thresholds.points(own_cases.every, form)
            names.append(name)
    if not names:
        raise OperatorError("--maps: no answers with a probability, nothing to map")
    write_result(file, json.dumps(content, indent=1) + "\n")
    return names
