"""``bouncer doctor``: check the settings and everything that Bouncer needs, or one bouncer.yml."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import Field

from bot.cli.files import json_option, print_json
from bot.cli.running import settings_options
from bot.core.errors import OperatorError
from bot.core.frozen import Frozen

#: Bad input, as everywhere: a wrong file is not a failed check.
BAD_INPUT = 2
AREAS = ("settings", "files", "database", "github", "address", "model", "sandbox")


class Diagnosis(Frozen):
    """The result of one check."""

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
@click.option("--config", "config", metavar="FILE", help="Check only this bouncer.yml (- reads standard input).")
@click.option(
    "--skip",
    multiple=True,
    type=click.Choice(AREAS),
    help="Skip an area (repeatable).",
)
@click.option("--github", "only_github", is_flag=True, help="Check GitHub alone.")
@click.option("--verbose", is_flag=True, help="List the checks that are fine too.")
@json_option
@settings_options
def command(
    config: str | None,
    skip: tuple[str, ...],
    only_github: bool,
    verbose: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Check settings, database, GitHub, the public address, model and sandbox; failures first, with a remedy.

    Exit code 1: a check failed. 2: a setting or the checked file is wrong.
    """
    if config is not None:
        return _check_file(config, as_json)
    if only_github:
        skip = tuple(area for area in AREAS if area != "github")
    findings = sorted(_check(skip, settings), key=lambda finding: ("fail", "note", "ok").index(finding.state))
    counts = Counter(finding.state for finding in findings)
    if as_json:
        rows = [finding.model_dump() for finding in findings]
        print_json({"ok": not counts["fail"], "findings": rows})
    else:
        for finding in findings:
            if verbose or finding.state != "ok":
                click.echo(str(finding))
        click.echo(f"{_count(counts['ok'], 'check')} fine{'' if verbose else ' (--verbose)'}")
        click.echo(f"{_count(counts['fail'], 'failure')}, {_count(counts['note'], 'note')}")
    return 1 if counts["fail"] else 0


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _check(skip: Collection[str], settings: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """Yield all findings. Each area needs the ones before it."""
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


def _check_file(file: str, as_json: bool) -> int:
    from bot.core import config_file
    from bot.core.io_limits import read_file

    try:
        # One byte more than allowed, so that a larger file is reported as too large.
        size = config_file.MAX_BYTES
        content = sys.stdin.buffer.read(size + 1) if file == "-" else read_file(Path(file), size)
        _, problems = config_file.load(content)
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror or error}") from None
    if as_json:
        print_json({"ok": not problems, "file": file, "problems": [problem.model_dump() for problem in problems]})
    elif problems:
        for problem in problems:
            key = f"{problem.key}: " if problem.key else ""
            click.echo(f"{file}:{problem.line}: {key}{problem.message}")
    else:
        click.echo(f"{file}: fine")
    return BAD_INPUT if problems else 0
