"""``bouncer doctor``: what stands between an operator and a working Bouncer, or what is wrong in a bouncer.yml.

One diagnosis a line, with its remedy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from pydantic import Field

from bot.cli.files import json_option, print_json
from bot.cli.running import settings_options
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen

if TYPE_CHECKING:
    from bot.core.config import Problem

#: Bad input, as everywhere: a wrong file is not a failed check.
BAD_INPUT = 2
AREAS = ("settings", "files", "database", "github", "address", "model", "sandbox")


class Diagnosis(Frozen):
    """What was looked at, and how it stands."""

    subject: str
    state: Literal["ok", "note", "fail"] = Field(description="note: works, but worth knowing")
    message: str
    remedy: str = Field("", description="what to do about it")

    def __str__(self) -> str:
        """One line, whatever the message holds."""
        text = f"{self.message}; {self.remedy}" if self.remedy else self.message
        return f"{self.state:<4}  {self.subject}: {' '.join(text.split())}"


def ok(subject: str, message: str) -> Diagnosis:
    return Diagnosis(subject=subject, state="ok", message=message)


def note(subject: str, message: str, remedy: str = "") -> Diagnosis:
    return Diagnosis(subject=subject, state="note", message=message, remedy=remedy)


def fail(subject: str, message: str, remedy: str = "") -> Diagnosis:
    return Diagnosis(subject=subject, state="fail", message=message, remedy=remedy)


@click.command()
@click.option("--config", "config", metavar="FILE", help="Check this bouncer.yml and nothing else.")
@click.option(
    "--skip",
    multiple=True,
    type=click.Choice(AREAS),
    help="Leave an area out; may be given several times.",
)
@json_option
@settings_options
def command(config: str | None, skip: tuple[str, ...], as_json: bool, **settings: Any) -> int:
    """Check settings, database, GitHub, the public address, model and sandbox; one line each, with a remedy.

    Ends with 1 where something fails, and with 2 where a setting or the checked file is wrong.
    """
    if config is not None:
        return _check_file(Path(config), as_json)
    failed, findings = False, []
    for finding in _examined(skip, settings):
        failed = failed or finding.state == "fail"
        findings.append(finding.model_dump())
        if not as_json:
            click.echo(str(finding))
    if as_json:
        print_json({"ok": not failed, "findings": findings})
    return 1 if failed else 0


def _examined(skip: Collection[str], settings: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """All findings, as they are made; the areas come in the order in which one thing needs another."""
    from bot.cli.doctor import machine, remote
    from bot.settings import load

    areas = {
        "settings": machine.variables,
        "files": machine.files,
        "database": machine.database,
        "github": remote.github,
        "address": remote.address,
        "model": remote.models,
        "sandbox": machine.sandbox,
    }
    loaded = load(env_file=Path(".env"), **settings)
    for area, check in areas.items():
        if area not in skip:
            yield from check(loaded)


def _check_file(file: Path, as_json: bool) -> int:
    from bot.core import config_file
    from bot.core.io_limits import read_file

    try:
        _, problems = config_file.load(read_file(file, config_file.MAX_BYTES))
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror or error}") from None
    if as_json:
        found = [problem.model_dump() for problem in problems]
        print_json({"ok": not problems, "file": str(file), "problems": found})
    elif problems:
        for problem in problems:
            click.echo(_line(file, problem))
    else:
        click.echo(f"{file}: fine")
    return BAD_INPUT if problems else 0


def _line(file: Path, problem: Problem) -> str:
    key = f"{problem.key}: " if problem.key else ""
    return f"{file}:{problem.line}: {key}{problem.message}"
