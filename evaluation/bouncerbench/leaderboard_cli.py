"""``bouncer-eval leaderboard export|validate``."""

from __future__ import annotations

from pathlib import Path

import click

from bot.errors import OperatorError
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.gathering import answers_of
from evaluation.bouncerbench.leaderboard import Board, Config, export, validate
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, input_tasks, output_tasks
from evaluation.cli.options import json_option, print_json, say


@click.command()
@click.option("--input", "before", metavar="RUN|F[#MODEL]", help="Answers of the input bouncer.")
@click.option("--output", "after", metavar="RUN|F[#MODEL]", help="Answers of the output bouncer.")
@click.option("--name", required=True, help="As it is to stand on the leaderboard.")
@click.option("--site", required=True, metavar="URL", help="Where one reads more about the system.")
@click.option("--icon", default="bouncerbench.svg", show_default=True, help="A file name under static/images.")
@click.option("--oss/--not-oss", default=True, show_default=True, help="Whether the system is open source.")
@click.option("--missing", type=click.Choice(["refuse", "accept"]), default="refuse", show_default=True)
@click.option("--out", required=True, metavar="DIR")
@json_option
def export_command(
    before: str | None,
    after: str | None,
    name: str,
    site: str,
    icon: str,
    oss: bool,
    missing: str,
    out: str,
    as_json: bool,
) -> None:
    """Write a submission: config.yaml, and data/ with every decision and its trace."""
    if before is None and after is None:
        raise OperatorError("at least one of --input and --output is needed")
    inputs: dict[str, Answer] | None = None if before is None else answers_of(INPUT, before)
    outputs: dict[str, Answer] | None = None if after is None else answers_of(OUTPUT, after)
    config = Config(name=name, oss=oss, site=site, icon=Path(icon).name, entries={})
    try:
        entries = export(Path(out), config, inputs, outputs, missing == "accept")
    except OSError as error:
        raise OperatorError(f"--out {out}: {error.strerror}") from None
    if as_json:
        print_json({"submission": out, "entries": entries})
    else:
        say(f"{out}: " + ", ".join(f"{count} {board} entries" for board, count in entries.items()))


@click.command()
@click.argument("folder", metavar="DIR")
@click.option("--input-tasks", metavar="F", help="Hold the entries against these tasks.")
@click.option("--output-tasks", metavar="F")
@json_option
def validate_command(folder: str, input_tasks: str | None, output_tasks: str | None, as_json: bool) -> int:
    """Check a submission; exit code 1 where the leaderboard would refuse it."""
    checked = validate(Path(folder), _tasks(input_tasks, output_tasks))
    if as_json:
        print_json(
            {
                "valid": not checked.problems,
                "entries": checked.entries,
                "problems": checked.problems,
                "warnings": checked.warnings,
            }
        )
    else:
        for line in (*checked.problems, *checked.warnings):
            click.echo(line)
        click.echo("not valid" if checked.problems else f"valid: {checked.entries}")
    return 1 if checked.problems else 0


def _tasks(inputs: str | None, outputs: str | None) -> dict[Board, list[str]]:
    found: dict[Board, list[str]] = {}
    if inputs is not None:
        found["input"] = [task.instance_id for task in input_tasks(inputs)]
    if outputs is not None:
        found["output"] = found["lite"] = [task.instance_id for task in output_tasks(outputs)]
    return found
