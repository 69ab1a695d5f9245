"""Answers out of runs and files, with the line that the command line draws through them."""

from __future__ import annotations

from pathlib import Path

from bot.errors import OperatorError
from evaluation.bouncerbench.answers import PAPER_LINE, Answer, Line, read_answers, run_answers
from evaluation.bouncerbench.tasks import LABELS, Benchmark
from evaluation.run.folder import RunFolder


def line_of(benchmark: Benchmark, bounce_at: str | None, bounce_above: int | None) -> Line | None:
    """The line that the options draw; None where they say nothing. Raises OperatorError for a strange label."""
    if bounce_at is None and bounce_above is None:
        return None
    names: list[str] = [each.value for each in LABELS[benchmark]]
    if bounce_at is not None and bounce_at not in names[1:]:
        raise OperatorError(f"--bounce-at: {bounce_at!r} is none of {', '.join(names[1:])}")
    return Line(PAPER_LINE if bounce_at is None else names.index(bounce_at), bounce_above)


def gather(
    benchmark: Benchmark,
    run: str | None,
    predictions: str | None,
    model_name: str | None,
    line: Line | None = None,
) -> dict[str, dict[str, Answer]]:
    """Answers by model name from a run or a file. Raises OperatorError."""
    if (run is None) == (predictions is None):
        raise OperatorError("one of --run and --predictions is needed")
    if run is not None:
        folder = RunFolder.read(Path(run))
        if folder.facts.benchmark != benchmark:
            raise OperatorError(f"{run} is a run of {folder.facts.benchmark}, not of {benchmark}")
        return {folder.facts.model: run_answers(folder, line)}
    assert predictions is not None
    models = read_answers(predictions, benchmark, line)
    if not models:
        raise OperatorError(f"{predictions} holds no answer")
    if model_name is None:
        return {name or Path(predictions).name: answers for name, answers in models.items()}
    if set(models) == {""}:
        return {model_name: models[""]}
    if model_name not in models:
        raise OperatorError(f"{predictions} holds no model {model_name!r}; it holds {', '.join(sorted(models))}")
    return {model_name: models[model_name]}


def answers_of(benchmark: Benchmark, source: str, line: Line | None = None) -> dict[str, Answer]:
    """The answers of a run's folder, or of one model in a file, ``F#MODEL``. Raises OperatorError."""
    if Path(source).is_dir():
        models = gather(benchmark, source, None, None, line)
    else:
        file, _, name = source.partition("#")
        models = gather(benchmark, None, file, name or None, line)
    if len(models) > 1:
        raise OperatorError(f"{source} holds several models: name one, {source}#{next(iter(models))}")
    return next(iter(models.values()))
