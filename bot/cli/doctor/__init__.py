"""``bouncer doctor``: check the settings and everything that Bouncer needs, or one bouncer.yml."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import Field, SecretStr
from sqlalchemy.engine import make_url

from bot import app
from bot.cli.files import json_option, print_json
from bot.cli.running import settings_options
from bot.core import config_file
from bot.core.errors import OperatorError, SandboxError, SettingsError
from bot.core.frozen import Frozen
from bot.core.io_limits import read_file
from bot.core.text import amount
from bot.pipeline.store.database import database_at, open_database
from bot.pipeline.store.migration import HEAD, UPGRADABLE, version
from bot.sandbox import network
from bot.sandbox.protocol import Limits, ProgramRun
from bot.settings import Settings, load, unknown_variables

#: Bad input, as everywhere: a wrong file is not a failed check.
BAD_INPUT = 2
AREAS = ("settings", "files", "database", "github", "address", "model", "sandbox")
#: Without them ``bouncer serve`` accepts no delivery.
_SET_UP = "create the app with `bouncer serve` at /setup, or set it"
_PASSWORD = re.compile(r"(://[^:/@]*):[^@]*@")


class Diagnosis(Frozen):
    """The result of one check."""

    subject: str
    state: Literal["ok", "note", "fail"] = Field(description="note: works, but worth knowing")
    message: str
    remedy: str = Field("", description="what to do about it")

    def __str__(self) -> str:
        """Return one line, even if the message has several."""
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
    return amount(number, noun) if number else f"no {noun}s"


def _check(skip: Collection[str], settings: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """Yield all findings. Each area needs the ones before it."""
    from bot.cli.doctor import remote

    areas = {
        "settings": variables,
        "files": files,
        "database": database,
        "github": remote.github,
        "address": remote.address,
        "model": remote.models,
        "sandbox": sandbox,
    }
    loaded = load(env_file=Path(".env"), **settings)
    for area, check in areas.items():
        if area not in skip:
            yield from check(loaded)


def _check_file(file: str, as_json: bool) -> int:
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


def variables(settings: Settings) -> Iterator[Diagnosis]:
    """Yield a line per setting, and unknown variables. Secrets are shown by their presence only."""
    remarks = {remark.subject: remark for remark in (*_about_github(settings), *_about_running(settings))}
    for name in Settings.model_fields:
        yield remarks.get(name.upper()) or ok(name.upper(), _display_value(name, settings))
    for name, suggestion in unknown_variables().items():
        yield note(name, "no setting has this name", f"did you mean {suggestion}?" if suggestion else "remove it")


def _about_github(settings: Settings) -> Iterator[Diagnosis]:
    if settings.github_app_id is None:
        yield fail("GITHUB_APP_ID", "not set", _SET_UP)
    if settings.github_app_private_key is None and settings.github_app_private_key_path is None:
        yield fail("GITHUB_APP_PRIVATE_KEY", "neither it nor GITHUB_APP_PRIVATE_KEY_PATH is set", _SET_UP)
    secret = "GITHUB_WEBHOOK_SECRET"  # noqa: S105 - the variable's name
    if not settings.webhook_secrets:
        yield fail(secret, "not set: no delivery can be verified", _SET_UP)
    elif len(min(settings.webhook_secrets, key=len)) < 16:
        yield note(secret, "shorter than 16 characters: it can be guessed", "use a long random one")
    if settings.bouncer_admins and not (settings.github_app_client_id and settings.github_app_client_secret):
        yield fail(
            "BOUNCER_ADMINS",
            "login with GitHub is not possible: the App's client id or secret is not set",
            "set GITHUB_APP_CLIENT_ID and GITHUB_APP_CLIENT_SECRET, as the App's settings on GitHub show them",
        )


def _about_running(settings: Settings) -> Iterator[Diagnosis]:
    model = settings.bouncer_model
    if not model:
        remedy = "name a model, such as openai:gpt-5-mini"
        yield fail("BOUNCER_MODEL", "not set: nothing is judged or posted", remedy)
    if settings.bouncer_admin_password is None and not settings.bouncer_admins:
        remedy = "set it, or BOUNCER_ADMINS, to open the one at /"
        yield note("BOUNCER_ADMIN_PASSWORD", "not set: there is no dashboard", remedy)
    if settings.bouncer_notify_url and not settings.bouncer_notify_secret:
        message = "BOUNCER_NOTIFY_SECRET is not set: the receiver cannot tell who sends"
        yield fail("BOUNCER_NOTIFY_URL", message, "set a long random one")
    if settings.in_shadow:
        yield note(
            "BOUNCER_MODE", "shadow: everything is judged, nothing is posted", "set BOUNCER_MODE=live to go live"
        )
    if settings.bouncer_paused:
        yield note("BOUNCER_PAUSED", "everything is paused: no model is asked and nothing is posted")
    if settings.bouncer_daily_budget_usd is None:
        message = "not set: there is no daily limit to what models cost"
        yield note("BOUNCER_DAILY_BUDGET_USD", message, "set it to the most that a day may cost")


def _display_value(name: str, settings: Settings) -> str:
    value: Any = getattr(settings, name)
    if value is None:
        return "not set"
    if isinstance(value, SecretStr):
        count = len(settings.webhook_secrets) if name == "github_webhook_secret" else 1
        return "set" if count == 1 else f"{count} secrets set"
    text = _PASSWORD.sub(r"\1:***@", str(value))
    return text if name in settings.model_fields_set else f"{text} (default)"


def files(settings: Settings) -> Iterator[Diagnosis]:
    """Check that the data folder, prompts, prices and the App's key exist and can be used."""
    from bot.models.budget import load_prices

    yield _writable("data folder", settings.bouncer_data_dir)
    prompts, prices = settings.bouncer_prompts_dir, settings.bouncer_prices_file
    yield _read("prompts", lambda: amount(len(app.prompts(settings).names()), "prompt"), prompts)
    yield _read("prices", lambda: amount(len(load_prices(prices).models), "model"), prices)
    yield from _key(settings)


def _writable(subject: str, folder: Path) -> Diagnosis:
    """Check that a folder can be written to. If it does not exist, its nearest parent counts."""
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        return fail(
            subject, f"{nearest} is no folder that can be written to", "set BOUNCER_DATA_DIR to one that can"
        )
    if folder.exists() and folder.stat().st_mode & 0o077:
        return note(subject, f"{folder} is open to other users of this machine", f"chmod 700 {folder}")
    return ok(subject, f"{folder}{'' if folder.exists() else ' (made when needed)'}")


def _read(subject: str, read: Callable[[], str], place: Path | None) -> Diagnosis:
    try:
        return ok(subject, f"{read()}, {place or 'as packaged'}")
    except SettingsError as error:
        return fail(subject, str(error))


def _key(settings: Settings) -> Iterator[Diagnosis]:
    from bot.github.identity import load_key

    try:
        key = settings.private_key()
        if key is None:
            return
        load_key(key, settings.private_key_source)
    except SettingsError as error:
        yield fail("private key", str(error), "download a new one from the App's settings on GitHub")
    else:
        yield ok("private key", "can be read")


def database(settings: Settings) -> Iterator[Diagnosis]:
    """Check that the database can be reached and is migrated."""
    try:
        place = database_at(settings.database_url).engine.url
        file = Path(str(place.database))
        if place.get_backend_name() == "sqlite" and not file.exists():
            if file.parent.is_dir():
                yield note("database", f"{file} does not exist yet; it is created on first start")
            else:
                yield fail("database", f"there is no folder {file.parent}", "make it, or set DATABASE_URL")
            return
        connection = open_database(settings.database_url, busy_seconds=3.0)
    except SettingsError as error:
        yield fail("database", str(error), "check DATABASE_URL, and that the server runs")
        return
    try:
        revision = version(connection)
    finally:
        connection.close()
    url = make_url(settings.database_url).render_as_string(hide_password=True)
    yield ok("database", f"{url} can be reached")
    yield _version(revision)


def _version(revision: str | None) -> Diagnosis:
    if revision == HEAD:
        return ok("migrations", f"at {revision}, up to date")
    if revision is None:
        return note("migrations", "none yet; they run on first start")
    if revision in UPGRADABLE:
        return note("migrations", f"at {revision}, {HEAD} is new: it runs at the next start", "back up first")
    return fail("migrations", f"at {revision}, which only a newer Bouncer knows", "upgrade Bouncer")


_REMEDY = {
    "bubblewrap": "install it (Debian: apt-get install bubblewrap), or set BOUNCER_SANDBOX to docker or off",
    "docker": "start the Docker engine, or set BOUNCER_SANDBOX to bubblewrap or off",
}


def sandbox(settings: Settings) -> Iterator[Diagnosis]:
    """Run a program in the sandbox."""
    runner = app.build_sandbox(settings)
    if runner is None:
        yield note("sandbox", "off: no test is drafted or run")
        return
    with tempfile.TemporaryDirectory(prefix="bouncer-doctor-") as folder:
        try:
            outcome = runner.run(ProgramRun(["echo", "inside"], workdir=Path(folder), limits=Limits(seconds=30)))
        except SandboxError as error:
            yield fail("sandbox", str(error), _REMEDY[runner.name])
            return
    if outcome.exit_code != 0 or outcome.output.strip() != "inside":
        yield fail(
            "sandbox", f"{runner.name} runs, but a program in it ends with {outcome.ending}", _REMEDY[runner.name]
        )
        return
    yield ok("sandbox", f"{runner.name} runs programs without network ({outcome.seconds:.1f} s)")
    yield from _setup_network(settings)


def _setup_network(settings: Settings) -> Iterator[Diagnosis]:
    if settings.bouncer_sandbox_network == "none":
        yield ok("sandbox", "set-up commands have no network (BOUNCER_SANDBOX_NETWORK=none)")
        return
    if settings.bouncer_sandbox == "docker":
        why = None if settings.bouncer_sandbox_network else "BOUNCER_SANDBOX_NETWORK names no network"
    else:
        why = network.missing()
    if why is None:
        yield ok("sandbox", "set-up commands reach public addresses alone")
    else:
        yield note(
            "sandbox",
            f"set-up commands (`reproduce.setup`) are refused: {why}",
            "BOUNCER_SANDBOX_NETWORK=none runs them without a network",
        )
