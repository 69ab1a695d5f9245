"""The runner of drafted tests: does it start at all, and is it cut off?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bot import app
from bot.cli.doctor.diagnosis import Diagnosis, fail, note, ok
from bot.errors import SandboxError
from bot.ops.settings import Settings
from bot.sandbox import network
from bot.sandbox.protocol import Limits

_REMEDY = {
    "bubblewrap": "install it (Debian: apt-get install bubblewrap), or set BOUNCER_SANDBOX to docker or off",
    "docker": "start the Docker engine, or set BOUNCER_SANDBOX to bubblewrap or off",
}


def sandbox(settings: Settings) -> Iterator[Diagnosis]:
    """Run one word in it."""
    runner = app.build_sandbox(settings)
    if runner is None:
        yield note("sandbox", "off: no test is drafted or run")
        return
    with tempfile.TemporaryDirectory(prefix="bouncer-doctor-") as folder:
        try:
            outcome = runner.run(["echo", "inside"], workdir=Path(folder), files={}, limits=Limits(seconds=30))
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
