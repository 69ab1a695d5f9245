"""``bouncer-eval replay brt`` and ``score brt``. What they do is imported when they do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli import (
    cutoff_option,
    json_option,
    model_option,
    prompts_option,
    replay_options,
    replicates_option,
    seed_option,
)

_path = click.Path(path_type=Path)


@click.command("brt")
@click.option(
    "--cases",
    required=True,
    metavar="FILE",
    help="JSON Lines: instance_id, problem_statement, base, fixed, command, env; or LIBRO's, with --checkouts.",
)
@click.option("--candidates", metavar="FILE", help="JSON Lines: tests to judge; no model is asked.")
@click.option("--checkouts", metavar="DIR", help="For LIBRO's rows: ID/base and ID/fixed below it.")
@click.option("--test-command", metavar="CMD", help="For LIBRO's rows: runs tests; {tests} becomes what to run.")
@model_option
@prompts_option
@click.option("--book", metavar="FILE", help="Open book: JSON Lines with instance_id, problem_statement, test.")
@click.option(
    "--preset",
    type=click.Choice(["ours", "libro"]),
    default="ours",
    show_default=True,
    help="libro: 50 drafts, at least two of which fail alike, LIBRO's order; none repaired, inverted or dropped.",
)
@click.option("--samples", type=click.IntRange(1, 50), help="Drafts per case.  [default: 10; libro: 50]")
@click.option("--threshold", type=click.IntRange(1, 50), help="Drafts that must agree.  [default: 1; libro: 2]")
@click.option("--pick", is_flag=True, help="Let the model choose among the best drafts.")
@click.option(
    "--match/--no-match",
    default=None,
    help="Require that a failure matches the report.  [default: yes; libro: no]",
)
@replay_options(workers=2)
@click.option(
    "--seconds", default=300, show_default=True, type=click.IntRange(1, 7200), help="Time limit of a test run."
)
@click.option(
    "--memory", default=2048, show_default=True, type=click.IntRange(64), help="Memory limit of a test run, MiB."
)
@json_option
def replay(**options: Any) -> int:
    """Run tests on a buggy and on a fixed checkout, in a sandbox, and record which reproduce the bug."""
    from evaluation.brt.drafting import replay_command as run

    return run(**options)


@click.command("brt")
@click.option(
    "--rankings",
    metavar="CSV",
    type=_path,
    help="bug_id, first_success_rank (100000 = never), total_success_fibs, num_clusters.",
)
@click.option("--before", metavar="CSV", type=_path, help="The rankings before selection, for recall.")
@click.option("--bugs", metavar="N|F", help="With --rankings, for %BRT: the number of bugs, or all their reports.")
@click.option("--outcomes", metavar="F", help="LIBRO's outcomes of each generated test (example2_n50).")
@click.option("--features", metavar="CSV", help="With --outcomes, to rank: LIBRO's features of the failing tests.")
@click.option("--run", metavar="DIR", type=_path, help="A run of replay.")
@click.option("--plain", is_flag=True, help="LIBRO's own method, in every figure: no repaired or inverted drafts.")
@click.option("--export", metavar="DIR", type=_path, help="Write the run's rankings and features in LIBRO's form.")
@seed_option
@replicates_option
@cutoff_option
@click.option("--cases", metavar="F", help="Cases with fixed_at, for --cutoff.  [default: the tasks of the run]")
@json_option
def score(**options: Any) -> None:
    """Score rankings of tests (acc@n, wef@n) or a run of replay (%BRT, and the rankings of what it drafted)."""
    from evaluation.brt.report import score_command as run

    run(**options)
