"""``bouncer calibrate``: choose the threshold from a repository's own history, with a promise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from bot.cli.files import data_folder, print_json, show_card, write_text
from bot.cli.judging import Judging, cost_option, judging_options
from bot.cli.numbers import Harm

#: Everything is judged, and nothing is written or executed.
_IN_SHADOW: Mapping[str, Mapping[str, Any]] = {
    "triage": {"mode": "shadow"},
    "verify": {"mode": "shadow", "execute": False},
    "pulls": {"drafts": True},
    "duplicates": {"mode": "shadow", "suggest_above": 0},
}


@click.command()
@click.argument("repository", metavar="OWNER/REPO")
@click.option(
    "--harm",
    type=Harm(),
    default="5%",
    show_default=True,
    help="Largest share of actionable issues to bounce, and of suggested duplicates that are wrong.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=200,
    show_default=True,
    help="Most issues, and most pull requests.",
)
@cost_option
@click.option("--from", "source", metavar="FILE", help="Read an export instead of GitHub.")
@click.option(
    "--fresh", is_flag=True, help="Read GitHub again, even if the last export is less than 24 hours old."
)
@click.option("--export", "target", metavar="FILE", help="Write the export here, for --from.")
@click.option(
    "--out", default="calibration.html", show_default=True, metavar="FILE", help="Where to write the page."
)
@click.option(
    "--needs-info",
    multiple=True,
    metavar="LABEL",
    help="Another label that asks the author for details (repeatable).",
)
@click.option("--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Questions at a time.")
@judging_options
def command(
    repository: str,
    harm: float,
    limit: int,
    max_cost: float | None,
    source: str | None,
    fresh: bool,
    target: str | None,
    out: str,
    needs_info: tuple[str, ...],
    workers: int,
    judging: Judging,
    as_json: bool,
) -> int:
    """Judge the last issues and pull requests of OWNER/REPO without posting, and choose a threshold.

    Nothing is written to GitHub, and bouncer.yml is not changed: the lines for it are printed. Exports and
    verdicts are stored below BOUNCER_DATA_DIR: if interrupted, the same command resumes. An export is used for
    24 hours. Duplicates are judged if DATABASE_URL has the index of bouncer index.
    """
    from bot import app
    from bot.calibration.page import as_html, as_text
    from bot.cli.calibrate.cases import new_export, read_export, recent_export
    from bot.cli.calibrate.trial import ShadowTrial, as_object
    from bot.cli.remote import repository as named

    environment = judging.settings()
    environment.check_model()
    shadow = app.repo_config(judging.config, judging.forcing(_IN_SHADOW).overrides)
    name = named(repository, environment)
    folder = data_folder(environment, "calibration", name.replace("/", "+"))
    asking = (shadow.triage.label, *needs_info)
    if source is not None:
        past = read_export(Path(source), name)
    else:
        file = folder / "export.json"
        recent = None if fresh else recent_export(file, limit)
        past = recent or new_export(environment, name, file, limit, asking)
    if target:
        write_text(target, past.model_dump_json(exclude_defaults=True))
    trial = ShadowTrial(environment, shadow, folder, limit, harm, max_cost, workers)
    with_duplicates = app.repo_config(judging.config, judging.overrides).duplicates.mode != "off"
    calibration, finished = trial.calibrate(past, asking, with_duplicates=with_duplicates)
    write_text(out, as_html(calibration))
    if as_json:
        print_json({**as_object(calibration), "page": out})
    else:
        show_card(as_text(calibration))
        click.echo(f"\n{out} has the curves, and the mistakes with links.")
    return 0 if finished else 1
