"""Options that the benchmarks' commands share, and how results are printed: JSON on stdout, words on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_REPLAY = (
    click.option("--out", required=True, metavar="DIR", help="Folder of the run; continued where it exists."),
    click.option("--limit", type=click.IntRange(min=1), help="So many tasks; raise it later to go on."),
    click.option("--seed", type=int, help="Which tasks --limit takes: a random sample that grows with it."),
    click.option("--workers", type=click.IntRange(1, 256), default=4, show_default=True, help="Tasks at a time."),
    click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What the run may cost in all."),
    click.option("--cache", metavar="DIR", help="Replies that were paid for; default: a folder in the run."),
    click.option("--retry-failed", is_flag=True, help="Try tasks again that have no usable answer."),
)
_MODEL = (
    click.option("--model", metavar="ID", help="provider:name, as recorded:FILE#NAME; default: BOUNCER_MODEL."),
    click.option("--prompts", metavar="DIR", help="Other prompt templates."),
    click.option("--config", metavar="FILE", help="A bouncer.yml; the defaults without it."),
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def replay_options(command: F) -> F:
    """``--out``, ``--limit``, ``--seed``, ``--workers``, ``--max-cost``, ``--cache``, ``--retry-failed``."""
    return with_options(command, _REPLAY)


def model_options(command: F) -> F:
    """``--model``, ``--prompts``, ``--config``."""
    return with_options(command, _MODEL)


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output; a figure that is not defined is ``null``."""
    click.echo(json.dumps(value, ensure_ascii=True, allow_nan=False))


def say(line: str) -> None:
    """A line for the person at the keyboard."""
    click.echo(line, err=True)


def with_options(command: F, options: tuple[Callable[[F], F], ...]) -> F:
    """The command with all of these, in the order of ``--help``."""
    for option in reversed(options):
        command = option(command)
    return command
