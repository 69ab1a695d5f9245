"""Scoring answers to BouncerBench's tasks from files alone, printed or as JSON; no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.errors import OperatorError
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.compare import Comparison, compare
from evaluation.bouncerbench.gathering import answers_of, gather, line_of
from evaluation.bouncerbench.metrics import Metrics, Missing, score
from evaluation.bouncerbench.operating import operating_points, risk_coverage
from evaluation.bouncerbench.printing import print_comparison, print_scores
from evaluation.bouncerbench.tasks import (
    INPUT,
    OUTPUT,
    Benchmark,
    InputTask,
    OutputTask,
    input_tasks,
    output_tasks,
)
from evaluation.cli.options import print_json
from evaluation.run.folder import RunFolder

Tasks = Sequence[InputTask | OutputTask]


def score_input(tasks: str, **given: Any) -> None:
    """Score answers to input tasks with the paper's metrics."""
    _score(INPUT, list(input_tasks(tasks)), **given)


def score_output(tasks: str, **given: Any) -> None:
    """Score answers to output tasks with the paper's metrics."""
    _score(OUTPUT, list(output_tasks(tasks)), **given)


def _score(
    benchmark: Benchmark,
    tasks: Tasks,
    *,
    run: str | None,
    predictions: str | None,
    model_name: str | None,
    against: str | None,
    missing: Missing,
    bounce_at: str | None,
    bounce_above: int | None,
    seed: int,
    replicates: int,
    as_json: bool,
) -> None:
    if tasks and all(task.bounce is None for task in tasks):
        raise OperatorError(f"nothing to score: of none of the {len(tasks)} tasks is the truth known")
    line = line_of(benchmark, bounce_at, bounce_above)
    models = gather(benchmark, run, predictions, model_name, line)
    if run is not None:
        tasks = RunFolder.read(Path(run)).due(tasks, lambda task: task.instance_id)
    compared: Comparison | None = None
    if against is not None:
        if len(models) > 1:
            raise OperatorError(f"--against: one model is compared, name it: {', '.join(sorted(models))}")
        before, (now,) = answers_of(benchmark, against, line), models.values()
        compared = compare(tasks, before, now, seed=seed, replicates=replicates)
    scored = {
        name: score(benchmark, tasks, answers, missing, seed=seed, replicates=replicates)
        for name, answers in models.items()
    }
    if as_json:
        objects = {name: _as_json(name, metrics, tasks, models[name]) for name, metrics in scored.items()}
        found = next(iter(objects.values())) if len(objects) == 1 else {"models": objects}
        print_json(found if compared is None else {**found, "against": {"source": against, **compared.as_json()}})
    else:
        only = next(iter(models.values())) if len(models) == 1 else None
        print_scores(benchmark, scored, operating_points(benchmark, tasks, only, missing) if only else [])
        if compared is not None:
            print_comparison(str(against), compared)


def _as_json(name: str, metrics: Metrics, tasks: Tasks, answers: dict[str, Answer]) -> dict[str, Any]:
    curve = risk_coverage(tasks, answers)
    return {
        "model": name,
        **metrics.as_json(),
        "area_under_risk_coverage": None if curve is None else curve.area,
        "operating_points": [
            {
                "line": point.name,
                "bounced_share": point.bounced,
                "wrong_share_passed": point.wrong_share_passed,
                **{
                    figure: point.metrics.value(figure) for figure in ("f_m", "r_b", "fnr_a", "i_score", "o_score")
                },
            }
            for point in operating_points(_benchmark(metrics), tasks, answers, metrics.missing_counts_as)
        ],
    }


def _benchmark(metrics: Metrics) -> Benchmark:
    return OUTPUT if metrics.benchmark == OUTPUT else INPUT
