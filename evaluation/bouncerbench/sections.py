"""BouncerBench's scores as tables and figures: beside the paper's, by line and length, and in a chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from bot.core.text import amount
from evaluation.benchmark import Scoring
from evaluation.bouncerbench import paper
from evaluation.bouncerbench.chain import chain, chain_section, with_annotations
from evaluation.bouncerbench.compare import compare, comparison_section
from evaluation.bouncerbench.metrics import FIGURES, Metrics, Scored, Tasks, title_of
from evaluation.bouncerbench.operating import lengths_section, lines_section, points_of, risk_coverage
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, InputTask, Kind, OutputTask
from evaluation.bouncerbench.voices import section as voices_section
from evaluation.calibration import report as calibration
from evaluation.report.page import Cell, Section, Table, percentage
from evaluation.statistics import Resampling, wilson

#: Runs of one bouncer that are compared pair by pair; with more, each is compared with the first.
ALL_PAIRS = 3
#: The share of harm that a report looks at.
HARM = 0.05

_MISSING = {"count": "counted as never right", "accept": "counted as passes", "exclude": "left out"}


def on_all(scored: Sequence[Scored], scoring: Scoring) -> list[Section]:
    """Every section about these scores, of one bouncer or of both."""
    sections: list[Section] = []
    for kind in (INPUT, OUTPUT):
        mine = [run for run in scored if run.benchmark == kind]
        if mine:
            sections += [*on_one(kind, mine), *promises(kind, mine, scoring.seed)]
        pairs = combinations(mine, 2) if len(mine) <= ALL_PAIRS else ((mine[0], other) for other in mine[1:])
        for first, second in pairs:
            comparison = compare(first.tasks, first.answers, second.answers, Resampling(scoring.seed))
            sections.append(comparison_section(first.name, second, comparison))
    return [*sections, *_chains(scored)]


def on_one(kind: Kind, scored: Sequence[Scored]) -> list[Section]:
    """Scores, lines, lengths, and what the tasks are like, for one bouncer."""
    parts = (scores_section(kind, scored), lines_section(kind, scored), lengths_section(kind, scored))
    about = labels_section(scored[0].tasks) if kind == INPUT else failing_section(scored)
    voices = (voices_section(kind, run.name, run.tasks, run.answers, run.metrics) for run in scored)
    return [part for part in (*parts, *voices, about) if part is not None]


def promises(kind: Kind, scored: Sequence[Scored], seed: int) -> list[Section]:
    """Return the calibration sections; none if the answered tasks are of a single repository."""
    longest = max(scored, key=lambda run: len(run.tasks))
    same = [run for run in scored if run.tasks == longest.tasks]
    cases = calibration.models_as_cases(longest.tasks, {run.name: run.answers for run in same})
    return calibration.sections(kind, cases, HARM, seed) if cases else []


def as_json(scored: Scored) -> dict[str, Any]:
    """Every figure, the area under the risk-coverage curve, and the operating points."""
    curve = risk_coverage(scored.tasks, scored.answers)
    figures = ("f_m", "r_b", "fnr_a", "i_score", "o_score")
    return {
        **scored.metrics.as_json(),
        "area_under_risk_coverage": None if curve is None else curve.area,
        "operating_points": [
            {
                "line": point.name,
                "bounced_share": point.bounced,
                "wrong_share_passed": point.wrong_share_passed,
                **{figure: point.metrics.value(figure) for figure in figures},
            }
            for point in points_of(scored)
        ],
    }


def scores_section(benchmark: Kind, runs: Sequence[Scored]) -> Section:
    """Table II or III with ours on top, then every figure with its interval."""
    is_input = benchmark == INPUT
    agreement = ("agree %", "kappa", "rho") if is_input else ()
    header = ("model", "tasks", "F_m", "I-Score" if is_input else "O-Score", "R_b %", "FNR_a %", "AUC", *agreement)
    ours = [_scores_row(run) for run in runs]
    total = paper.TASKS[benchmark][0]
    published: list[tuple[Cell, ...]] = []
    for row in paper.ROWS[benchmark]:
        agreed = paper.AGREEMENT.get(row.model)
        quoted = (None,) * 3 if agreed is None else (percentage(agreed[0]), *agreed[1:])
        rates = (percentage(row.r_b), percentage(row.fnr_a))
        name = f"{row.model} (paper)"
        published.append((name, total, row.f_m, row.score, *rates, None, *(quoted if is_input else ())))
    beside = Table(
        header,
        (*ours, *published),
        title=f"Beside the paper's table {'II' if is_input else 'III'}",
        quoted_from=len(ours),
        note=f"Quoted from the paper, {total:,} tasks.",
    )
    figures = [figure for figure in FIGURES if any(figure in run.metrics.estimates for run in runs)]
    every = Table(
        ("figure", *(run.name for run in runs)),
        tuple((FIGURES[figure][0], *(run.metrics.as_cell(figure) for run in runs)) for figure in figures),
        title="Every figure",
        note="In brackets: 95 % bootstrap intervals over tasks.",
    )
    lines = [f"{run.name}: {tally_line(run.metrics)}" for run in runs]
    if not is_input and any(run.metrics.value("o_score") is None for run in runs):
        lines.append("O-Score is not defined: the share of passing tests is not known for every wrong patch")
    data = {"scores": {run.name: run.metrics.as_json() for run in runs}}
    return Section(title_of(benchmark), tuple(f"{line}." for line in lines), (beside, every), data=data)


def _scores_row(run: Scored) -> tuple[Cell, ...]:
    value = run.metrics.value
    is_input = run.benchmark == INPUT
    agreement = (
        (percentage(value("raw_agreement")), value("cohen_kappa"), value("spearman_rho")) if is_input else ()
    )
    score = value("i_score" if is_input else "o_score")
    rates = (percentage(value("r_b")), percentage(value("fnr_a")))
    return (run.name, run.metrics.n, value("f_m"), score, *rates, run.metrics.auc, *agreement)


def tally_line(metrics: Metrics) -> str:
    tally = metrics.tally
    parts = [
        f"{metrics.n} of {tally.tasks} tasks scored",
        f"{tally.answered} answered",
        f"{tally.missing} missing",
    ]
    if tally.missing:
        parts[-1] += f" ({_MISSING[metrics.missing_counts_as]})"
    if 0 < metrics.auc_tasks < metrics.n:
        parts.append(f"AUC over the {metrics.auc_tasks} that can be ranked")
    if tally.errors:
        parts.append(amount(tally.errors, "error"))
    if tally.unlabelled_tasks:
        tasks = amount(tally.unlabelled_tasks, "task")
        parts.append(f"{tasks} of unknown truth not scored: a part, no BouncerBench score")
    if tally.unknown_instances:
        parts.append(f"{amount(tally.unknown_instances, 'answer')} to other instances, ignored")
    return ", ".join(parts)


def labels_section(tasks: Tasks) -> Section | None:
    """Table I: the annotators' labels of the issues; None if there are none."""
    issues = [task for task in tasks if isinstance(task, InputTask)]
    kinds: dict[str, Counter[str]] = {
        "issue specification": Counter(str(task.quality) for task in issues if task.quality is not None),
        "test validity": Counter(str(task.test_validity) for task in issues if task.test_validity is not None),
        "other issues": Counter(
            "yes" if issue.other_issues else "no" for issue in issues if issue.other_issues is not None
        ),
    }
    rows = tuple(
        (
            f"{kind}: {label}",
            counts[label] if counts else None,
            percentage(counts[label] / counts.total()) if counts else None,
            count,
            percentage(count / paper.TASKS[INPUT][0]),
        )
        for kind, counts in kinds.items()
        for label, count in paper.TABLE_I[kind].items()
    )
    if not kinds["issue specification"]:
        return None
    table = Table(
        ("label", "tasks", "%", "paper", "paper %"),
        rows,
        title="Annotation labels, beside the paper's table I",
        note="The most severe label of three people; a dash if these tasks lack it.",
    )
    return Section("Issues: labels of the annotators", tables=(table,))


def failing_section(runs: Sequence[Scored]) -> Section | None:
    """The incorrect patches by the kinds of tests that they fail (II.A.2); None if that is not known."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        for failing, published in paper.FAILING.items():
            mine = [task for task in run.tasks if isinstance(task, OutputTask) and task.failing == failing]
            answers = (run.answers.get(task.instance_id) for task in mine)
            bounced = sum(answer is not None and answer.bounce is True for answer in answers)
            rows.append((run.name, failing, len(mine), wilson(bounced, len(mine)).percent(), published))
    if not any(row[2] for row in rows):
        return None
    table = Table(
        ("run", "tests that fail", "incorrect patches", "bounced %", "paper: patches"),
        tuple(rows),
        title="Incorrect patches by the kind of test that fails",
        note="Patches that fail pass-to-pass tests alone may solve the issue and break something else. "
        "In brackets: 95 % Wilson intervals.",
    )
    return Section("Patches: which tests fail", tables=(table,))


def quoted_costs() -> list[tuple[Cell, ...]]:
    tasks = sum(paper.TASKS[kind][0] for kind in (INPUT, OUTPUT))
    return [
        (f"{model} (paper)", tasks, None, None, None, None, f"{usd:.2f}", f"{usd / tasks:.5f}", None)
        for model, usd in paper.COSTS.items()
    ]


def _chains(scored: Sequence[Scored]) -> Iterator[Section]:
    """The first input run before the first output run."""
    first = next((run for run in scored if run.benchmark == INPUT), None)
    second = next((run for run in scored if run.benchmark == OUTPUT), None)
    if first is None or second is None:
        return
    tasks = [task for task in second.tasks if isinstance(task, OutputTask)]
    labelled = with_annotations(tasks, [task for task in first.tasks if isinstance(task, InputTask)])
    yield chain_section(first.name, second.name, chain(labelled, first.answers, second.answers))
