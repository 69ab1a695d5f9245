"""``bouncer-eval build crbench``: the command's arguments, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.crbench.blame import BlameOptions
from evaluation.crbench.build import MappingOptions, map_instances, tally
from evaluation.crbench.clones import Clones
from evaluation.crbench.lines import LineFile
from evaluation.crbench.mapping import Instance, MappedInstance
from evaluation.sample import fingerprint, read_rows, shaped, task_id, unique


def read_instances(source: str) -> list[Instance]:
    """The fixes of a data set. Raises OperatorError with file and line for the first bad row."""
    rows = ((task_id(row), row.where, shaped(row, Instance)) for row in read_rows(source))
    return list(unique(rows))


@click.command("crbench")
@click.option("--instances", required=True, help="Fixes like SWE-bench's: JSON Lines, or hf:owner/name.")
@click.option("--repos", type=click.Path(path_type=Path), required=True, help="Folder of clones.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="JSON Lines; continued if it exists.")
@click.option("--offline", is_flag=True, help="Find pull requests in the clones' own history.")
@click.option("--until", type=click.Choice(["mapping", "tasks"]), default="tasks", show_default=True)
@click.option("--pull-refs", type=click.Choice(["ignore", "verify", "infer"]), default="verify", show_default=True)
@click.option("--unmapped", type=click.Choice(["ignore", "discard"]), default="ignore", show_default=True)
@click.option("--ignore-whitespace", is_flag=True, help="git blame -w.")
@click.option("--follow-moves", is_flag=True, help="git blame -M -C.")
@click.option("--include-tests", is_flag=True, help="Blame lines of test files too.")
@click.option("--include-documentation", is_flag=True, help="Blame lines of documentation too.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True)
@click.option("--overwrite", is_flag=True, help="Begin anew where --out exists.")
def build_command(instances: str, repos: Path, out: Path, workers: int, overwrite: bool, **policy: Any) -> None:
    """Build CR-Bench tasks from fixes and the repositories that they fixed (CR-Bench, Algorithm 1)."""
    fixes = read_instances(instances)
    blame = BlameOptions(
        **{name: policy[name] for name in BlameOptions.__dataclass_fields__}  # the flags carry the same names
    )
    question = {"instances": fingerprint(instances) or instances, **policy}
    with LineFile(out, question, overwrite) as lines:
        done = {row.get("instance_id") for row in lines.rows()}
        waiting = [fix for fix in fixes if fix.instance_id not in done]
        with Clones(repos, waiting, policy["pull_refs"]) as clones:
            options = MappingOptions(blame, policy["unmapped"], workers)
            for mapped in map_instances(waiting, clones, options):
                lines.append(mapped)
        counts = tally(MappedInstance.model_validate(row) for row in lines.rows())
    for reason, count in counts.most_common():
        click.echo(f"{count:6}  {reason}", err=True)
