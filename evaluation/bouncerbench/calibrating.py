"""``bouncer-eval calibrate``: lines, maps and promises that hold on repositories they were not fitted on, told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bot.calibration import maps, risk
from bot.errors import OperatorError
from evaluation.bouncerbench import lines
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.lines import Cases, Coverage, Proof
from evaluation.bouncerbench.tasks import INPUT, InputTask, Kind, OutputTask
from evaluation.bouncerbench.voices import alone
from evaluation.report.figures import Curve, curves
from evaluation.report.page import Cell, Figure, Section, Table, percentage
from evaluation.statistics import wilson

Tasks = Sequence[InputTask | OutputTask]
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
    found = [lines.cases(name, tasks, answers, group) for name, answers in models.items()]
    if len(models) > 1:
        name = f"mean of {len(models)}"
        found.append(lines.cases(name, tasks, lines.mean(name, tasks, list(models.values())), group))
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
        every, proofs = one.every, lines.proved(one, lines.promised(harm))
        papers = risk.line_at(every, 66 if one.by_label else 50)
        best = lines.proved(one, lines.best_f)
        harmed, good = sum(each.harmed for each in proofs), sum(each.good for each in proofs)
        caught, bad = sum(each.caught for each in proofs), sum(each.bad for each in proofs)
        rows.append(
            (
                one.name,
                len(every),
                lines.ranking(one),
                lines.macro_f(papers.good, papers.harmed, papers.bad, papers.caught),
                lines.pooled_f(best),
                f"{sum(each.line is not None for each in proofs)} of {len(proofs)}",
                wilson(harmed, good).text(100.0, 1),
                wilson(caught, bad).text(100.0, 1),
            )
        )
        each_group += [_proof_row(one, each) for each in proofs]
        data[one.name] = {
            "auc": lines.ranking(one),
            "by_label": one.by_label,
            "left_out": one.left_out,
            "f_m_usual_line": lines.macro_f(papers.good, papers.harmed, papers.bad, papers.caught),
            "f_m_fitted_line": lines.pooled_f(best),
            "promise": [asdict(each) for each in proofs],
        }
    promise = f"{100 * harm:g} %"
    return Section(
        "Lines fitted on the other repositories",
        (
            "Each repository is held out in turn: its line comes from all others. The usual line is the paper's "
            "label (or 50 %), the fitted one has the best F_m elsewhere. "
            f"Promise: at most {promise} of the good {subjects} bounce, 95 % sure.",
        ),
        (
            Table(
                (
                    "model",
                    "cases",
                    "AUC",
                    "F_m, usual line",
                    "F_m, fitted line",
                    "promise given",
                    "harm %",
                    "R_b %",
                ),
                tuple(rows),
                title="Proved on repositories that were held out",
                note="harm and R_b: good and bad ones bounced by the promised line, with 95 % Wilson intervals.",
            ),
            Table(
                ("model, held out", "line", "good", "bounced", "harm %", "bad", "bounced"),
                tuple(each_group),
                title="Each repository",
                folded=True,
            ),
        ),
        data={"lines": data},
    )


def _proof_row(one: Cases, each: Proof) -> tuple[Cell, ...]:
    share = percentage(each.harm)
    return (f"{one.name}, {each.held_out}", each.line, each.good, each.harmed, share, each.bad, each.caught)


def _maps(found: Sequence[Cases]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    data: dict[str, Any] = {}
    for one in found:
        fitted = lines.calibrated(one)
        rows.append((one.name, *fitted.error.values(), *fitted.brier.values()))
        data[one.name] = asdict(fitted)
    kinds = ("as said", "isotonic", "Platt")
    diagrams = [
        Curve(one.name, [0.0, *(each.said for each in bins)], [0.0, *(each.true for each in bins)])
        for one in found
        if not one.by_label and (bins := maps.reliability(one.every))
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
        rows = lines.coverage(one, harm, seed=seed)
        data[one.name] = [asdict(each) for each in rows]
        full += [_coverage_row(one, each) for each in rows]
        summary.append(
            (
                one.name,
                _percents([each.given for each in rows]),
                _percents([each.broken_elsewhere for each in rows]),
                _percents([each.own_given for each in rows]),
                _percents([each.own_broken for each in rows]),
                _percents([each.broken_here for each in rows]),
                _percents([each.harm_here for each in rows]),
            )
        )
    return Section(
        "How often the promise is broken",
        (
            f"{lines.RESAMPLES:,} resamples for each repository held out; broken: more than {100 * harm:g} % "
            "of the good ones bounce. The promise speaks of a future that is like the past: drawn from the "
            "same repositories (same), or from the repository's own cases (own); it may be broken in 5 % of "
            "resamples. On a repository that was held out nothing is promised: that column shows the shift "
            "between repositories, and why each of them is to be calibrated on its own history.",
        ),
        (
            Table(
                ("model", "same: given %", "broken %", "own: given %", "broken %", "held out: broken %", "harm %"),
                tuple(summary),
                title="Coverage of the promise by simulation",
                note="Mean over repositories, in brackets the highest. A promise that is not given is not broken.",
            ),
            Table(
                ("model, held out", "good elsewhere", "good here", "given %", "same: broken %", "own: given %",
                 "own: broken %", "held out: broken %", "held out: harm %"),
                tuple(full),
                title="Coverage, each repository",
                folded=True,
            ),
        ),
        data={"coverage": data},
    )  # fmt: skip


def _coverage_row(one: Cases, each: Coverage) -> tuple[Cell, ...]:
    shares = (
        each.given, each.broken_elsewhere, each.own_given, each.own_broken, each.broken_here, each.harm_here,
    )  # fmt: skip
    name = f"{one.name}, {each.held_out}"
    return (name, each.good_elsewhere, each.good_here, *(f"{100 * share:.1f}" for share in shares))


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
        found = lines.cases(name, tasks, answers)
        if found.every and not found.by_label:
            content.setdefault(name, {})[PURPOSE[kind]] = lines.points(found.every, form)
            written.append(name)
    if not written:
        raise OperatorError("--maps: no answers with a probability, nothing to map")
    try:
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"--maps {file}: {error.strerror}") from None
    return written
