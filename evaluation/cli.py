"""The ``bouncer-eval`` command: groups that import a command when it is run, and options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from bot import __version__
from bot.cli import LazyGroup, run
from bot.cli.files import json_option as json_option
from bot.cli.files import print_json
from bot.cli.files import prompts_option as prompts_option
from bot.cli.files import with_options as with_options
from bot.cli.judging import set_option as set_option
from bot.cli.numbers import Finite
from bot.core.errors import OperatorError
from evaluation.benchmark import Missing, Scoring, benchmarks

F = TypeVar("F", bound=Callable[..., Any])
Option = Callable[[F], F]


#: ``verb -> name -> (module:attribute, line in --help)``.
VERBS: dict[str, dict[str, tuple[str, str]]] = {
    **{
        verb: {name: entry.commands[verb] for name, entry in benchmarks().items() if verb in entry.commands}
        for verb in ("replay", "score", "calibrate", "build")
    },
    "batch": {
        "export": ("evaluation.run.batch:export_command", "Write the requests that the cache cannot answer."),
        "import": ("evaluation.run.batch:import_command", "Import a provider's answers into the cache."),
    },
    "leaderboard": {
        "export": ("evaluation.bouncerbench.commands:leaderboard_export", "Write a submission."),
        "validate": ("evaluation.bouncerbench.commands:leaderboard_validate", "Check a submission."),
    },
}

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("evaluation.cli:list_benchmarks", "List the benchmarks and the commands of each."),
    "replay": ("evaluation.cli:replay", "Run a benchmark through the live handlers."),
    "score": ("evaluation.cli:score", "Score a run, or answers from a file."),
    "calibrate": ("evaluation.cli:calibrate", "Fit thresholds on some repositories, test them on the others."),
    "compare": ("evaluation.cli:compare", "Compare two runs of one benchmark, for example of two prompts."),
    "report": ("evaluation.cli:report", "Write a page about one or more runs."),
    "build": ("evaluation.cli:build", "Construct a benchmark from raw material."),
    "batch": ("evaluation.cli:batch", "Use the providers' batch APIs at half the price, through files."),
    "leaderboard": ("evaluation.cli:leaderboard", "Write or check a submission to BouncerBench's leaderboard."),
}


class Table(LazyGroup):
    """A group that names the package of the extra ``evaluation`` which a command misses, in one line."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] in ("bot", "evaluation"):
                raise
            raise OperatorError(
                f"the package {error.name!r} is missing: run pip install '.[evaluation]' in a checkout of Bouncer"
            ) from None


replay, score, calibrate, build, batch, leaderboard = (
    Table(verb, COMMANDS[verb][1], VERBS[verb])
    for verb in ("replay", "score", "calibrate", "build", "batch", "leaderboard")
)


def main(arguments: list[str] | None = None) -> None:
    group = Table("bouncer-eval", "Benchmarks, replayed through the handlers that maintainers run.", COMMANDS)
    run(click.version_option(__version__, prog_name="bouncer-eval")(group), arguments, "bouncer-eval")


tasks_option = click.option("--tasks", required=True, metavar="F", help=".jsonl(.gz), .csv(.gz) or hf:owner/name.")
cost_option = click.option(
    "--max-cost", type=Finite(min=0), metavar="USD", help="Limit on the cost of all models together."
)
cache_option = click.option(
    "--cache", metavar="DIR", help="Folder of cached replies.  [default: beside the result]"
)
#: What numpy and scikit-learn take as a seed.
SEEDS = click.IntRange(0, 2**32 - 1)
seed_option = click.option(
    "--seed", type=SEEDS, default=0, show_default=True, help="Random seed of the bootstrap and of shuffled orders."
)
replicates_option = click.option(
    "--replicates", type=click.IntRange(0, 100_000), default=2000, show_default=True, help="Bootstrap replicates."
)

missing_option = click.option(
    "--missing",
    type=click.Choice(["count", "accept", "exclude"]),
    default="count",
    show_default=True,
    help="A missing answer counts as wrong, as a pass (the authors' convention), or not at all.",
)

cutoff_option = click.option(
    "--cutoff",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="Also score bugs fixed before and since this day separately, with the difference.",
)

martian_option = click.option(
    "--martian",
    metavar="CLONE",
    help="A clone of withmartian/code-review-benchmark: show its tools beside reviewers.",
)

limit_option = click.option(
    "--limit", type=click.IntRange(min=1), help="Run at most this many tasks; raise it later to continue."
)
draw_option = click.option(
    "--seed", type=SEEDS, help="Let --limit take a random sample, which grows with the limit."
)
model_option = click.option(
    "--model", metavar="ID", help="provider:name, or recorded:FILE#NAME.  [default: BOUNCER_MODEL]"
)
#: What every ``replay`` takes that asks a model through a handler.
model_options = with_options(
    model_option,
    prompts_option,
    click.option("--config", metavar="FILE", help="A bouncer.yml.  [default: the default configuration]"),
)


def workers_option(default: int) -> Option[Any]:
    return click.option(
        "--workers", type=click.IntRange(1, 256), default=default, show_default=True, help="Tasks at a time."
    )


def replay_options(workers: int = 4) -> Option[Any]:
    return with_options(
        click.option(
            "--out", required=True, metavar="DIR", help="Folder of the run; an existing run is continued."
        ),
        limit_option,
        draw_option,
        workers_option(workers),
        cost_option,
        cache_option,
        click.option("--retry-failed", is_flag=True, help="Run tasks without a usable answer again."),
        click.option(
            "--recognised/--no-recognised",
            default=True,
            help="Ask with each answer if the model knows the task already; never with the paper's prompts.",
        ),
    )


@click.command("list")
@json_option
def list_benchmarks(as_json: bool) -> None:
    """List the benchmarks and the commands of each."""
    verbs = ("build", "replay", "score", "calibrate")
    entries: list[dict[str, Any]] = [
        {"name": name, "about": entry.about, "verbs": [verb for verb in verbs if verb in entry.commands]}
        for name, entry in sorted(benchmarks().items())
    ]
    if as_json:
        print_json({"benchmarks": entries})
        return
    width = max(len(entry["name"]) for entry in entries)
    for entry in entries:
        click.echo(f"{entry['name']:<{width}}  {', '.join(entry['verbs']):<24}  {entry['about']}")


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN|BENCH=F[#MODEL]...")
@click.option("--out", metavar="F", help="report.html, report.md or report.json.  [default: print Markdown]")
@click.option("--tasks", multiple=True, metavar="[BENCH=]F", help="Score on this task file instead of the run's.")
@missing_option
@seed_option
@cutoff_option
@martian_option
@json_option
def report(
    runs: tuple[str, ...],
    out: str | None,
    tasks: tuple[str, ...],
    missing: Missing,
    seed: int,
    cutoff: datetime | None,
    martian: str | None,
    as_json: bool,
) -> None:
    """Write one page about runs: tables beside the papers' rows, plots, and the settings of each run.

    BENCH=F stands for recorded answers, as in `score bouncerbench-input --predictions F`; it needs --tasks.
    """
    from evaluation.report.runs import report_on

    report_on(runs, out, tasks, Scoring(missing, seed, cutoff=cutoff, martian=martian), as_json)


@click.command("compare")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--tasks", metavar="F", help="Score on this task file instead of the old run's.")
@missing_option
@seed_option
@replicates_option
@json_option
def compare(
    old: str, new: str, tasks: str | None, missing: Missing, seed: int, replicates: int, as_json: bool
) -> None:
    """Compare every figure of two runs on their common tasks, with a paired interval of the difference."""
    from evaluation.report.runs import compare_command

    compare_command(old, new, tasks, Scoring(missing, seed, replicates), as_json)
