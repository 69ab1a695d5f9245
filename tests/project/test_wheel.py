"""The installed package: built, without tests, starts without any model's SDK, and answers --help in no time."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True)
    (built,) = folder.glob("bouncer_bot-*.whl")
    return built


def test_the_wheel_holds_the_program_and_its_data_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"bot", "evaluation"}
    for needed in (
        "app.yml",
        "got-a-comment.md",
        "models/prices.yml",
        "web/static/bouncer.css",
        "web/templates/dashboard/base.html",
    ):
        assert f"bot/{needed}" in names
    assert not [name for name in names if "test_" in Path(name).name or "conftest" in name]


def test_it_installs_in_a_clean_environment_and_help_reads_little(wheel: Path, tmp_path: Path) -> None:
    """Dependencies come from this environment; that those declared suffice is test_supply_chain's matter."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    here = next(path for path in sys.path if path.endswith("site-packages"))
    # Behind the clean environment's own packages, so that it is the wheel that runs.
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{site}:{here}"}
    script = """
import os, sys, time
begun = time.process_time()
from bot.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
assert "site-packages" in sys.modules["bot"].__file__
heavy = {"openai", "anthropic", "pydantic", "sqlalchemy", "flask", "dbos", "alembic", "httpx2"}
print("read:", sorted(heavy & set(sys.modules)), "seconds:", time.process_time() - begun, file=sys.stderr)
"""
    done = subprocess.run(
        [python, "-c", script], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
    )
    assert "export" in done.stdout
    read, _, seconds = done.stderr.partition(" seconds: ")
    assert read == "read: []"
    # Of the processor, not of the clock: a busy machine changes nothing about it.
    assert float(seconds) < 0.3


def test_a_start_reads_no_sdk_of_a_model_that_is_not_asked() -> None:
    script = (
        "import sys, bot.cli.serve, bot.cli.web, bot.cli.worker, bot.app, bot.models.registry, bot.web.app;"
        "print(sorted({'openai', 'anthropic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
