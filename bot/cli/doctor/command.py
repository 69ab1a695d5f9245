"""``bouncer doctor``: what stands between an operator and a working Bouncer, or what is wrong in a bouncer.yml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli.running import settings_options
from bot.errors import OperatorError

if TYPE_CHECKING:
    from bot.core.config_file import Problem

#: Bad input, as everywhere: a wrong file is not a failed check.
BAD_INPUT = 2


@click.command()
@click.option("--config", "config", metavar="FILE", help="Check this bouncer.yml and nothing else.")
@click.option(
    "--skip",
    multiple=True,
    type=click.Choice(["settings", "files", "database", "github", "model", "sandbox"]),
    help="Leave an area out; may be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@settings_options
def command(config: str | None, skip: tuple[str, ...], as_json: bool, **settings: Any) -> int:
    """Check settings, database, GitHub, model and sandbox; one line each, with what to do about it.

    Ends with 1 where something fails, and with 2 where a setting or the checked file is wrong.
    """
    if config is not None:
        return _check_file(Path(config), as_json)
    from bot.cli import doctor
    from bot.ops.settings import load

    failed, findings = False, []
    for finding in doctor.examine(load(env_file=Path(".env"), **settings), skip):
        failed = failed or finding.state == "fail"
        findings.append(finding.model_dump())
        if not as_json:
            click.echo(str(finding))
    if as_json:
        click.echo(json.dumps({"ok": not failed, "findings": findings}))
    return 1 if failed else 0


def _check_file(file: Path, as_json: bool) -> int:
    from bot.core import config_file

    try:
        _, problems = config_file.load(file.read_bytes())
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror or error}") from None
    if as_json:
        found = [problem.model_dump() for problem in problems]
        click.echo(json.dumps({"ok": not problems, "file": str(file), "problems": found}))
    elif problems:
        for problem in problems:
            click.echo(_line(file, problem))
    else:
        click.echo(f"{file}: fine")
    return BAD_INPUT if problems else 0


def _line(file: Path, problem: Problem) -> str:
    key = f"{problem.key}: " if problem.key else ""
    return f"{file}:{problem.line}: {key}{problem.message}"
