"""The export that ``bouncer calibrate`` judges: from a file, of the last 24 hours, or new from GitHub."""

from __future__ import annotations

from pathlib import Path

import click
from pydantic import ValidationError

from bot import app
from bot.calibration.export import FRESH, Journal, SteadyChronicle, export
from bot.cli.files import progress, write_text
from bot.cli.remote import reached
from bot.core.errors import OperatorError
from bot.core.io_limits import read_file
from bot.github.history import GitHubChronicle
from bot.github.protocol import Past
from bot.settings import Settings

#: The largest export, bytes.
MAX_EXPORT = 512 << 20


def read_export(file: Path, name: str) -> Past:
    """Read an export of a repository from a file. Raises OperatorError."""
    past = _read(file)
    if past.repository.full_name.lower() != name.lower():
        raise OperatorError(f"{file} is an export of {past.repository.full_name}, not of {name}")
    return past


def recent_export(file: Path, limit: int) -> Past | None:
    """Return the export of an earlier command if it is less than 24 hours old and large enough."""
    if not file.is_file():
        return None
    past = _read(file)
    if app.now() - past.exported_at >= FRESH or past.limit < limit:
        return None
    click.echo(f"using the export of {past.exported_at:%H:%M} UTC; --fresh makes a new one", err=True)
    return past


def new_export(environment: Settings, name: str, file: Path, limit: int, asking: tuple[str, ...]) -> Past:
    """Read an export from GitHub and store it. A killed command leaves its progress to the next one."""
    if environment.github_token is None and environment.needs_setup:
        raise OperatorError(
            f"{name}: set GITHUB_TOKEN or the App's credentials: GitHub shows the original texts of issues only "
            "to a signed-in user"
        )
    calls: list[object] = []
    journal = Journal(file.with_suffix(".partial.jsonl"))
    with reached(environment, name, calls.append) as access, progress() as advance:
        chronicle = SteadyChronicle(
            GitHubChronicle(access.forge),
            journal,
            app.now(),
            lambda why: click.echo(why, err=True),
            lambda: len(calls),
        )
        past = export(chronicle, limit, asking, advance)
    write_text(file, past.model_dump_json(exclude_defaults=True))
    journal.clear()
    return past


def _read(file: Path) -> Past:
    try:
        return Past.model_validate_json(read_file(file, MAX_EXPORT))
    except OSError as error:
        raise OperatorError(f"{file}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "file"
        raise OperatorError(f"{file}: not an export of bouncer calibrate: {key}: {first['msg']}") from None
