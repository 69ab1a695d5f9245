"""Options that several of BouncerBench's commands take."""

from __future__ import annotations

import click

from evaluation.cli.options import F, with_options

tasks_option = click.option("--tasks", required=True, metavar="F", help=".jsonl(.gz), .csv(.gz) or hf:owner/name.")
prompt_option = click.option("--prompt", type=click.Choice(["paper", "panel"]), help="Which question is asked.")
_LINE = (
    click.option("--bounce-at", metavar="LABEL", help="The mildest label that bounces."),
    click.option("--bounce-above", type=click.IntRange(0, 100), metavar="P", help="Bounce from P percent on."),
)


def line_options(command: F) -> F:
    """``--bounce-at`` and ``--bounce-above``."""
    return with_options(command, _LINE)
