"""The ``bouncer-eval`` command: groups that import a command when it is run, and options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from bot import __version__
from bot.cli import LazyGroup, run
from bot.cli.files import json_option as json_option
from bot.cli.files import prompts_option as prompts_option
from bot.cli.files import with_options as with_options
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
        "import": ("evaluation.run.batch:import_command", "Put a provider's answers into the cache."),
    },
    "leaderboard": {
        "export": ("evaluation.bouncerbench.commands:leaderboard_export", "Write a submission."),
        "validate": ("evaluation.bouncerbench.commands:leaderboard_validate", "Check a submission."),
    },
}

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("evaluation.cli:list_benchmarks", "The benchmarks, and what can be done with each."),
    "replay": ("evaluation.cli:replay", "Run a benchmark through the live handlers."),
    "score": ("evaluation.cli:score", "Score a run, or answers from elsewhere."),
    "calibrate": ("evaluation.cli:calibrate", "Fit lines on some repositories, prove them on the others."),
    "compare": (
        "evaluation.cli:compare",
        "Two runs of one benchmark: an old prompt against a new one, for instance.",
    ),
    "report": ("evaluation.cli:report", "One page about one or more runs."),
    "build": ("evaluation.cli:build", "Construct a benchmark from raw material."),
    "batch": ("evaluation.cli:batch", "The providers' batch APIs at half the price; needs no network."),
    "leaderboard": ("evaluation.cli:leaderboard", "Submissions in the format of BouncerBench's authors."),
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
    """Entry point of ``bouncer-eval`` and ``python -m evaluation``."""
    group = Table("bouncer-eval", "Benchmarks, replayed through the handlers that maintainers run.", COMMANDS)
    run(click.version_option(__version__, prog_name="bouncer-eval")(group), arguments, "bouncer-eval")


tasks_option = click.option("--tasks", required=True, metavar="F", help=".jsonl(.gz), .csv(.gz) or hf:owner/name.")
cost_option = click.option(
    "--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What all models may cost together."
)
cache_option = click.option(
    "--cache", metavar="DIR", help="Replies that were paid for; by default beside the result."
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the bootstrap, and of any order that is drawn."
)
replicates_option = click.option(
    "--replicates", type=click.IntRange(0, 100_000), default=2000, show_default=True, help="Of the bootstrap."
)

cutoff_option = click.option(
    "--cutoff",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Tell bugs fixed from this day on apart from older ones, and what differs.",
)

limit_option = click.option("--limit", type=click.IntRange(min=1), help="So many tasks; raise it later to go on.")
draw_option = click.option(
    "--seed", type=int, help="Which tasks --limit takes: a random sample that grows with it."
)
model_option = click.option(
    "--model", metavar="ID", help="provider:name, as recorded:FILE#NAME; default: BOUNCER_MODEL."
)
#: What every ``replay`` takes that asks a model through a handler.
model_options = with_options(
    model_option,
    prompts_option,
    click.option("--config", metavar="FILE", help="A bouncer.yml; the defaults without it."),
)


def workers_option(default: int) -> Option[Any]:
    """``--workers``, with what suits the command."""
    return click.option(
        "--workers", type=click.IntRange(1, 256), default=default, show_default=True, help="Done at a time."
    )


def replay_options(workers: int = 4) -> Option[Any]:
    """What every ``replay`` takes beside its tasks."""
    return with_options(
        click.option("--out", required=True, metavar="DIR", help="Folder of the run; continued where it exists."),
        limit_option,
        draw_option,
        workers_option(workers),
        cost_option,
        cache_option,
        click.option("--retry-failed", is_flag=True, help="Try tasks again that have no usable answer."),
        click.option(
            "--recognised/--no-recognised",
            default=True,
            help="Ask beside each answer whether the model knows the task from elsewhere; never with the paper's "
            "prompts.",
        ),
    )


@click.command("list")
@json_option
def list_benchmarks(as_json: bool) -> None:
    """The benchmarks, and what can be done with each."""
    verbs = ("build", "replay", "score", "calibrate")
    entries: list[dict[str, Any]] = [
        {"name": name, "about": entry.about, "verbs": [verb for verb in verbs if verb in entry.commands]}
        for name, entry in sorted(benchmarks().items())
    ]
    if as_json:
        from evaluation.report.terminal import print_json

        print_json({"benchmarks": entries})
        return
    width = max(len(entry["name"]) for entry in entries)
    for entry in entries:
        click.echo(f"{entry['name']:<{width}}  {', '.join(entry['verbs']):<24}  {entry['about']}")


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--out", metavar="F", help="report.html, report.md or report.json; without it the Markdown is printed."
)
@click.option(
    "--tasks", multiple=True, metavar="[BENCH=]F", help="Score on this task file instead of the run's own."
)
@click.option("--missing", type=click.Choice(["count", "accept", "exclude"]), default="count", show_default=True)
@seed_option
@cutoff_option
@json_option
def report(
    runs: tuple[str, ...],
    out: str | None,
    tasks: tuple[str, ...],
    missing: Missing,
    seed: int,
    cutoff: datetime | None,
    as_json: bool,
) -> None:
    """Tables beside the papers' rows, plots, and what each number describes, on one page."""
    from evaluation.report.runs import report_on

    report_on(runs, out, tasks, Scoring(missing, seed, cutoff=cutoff), as_json)


@click.command("compare")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--tasks", metavar="F", help="Score on this task file instead of the old run's own.")
@click.option("--missing", type=click.Choice(["count", "accept", "exclude"]), default="count", show_default=True)
@seed_option
@replicates_option
@json_option
def compare(
    old: str, new: str, tasks: str | None, missing: Missing, seed: int, replicates: int, as_json: bool
) -> None:
    """Every figure of two runs on the tasks that both had, and the difference with its paired interval."""
    from evaluation.report.comparing import compare_command

    compare_command(old, new, tasks, Scoring(missing, seed, replicates), as_json)
