"""Fixtures and rules that hold for every test."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from bot.sandbox.bubblewrap import Bubblewrap
    from bot.sandbox.protocol import ProgramResult, ProgramRun

# A busy machine is no finding: examples are not timed.
settings.register_profile("bouncer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bouncer")

# Where a test configures no logs, a traceback is plain: with colours and the values of variables, it takes 0.1 s.
structlog.configure(processors=[structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)])

# If it is installed, jsonschema builds dozens of parsers with it, which takes a second in every worker. No test
# checks the format of an IRI.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parent.parent
#: Folders whose files start servers or sandboxes, or install packages.
_FOLDERS = (
    "e2e", "bot/cli", "bot/pipeline", "bot/reproduction", "bot/sandbox", "evaluation/brt", "evaluation/bloom",
)  # fmt: skip
_LONG = [ROOT / "tests" / folder for folder in _FOLDERS]
_LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real research data; the test is skipped where it is not at hand."""
    folder = Path(os.environ.get("BOUNCER_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no research data at {folder}: set BOUNCER_DATA")
    return folder


@pytest.fixture
def remembered_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a program once on the same files in a test. Flaky tests need a second run; others repeat the first."""
    from bot.sandbox.bubblewrap import Bubblewrap

    results: dict[str, ProgramResult] = {}
    run = Bubblewrap.run

    def remembered(sandbox: Bubblewrap, request: ProgramRun) -> ProgramResult:
        if request.writable:
            return run(sandbox, request)
        files = (path for path in sorted(request.workdir.rglob("*")) if path.is_file())
        tree = [(path.relative_to(request.workdir), path.stat().st_mode, path.read_bytes()) for path in files]
        key = repr((sandbox, replace(request, workdir=Path()), tree))
        if key not in results:
            results[key] = run(sandbox, request)
        return results[key]

    monkeypatch.setattr(Bubblewrap, "run", remembered)


def missing(reason: str) -> None:
    """Skip the test with one line; fail it where nothing may be missing (``BOUNCER_NO_SKIP``)."""
    if os.environ.get("BOUNCER_NO_SKIP"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, nor later in what stays until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, so that no worker has one left when the others are done."""
    items.sort(key=lambda item: item.path.parent not in _LONG)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("debian"):
        package = marker.args[0]
        if package == "slirp4netns" and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            pytest.skip("this machine has no /dev/net/tun")  # and no package brings it
        program = {"bubblewrap": "bwrap", "default-jdk-headless": "javac"}.get(package, package)
        there = shutil.which(program) or Path(f"/usr/share/doc/{package}").is_dir()
        if not there:
            missing(f"needs the Debian package {package}")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only loopback can be reached: a test that leaves the machine fails loudly."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(_LOOPBACK):
            raise RuntimeError(f"a test tried to reach {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
