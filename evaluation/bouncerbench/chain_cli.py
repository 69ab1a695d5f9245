"""``bouncer-eval score bouncerbench-chain``: both bouncers in a row, from runs or from answers."""

from __future__ import annotations

from pathlib import Path

import click

from evaluation.bouncerbench.chain import Chain, chain
from evaluation.bouncerbench.gathering import answers_of
from evaluation.bouncerbench.options import tasks_option
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, input_tasks, output_tasks
from evaluation.cli.options import json_option, print_json
from evaluation.run.folder import RunFolder


@click.command("bouncerbench-chain")
@tasks_option
@click.option(
    "--annotations", metavar="F", help="Input tasks: which issues are vague, where --tasks does not say."
)
@click.option("--input", "before", required=True, metavar="RUN|F[#MODEL]", help="Answers of the input bouncer.")
@click.option("--output", "after", required=True, metavar="RUN|F[#MODEL]", help="Answers of the output bouncer.")
@json_option
def command(tasks: str, annotations: str | None, before: str, after: str, as_json: bool) -> None:
    """What reaches a reviewer when both bouncers stand in a row (BouncerBench, V and table IV)."""
    quality = {} if annotations is None else {task.instance_id: task.quality for task in input_tasks(annotations)}
    known = [
        task.model_copy(update={"quality": quality.get(task.instance_id, task.quality)})
        for task in output_tasks(tasks)
    ]
    for source in (before, after):
        if Path(source).is_dir():
            known = RunFolder.read(Path(source)).due(known, lambda task: task.instance_id)
    found = chain(known, answers_of(INPUT, before), answers_of(OUTPUT, after))
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(_text(found))


def _text(found: Chain) -> str:
    held, shown, before = found.held_back, found.shown, found.submitted
    lines = [
        f"{found.tickets} tickets, {found.vague} vague; turned away: {found.turned_away_vague} vague, "
        f"{found.turned_away_clear} clear",
        f"{found.drafted.all} patches; held back: {held.wrong} wrong, {held.correct} correct",
        f"shown: {shown.all} instead of {before.all}, wrong {_percent(shown.wrong_share)} instead of "
        f"{_percent(before.wrong_share)}; {_percent(found.lost_share)} of the correct ones lost",
        f"no answer: {found.unanswered_input} issues, {found.unanswered_output} patches; "
        f"{found.unlabelled} tasks of unknown outcome left out",
    ]
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
