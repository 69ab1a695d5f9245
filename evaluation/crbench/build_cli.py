"""``bouncer-eval build crbench`` and ``bouncer-eval build own``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from evaluation.cli.options import json_option

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS = (
    click.option("--offline", is_flag=True, help="Find pull requests in the clone's own history."),
    click.option(
        "--until",
        type=click.Choice(["mapping", "tasks"]),
        default="tasks",
        show_default=True,
        help="mapping stops before the model's steps.",
    ),
    click.option(
        "--pull-refs",
        type=click.Choice(["ignore", "verify", "infer"]),
        default="verify",
        show_default=True,
        help="A clone's refs/pull: not used; refute wrong numbers; also find rebased commits.",
    ),
    click.option(
        "--unmapped",
        type=click.Choice(["ignore", "discard"]),
        default="ignore",
        show_default=True,
        help="Blamed commits without a pull request: count for nothing, or disqualify.",
    ),
    click.option("--ignore-whitespace", is_flag=True, help="git blame -w."),
    click.option("--follow-moves", is_flag=True, help="git blame -M -C."),
    click.option("--include-tests", is_flag=True, help="Blame lines of test files too."),
    click.option("--include-documentation", is_flag=True, help="Blame lines of documentation too."),
    click.option("--model", metavar="ID", help="provider:name that is asked; default: BOUNCER_MODEL."),
    click.option("--prompts", type=click.Path(path_type=Path), help="Other prompt templates."),
    click.option("--cache", type=click.Path(path_type=Path), help="Replies; default: beside --out."),
    click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What this call may cost."),
    click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True),
    click.option("--overwrite", is_flag=True, help="Begin anew where --out exists."),
    json_option,
)


def _build_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("crbench")
@click.option("--instances", required=True, metavar="F", help="Fixes like SWE-bench's; .jsonl(.gz) or hf:NAME.")
@click.option("--repos", type=click.Path(path_type=Path, file_okay=False), required=True, help="Clones.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="JSON Lines; continued if there.")
@_build_options
def build_command(**given: Any) -> int:
    """Find the pull requests that brought in the bugs that INSTANCES fix (CR-Bench, Algorithm 1).

    Clones, bare or not, are folders of --repos named owner+name or owner/name.
    """
    from evaluation.crbench.building import build_command as run

    return run(**given)


@click.command("own")
@click.option("--repo", type=click.Path(path_type=Path, file_okay=False), required=True, help="A clone.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), required=True, help="Fixes from this day on.")
@click.option("--name", metavar="OWNER/NAME", help="Default: what the clone's origin or folder says.")
@click.option("--out", type=click.Path(path_type=Path), help="Default: own-OWNER+NAME.jsonl.")
@_build_options
def build_own_command(**given: Any) -> int:
    """The same from a repository's own bug fixes: what would the reviewer have found here?"""
    from evaluation.crbench.building import build_own_command as run

    return run(**given)
