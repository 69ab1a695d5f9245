"""``bouncer-eval build bloom`` and ``score bloom``. What they do is imported when they do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from evaluation.bloom import LANGUAGE, Change
from evaluation.cli import cost_option, draw_option, json_option, limit_option, seed_option

_path = click.Path(path_type=Path)


@click.command("bloom")
@click.option("--cases", required=True, metavar="FILE", help="As for replay brt.")
@click.option(
    "--change",
    "changes",
    type=click.Choice(get_args(Change)),
    multiple=True,
    required=True,
    help="Repeatable; applied in this order.",
)
@click.option(
    "--out", required=True, metavar="DIR", type=_path, help="Output folder; an existing build is continued."
)
@click.option("--model", metavar="ID", help="Rewrites and names; triages for clarified.  [default: BOUNCER_MODEL]")
@click.option(
    "--judge", metavar="ID", help="Verifies meanings; answers as the author for clarified.  [default: --model]"
)
@click.option("--language", default=LANGUAGE, show_default=True, help="For translated.")
@click.option(
    "--known", "findings", metavar="FILE", help="For clarified: JSON Lines, instance_id and hints_text or patch."
)
@click.option("--unverified", is_flag=True, help="Keep masked cases that no developer's test verifies.")
@limit_option
@draw_option
@cost_option
@json_option
def build(**options: Any) -> int:
    """Reword reports or rename methods of known bugs, layer by layer, to see what a model's success depends on."""
    from evaluation.bloom.building import build_command as run

    return run(**options)


@click.command("bloom")
@click.option("--baseline", metavar="RUN", type=_path, help="The run on unchanged cases.")
@click.option("--repeat", metavar="RUN", multiple=True, type=_path, help="Remember: a repetition of the baseline.")
@click.option(
    "--altered", metavar="RUN", multiple=True, type=_path, help="Understand, Apply: a run on changed cases."
)
@click.option(
    "--open",
    "open_book",
    metavar="RUN",
    multiple=True,
    type=_path,
    help="Analyze: the --altered ones with --book.",
)
@click.option("--picked", metavar="RUN", type=_path, help="Evaluate: the baseline's run with --pick.")
@click.option("--clarified", metavar="RUN", type=_path, help="Create: a run on the cases of --asked.")
@click.option(
    "--asked",
    "clarified_cases",
    metavar="FILE",
    type=_path,
    help="Create: cases.jsonl of build bloom --change clarified.",
)
@click.option("--unclear", metavar="FILE", help="Create: JSON Lines, instance_id and unclear (true or false).")
@click.option("--plain", is_flag=True, help="LIBRO's own method: ignore repaired and inverted drafts.")
@click.option(
    "--reports",
    metavar="F",
    help="Table 1, shared reports, Analyze: JSON Lines with bug_id or instance_id, title and description_html "
    "or body, or problem_statement.",
)
@click.option("--annotations", metavar="F", help="Analyze: JSON Lines, bug_id and each component, true or false.")
@click.option("--rankings", metavar="CSV", type=_path, help="Analyze: the reports that LIBRO reproduced.")
@click.option("--run", metavar="RUN", type=_path, help="Analyze: the reports that a run reproduced.")
@seed_option
@click.option("--out", metavar="FILE", type=_path, help="Write tables and figures as .html, .md or .json.")
@json_option
def score(**options: Any) -> None:
    """Compare runs of replay brt layer by layer, or rank the components of reports by their effect on success."""
    from evaluation.bloom.report import score_command as run

    run(**options)
