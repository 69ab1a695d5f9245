"""``bouncer-eval calibrate``: lines, maps and promises that hold on repositories they were not fitted on, told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bot.calibration import reliability, risk
from bot.core.errors import OperatorError
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.metrics import Tasks
from evaluation.bouncerbench.tasks import INPUT, Kind
from evaluation.bouncerbench.voices import alone
from evaluation.calibration import thresholds
from evaluation.calibration.thresholds import Cases, Coverage, Proof
from evaluation.report.figures import Curve, curves
from evaluation.report.page import Cell, Figure, Section, Table, percentage
from evaluation.statistics import wilson

Split = Literal["repository", "random"]

#: Groups of a random split.
_FOLDS = 5
#: What a map in BOUNCER_MAPS_FILE is for, by benchmark.
PURPOSE: Mapping[Kind, str] = {"bouncerbench-input": "triage", "bouncerbench-output": "verify"}


def models_as_cases(
    tasks: Tasks, models: Mapping[str, Mapping[str, Answer]], split: Split = "repository", seed: int = 0
) -> list[Cases]:
    """Every model's answers, and of several the mean too. Raises OperatorError without two groups."""
    group = {task.instance_id: task.repo for task in tasks}
    if split == "random":
        parts = np.random.default_rng(seed).integers(1, _FOLDS + 1, len(tasks))
        group = {task.instance_id: f"part {part}" for task, part in zip(tasks, parts, strict=True)}
    found = [thresholds.cases(name, tasks, answers, group) for name, answers in models.items()]
    if len(models) > 1:
        name = f"mean of {len(models)}"
        found.append(thresholds.cases(name, tasks, thresholds.mean(name, tasks, list(models.values())), group))
    if all(len(each.groups) < 2 for each in found):
        raise OperatorError(
            "the tasks are of one repository: there is no other to prove a line on; --split random"
        )
    return [each for each in found if len(each.groups) > 1]


def sections(kind: Kind, found: Sequence[Cases], harm: float, seed: int = 0) -> list[Section]:
    """Lines, maps, and how often the promise is broken."""
    subjects = "issues" if kind == INPUT else "patches"
    return [_lines(found, harm, subjects), _maps(found), _coverage(found, harm, seed)]


def _lines(found: Sequence[Cases], harm: float, subjects: str) -> Section:
    rows: list[tuple[Cell, ...]] = []
    each_group: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for one in found:
        proofs = thresholds.proved(one, thresholds.promised(harm))
        row, data[one.name] = _line_row(one, proofs)
        rows.append(row)
        each_group += [_proof_row(one, each) for each in proofs]
    table = Table(
        ("model", "cases", "AUC", "F_m, usual line", "F_m, fitted line", "promise given", "harm %", "R_b %"),
        tuple(rows),
        title="Proved on repositories that were held out",
        note="harm and R_b: good and bad ones bounced by the promised line, with 95 % Wilson intervals.",
    )
    groups = Table(
        ("model, held out", "line", "good", "bounced", "harm %", "bad", "bounced"),
        tuple(each_group),
        title="Each repository",
        folded=True,
    )
    told = (
        "Each repository is held out in turn: its line comes from all others. The usual line is the paper's "
        "label (or 50 %), the fitted one has the best F_m elsewhere. "
        f"Promise: at most {100 * harm:g} % of the good {subjects} bounce, as sure as that many other "
        "repositories can make it: see strict below."
    )
    return Section("Lines fitted on the other repositories", (told,), (table, groups), data={"lines": data})


def _line_row(one: Cases, proofs: Sequence[Proof]) -> tuple[tuple[Cell, ...], dict[str, Any]]:
    """One model's row, and the same as JSON."""
    papers = risk.line_at(one.every, 66 if one.by_label else 50)
    usual = thresholds.macro_f(papers.good, papers.harmed, papers.bad, papers.caught)
    fitted, auc = thresholds.pooled_f(thresholds.proved(one, thresholds.best_f)), thresholds.ranking(one)
    harmed, good = sum(each.harmed for each in proofs), sum(each.good for each in proofs)
    caught, bad = sum(each.caught for each in proofs), sum(each.bad for each in proofs)
    given = f"{sum(each.line is not None for each in proofs)} of {len(proofs)}"
    shares = (wilson(harmed, good).percent(), wilson(caught, bad).percent())
    return (one.name, len(one.every), auc, usual, fitted, given, *shares), {
        "auc": auc,
        "by_label": one.by_label,
        "left_out": one.left_out,
        "f_m_usual_line": usual,
        "f_m_fitted_line": fitted,
        "promise": [asdict(each) for each in proofs],
    }


def _proof_row(one: Cases, each: Proof) -> tuple[Cell, ...]:
    share = percentage(each.harm)
    return (f"{one.name}, {each.held_out}", each.line, each.good, each.harmed, share, each.bad, each.caught)


def _maps(found: Sequence[Cases]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for one in found:
        fitted = thresholds.calibrated(one)
        rows.append((one.name, *fitted.error.values(), *fitted.brier.values()))
        data[one.name] = asdict(fitted)
    kinds = ("as said", "isotonic", "Platt")
    diagrams = [
        Curve(one.name, [0.0, *(each.said for each in bins)], [0.0, *(each.true for each in bins)])
        for one in found
        if not one.by_label and (bins := reliability.bins(one.every))
    ]
    shown: tuple[Figure, ...] = ()
    if diagrams:
        perfect = Curve("perfect", [0.0, 1.0], [0.0, 1.0], marked=False)
        caption = "Reliability: what was said against what came true, in ten bins."
        shown = (
            Figure(lambda: curves([*diagrams, perfect], xlabel="probability said", ylabel="came true"), caption),
        )
    table = Table(
        ("model", *(f"error, {kind}" for kind in kinds), *(f"Brier, {kind}" for kind in kinds)),
        tuple(rows),
        title="Calibration: expected calibration error and Brier score, each map fitted on the other repositories",
        note="Where answers carry no probability, labels stand for 0, 33, 66 and 100 %.",
    )
    return Section("Probabilities", tables=(table,), figures=shown, data={"maps": data})


def _coverage(found: Sequence[Cases], harm: float, seed: int) -> Section:
    summary: list[tuple[Cell, ...]] = []
    full: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for one in found:
        rows = thresholds.coverage(one, harm, seed=seed)
        data[one.name] = [asdict(each) for each in rows]
        full += [_coverage_row(one, each) for each in rows]
        summary.append(
            (
                one.name,
                _percents([each.own_given for each in rows]),
                _percents([each.own_broken for each in rows]),
                _percents([each.given for each in rows]),
                _percents([each.broken_elsewhere for each in rows]),
                _percents([each.strict_given for each in rows]),
                _percents([each.strict_broken for each in rows]),
                _percents([each.broken_here for each in rows]),
            )
        )
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
    told = (_promises(min(len(one.groups) for one in found) - 1, harm),)
    return Section("How often the promise is broken", told, tables, data={"coverage": data})


def _promises(others: int, harm: float) -> str:
    """What each way to draw a line promises, and what that rests on."""
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


def _coverage_row(one: Cases, each: Coverage) -> tuple[Cell, ...]:
    def percent(*shares: float) -> tuple[str, ...]:
        return tuple(f"{100 * share:.1f}" for share in shares)

    return (
        f"{one.name}, {each.held_out}",
        each.good_here,
        *percent(each.own_given, each.own_broken),
        each.good_elsewhere,
        *percent(each.given, each.broken_elsewhere),
        *percent(each.strict_broken, each.strict_harm, each.broken_here, each.harm_here),
    )


def _percents(shares: Sequence[float]) -> str:
    return f"{100 * sum(shares) / len(shares):.1f} [{100 * max(shares):.1f}]"


def write_maps(
    file: Path, kind: Kind, tasks: Tasks, models: Mapping[str, Mapping[str, Answer]], form: str
) -> list[str]:
    """Add a map for each model, and for each voice behind one, to a file; returns their names.

    Raises OperatorError where the file holds something else, or nothing can be fitted.
    """
    content: dict[str, dict[str, list[tuple[float, float]]]] = {}
    try:
        if file.is_file():
            content = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or not all(isinstance(each, dict) for each in content.values()):
                raise ValueError
    except (OSError, ValueError):
        raise OperatorError(f"--maps {file}: holds no maps") from None
    speakers: dict[str, Mapping[str, Answer]] = {}
    for name, answers in models.items():
        speakers |= alone(kind, answers) or {name: dict(answers)}
    written: list[str] = []
    for name, answers in speakers.items():
        found = thresholds.cases(name, tasks, answers)
        if found.every and not found.by_label:
            content.setdefault(name, {})[PURPOSE[kind]] = thresholds.points(found.every, form)
            written.append(name)
    if not written:
        raise OperatorError("--maps: no answers with a probability, nothing to map")
    try:
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"--maps {file}: {error.strerror}") from None
    return written
