"""Having review comments judged, and printing what they are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.errors import BudgetExceeded, OperatorError
from bot.ops import settings
from evaluation.cli.options import print_json, say
from evaluation.crbench.judge import Panel
from evaluation.crbench.judged import (
    Reviewed,
    Scored,
    is_judged,
    judge_comments,
    reviewed_file,
    reviewed_run,
    scored,
)
from evaluation.crbench.metrics import by_kind
from evaluation.crbench.printing import print_scores
from evaluation.crbench.replaying import BENCHMARK
from evaluation.prompts import benchmark_prompts
from evaluation.run.folder import RunFacts, RunFolder
from evaluation.run.model import asked_model

#: What a bug can be told apart by.
DIMENSIONS = ("category", "impact", "severity")


def score_command(
    tasks: str,
    run_path: str | None,
    predictions: str | None,
    judges: tuple[str, ...],
    missing: str,
    replicates: int,
    as_json: bool,
    **given: Any,
) -> int:
    """Judge review comments against the known bugs; without a judge, print what was judged before."""
    facts = None
    if (run_path is None) == (predictions is None):
        raise OperatorError("one of --run and --predictions is needed")
    if run_path is not None:
        run = _run(run_path)
        facts, reviewed = run.facts, reviewed_run(run)
    else:
        reviewed = reviewed_file(str(predictions))
    try:
        _judge(reviewed, facts, tasks, judges, **given)
    except BudgetExceeded as error:
        say(f"stopped: {error}; the same command goes on from here, judged comments are in the cache")
        return 1
    result = scored(reviewed, tasks, missing, given["seed"], replicates, given["scope"])
    if as_json:
        print_json(as_object(result, facts))
    else:
        print_scores([result], missing)
    return 0


def as_object(result: Scored, facts: RunFacts | None) -> dict[str, Any]:
    """Everything that was counted and computed, as JSON; ``facts`` of the run, where it is one."""
    metrics = result.metrics
    return {
        "benchmark": BENCHMARK,
        "model": result.name if facts is None else facts.model,
        "strategy": None if facts is None else facts.config.get("review", {}).get("strategy"),
        "judges": list(result.facts.judges),
        "votes": len(result.facts.judges) * result.facts.draws,
        "agreement": result.facts.agreement,
        "judge_usage": result.facts.usage.model_dump(mode="json"),
        "usage": None if facts is None else facts.totals.usage.model_dump(mode="json"),
        **vars(metrics.counted),
        "unanswered": result.unanswered,
        "comments_counted": result.facts.scope,
        **{name: estimate.value for name, estimate in metrics.estimates.items()},
        "intervals": {name: [estimate.low, estimate.high] for name, estimate in metrics.estimates.items()},
        "by": {
            dimension: {
                share.kind: {
                    "bugs": share.bugs,
                    "recall_per_bug": share.found.value,
                    "interval": [share.found.low, share.found.high],
                }
                for share in by_kind(result.tasks, result.counted, dimension)
            }
            for dimension in DIMENSIONS
        },
    }


def _run(path: str) -> RunFolder:
    run = RunFolder.read(Path(path))
    if run.facts.benchmark != BENCHMARK:
        raise OperatorError(f"{path} is a run of {run.facts.benchmark}, not of {BENCHMARK}")
    return run


def _judge(
    reviewed: Reviewed,
    facts: RunFacts | None,
    source: str,
    judges: tuple[str, ...],
    *,
    draws: int,
    seed: int,
    prompts: Path | None,
    cache: Path | None,
    max_cost: float | None,
    workers: int,
    scope: Any,
) -> None:
    environment = settings.load()
    default = (environment.bouncer_judge_model,) if environment.bouncer_judge_model else ()
    names = judges or default
    if not names:
        if is_judged(reviewed):
            return
        raise OperatorError("a judge is needed: --judge provider:name, or BOUNCER_JUDGE_MODEL")
    if facts is not None and facts.model in names:
        say(f"warning: {facts.model} judges its own comments; a judge should be another model")
    share = None if max_cost is None else max_cost / len(names)
    kept = cache or reviewed.folder / "judge-cache"
    models = tuple(asked_model(environment, name, kept, share) for name in names)
    panel = Panel(models, benchmark_prompts(prompts), draws, seed, workers)
    judge_comments(reviewed, source, panel, scope or "posted")
