"""The commands ``calibrate``, one for each bouncer. What they do is imported when they do it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot import __version__
from bot.cli.numbers import Harm
from bot.core.errors import OperatorError
from evaluation.bouncerbench.commands import both
from evaluation.cli import json_option, seed_option, tasks_option, with_options

if TYPE_CHECKING:
    from evaluation.bouncerbench.tasks import Kind
    from evaluation.calibration.report import Split

_calibrate = with_options(
    tasks_option,
    click.option("--run", metavar="DIR", help="A run of replay."),
    click.option(
        "--predictions",
        metavar="F",
        help="JSON Lines: instance_id, label or bounce, and model if several.",
    ),
    click.option("--model-name", metavar="NAME", help="The model to calibrate if the file has several."),
    click.option(
        "--harm",
        type=Harm(),
        default="5%",
        show_default=True,
        help="Largest share of good subjects that may bounce.",
    ),
    click.option(
        "--split",
        type=click.Choice(["repository", "random"]),
        default="repository",
        show_default=True,
        help="Hold out each repository in turn, or each of five random parts.",
    ),
    click.option(
        "--maps",
        metavar="F",
        help="Write probability maps for BOUNCER_MAPS_FILE to this file, fitted on all tasks.",
    ),
    click.option(
        "--map",
        "form",
        type=click.Choice(["isotonic", "platt"]),
        default="isotonic",
        show_default=True,
        help="Form of the maps.",
    ),
    click.option("--out", metavar="F", help="Write a page: report.html, report.md or report.json."),
    seed_option,
    json_option,
)


def _calibrated(
    kind: Kind,
    *,
    tasks: str,
    run: str | None,
    predictions: str | None,
    model_name: str | None,
    harm: float,
    split: Split,
    maps: str | None,
    form: str,
    out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    from evaluation.bouncerbench.answers import gather
    from evaluation.bouncerbench.bench import BENCHES
    from evaluation.calibration import report as calibration
    from evaluation.report.page import Report
    from evaluation.report.runs import store
    from evaluation.report.terminal import say, short, tell
    from evaluation.run.folder import RunFolder

    bench = BENCHES[kind]
    items = list(bench.read(tasks))
    models = gather(kind, run, predictions, model_name)
    if run is not None:
        items = bench.due(RunFolder.read(Path(run)), tasks)
    by_name = {short(name): answers for name, answers in models.items()}
    cases = calibration.models_as_cases(items, by_name, split, seed)
    if not cases:
        raise OperatorError(
            "the answered tasks are too few for a random split"
            if split == "random"
            else "the answered tasks are of one repository: there is no other to prove a line on; --split random"
        )
    sections = calibration.sections(kind, cases, harm, seed)
    if maps is not None:
        names = calibration.write_maps(Path(maps), kind, items, models, form)
        say(f"{maps}: {', '.join(names)}")
    if out is not None:
        store(Path(out), Report(f"Calibration on {kind}", tuple(sections), f"Bouncer {__version__}, {tasks}"))
    if as_json or out is None:
        tell(sections, as_json)


calibrate_input, calibrate_output = both(
    lambda kind: _calibrate,
    _calibrated,
    "Fit thresholds and probability maps for issues on some repositories, and test them on the others.",
    "Fit thresholds and probability maps for patches on some repositories, and test them on the others.",
)
