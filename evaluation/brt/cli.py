"""``bouncer-eval replay brt``: draft tests for reported bugs, or are given tests bug-reproducing?"""

from __future__ import annotations

from typing import Any

import click

from evaluation.cli import json_option


@click.command("brt")
@click.option(
    "--cases",
    required=True,
    metavar="FILE",
    help="JSON Lines: instance_id, problem_statement, base, fixed, command, env.",
)
@click.option("--candidates", metavar="FILE", help="JSON Lines: tests to judge; no model is asked.")
@click.option("--model", metavar="ID", help="Who drafts, without --candidates; default: BOUNCER_MODEL.")
@click.option("--prompts", metavar="DIR", help="Other prompt templates.")
@click.option("--book", metavar="FILE", help="Open book: JSON Lines with instance_id, problem_statement, test.")
@click.option("--samples", default=10, show_default=True, type=click.IntRange(1, 50), help="Drafts a case.")
@click.option(
    "--threshold", default=1, show_default=True, type=click.IntRange(1, 50), help="Drafts that must agree."
)
@click.option("--pick", is_flag=True, help="The model has the last word among the best drafts.")
@click.option("--out", required=True, metavar="DIR", help="Folder of the run; continued where it exists.")
@click.option("--limit", type=click.IntRange(min=1), help="So many cases; raise it later to go on.")
@click.option("--seed", type=int, help="Which cases --limit takes: a random sample that grows with it.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What the run may cost in all.")
@click.option("--cache", metavar="DIR", help="Replies that were paid for; default: a folder in the run.")
@click.option(
    "--seconds", default=300, show_default=True, type=click.IntRange(1, 7200), help="Limit of a test run."
)
@click.option("--memory", default=2048, show_default=True, type=click.IntRange(64), help="Limit of a run, MiB.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 64), help="Tasks at a time.")
@click.option("--retry-failed", is_flag=True, help="Try those again that have no usable answer.")
@json_option
def replay_command(**given: Any) -> int:
    """Run tests on a buggy and on a fixed checkout, in a sandbox, and say which reproduce the bug."""
    from evaluation.brt.running import replay_command as run

    return run(**given)
