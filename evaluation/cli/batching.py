"""``bouncer-eval batch export|import``: the requests of a replay as a file, and the answers into the cache."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from bot.errors import OperatorError
from evaluation.cli import replay
from evaluation.cli.options import json_option, print_json, say

#: Benchmarks whose replay asks models through handlers only.
BATCHED = ("bouncerbench-input", "bouncerbench-output", "crbench")


@click.command("export", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("bench", type=click.Choice(BATCHED), metavar="BENCH")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="OPTIONS...")
@click.pass_context
def export_command(context: click.Context, bench: str, arguments: tuple[str, ...]) -> int:
    """Write one request a line for every question of BENCH's replay that the cache cannot answer.

    Takes the options of ``replay BENCH`` and --format openai|anthropic; --out is the file of requests.
    """
    from evaluation.run.replay import Export

    form, rest = _format(arguments)
    command = replay.get_command(context, bench)
    assert command is not None
    with command.make_context(bench, rest, parent=context, obj=Export(form)) as nested:
        code: int = command.invoke(nested)
        return code


def _format(arguments: tuple[str, ...]) -> tuple[str, list[str]]:
    """``--format`` taken out of the arguments: the replay's own command does not know it, but has the help."""
    rest = list(arguments)
    if "--help" in rest:
        return "", rest
    for place, argument in enumerate(rest):
        name, joined, value = argument.partition("=")
        if name == "--format":
            if not joined:
                value = rest[place + 1] if place + 1 < len(rest) else ""
            if value not in ("openai", "anthropic"):
                raise OperatorError(f"--format: {value!r} is neither openai nor anthropic")
            return value, rest[:place] + rest[place + (1 if joined else 2) :]
    raise OperatorError("--format openai or --format anthropic is needed")


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--cache", required=True, metavar="DIR", help="The folder that replay --cache reads.")
@json_option
def import_command(file: str, cache: str, as_json: bool) -> int:
    """Put the result lines of OpenAI's Batch API or Anthropic's Message Batches into the cache."""
    from bot.models.prices import load as load_prices
    from bot.ops import settings
    from evaluation.run.batch import import_results
    from evaluation.run.cache import FolderStore

    prices = load_prices(settings.load().bouncer_prices_file)
    found = import_results(file, FolderStore(Path(cache)), prices)
    if not found.kept and not found.failures:
        raise OperatorError(f"{file} holds no result")
    if as_json:
        print_json({"cache": cache, **asdict(found)})
    else:
        say(f"{found.kept} answers are in {cache}, {len(found.failures)} requests have none")
        for failure in found.failures:
            say(failure)
    return 1 if found.failures and not found.kept else 0
