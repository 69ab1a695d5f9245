"""Real execution on real bugs of published packages: two neighbouring releases, the report, and three tests.

Reports are in our own words, after the packages' change logs; every test was run on both releases. All releases
have wheels: nothing is built, so no set-up code of a stranger runs outside of the sandbox.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.evaluation.running import read, write

pytestmark = [pytest.mark.index, pytest.mark.debian("bubblewrap")]


@dataclass(frozen=True)
class Bug:
    """``gold`` fails on ``old`` and passes on ``new``; ``wrong`` fails on both; ``passing`` passes on both."""

    package: str
    old: str
    new: str
    report: str
    gold: str
    wrong: str
    passing: str
    exception: str | None
    """What ``gold`` fails with on the old release; None where it does not end."""

    @property
    def id(self) -> str:
        return f"{self.package}-{self.old}"


BUGS = (
    Bug(
        package="parse",
        old="1.20.1",
        new="1.20.2",
        report="A field name with a hyphen is not found\n\n"
        "`parse.parse('hello {my-name}', 'hello world')` gives None. Names of HTTP headers have hyphens, so the "
        "field should be named 'my-name', as it is with '{my_name}'.",
        gold="import parse\n\n\n"
        "def test_a_field_name_may_have_a_hyphen():\n"
        "    result = parse.parse('hello {my-name}', 'hello world')\n"
        "    assert result is not None\n"
        "    assert result.named == {'my-name': 'world'}\n",
        wrong="import parse\n\n\n"
        "def test_hyphen():\n"
        "    assert parse.search('{my-name}', 'hello').named == {'my_name': 'hello'}\n",
        passing="import parse\n\n\n"
        "def test_underscore():\n"
        "    assert parse.parse('hello {my_name}', 'hello world').named == {'my_name': 'world'}\n",
        exception="AssertionError",
    ),
    Bug(
        package="zipp",
        old="3.19.0",
        new="3.19.1",
        report="Endless loop on a name that starts with two slashes\n\n"
        "With an archive that has an entry `//one-slash.txt`, `zipp.Path(archive).iterdir()` never returns.",
        gold="import io\nimport zipfile\n\nimport zipp\n\n\n"
        "def test_a_name_with_two_slashes_can_be_listed():\n"
        "    archive = zipfile.ZipFile(io.BytesIO(), 'w')\n"
        "    archive.writestr('//one-slash.txt', b'')\n"
        "    archive.filename = ''\n"
        "    assert [path.name for path in zipp.Path(archive).iterdir()]\n",
        wrong="import io\nimport zipfile\n\nimport zipp\n\n\n"
        "def test_names():\n"
        "    archive = zipfile.ZipFile(io.BytesIO(), 'w')\n"
        "    archive.writestr('one.txt', b'')\n"
        "    archive.filename = ''\n"
        "    assert [path.name for path in zipp.Path(archive).iterdir()] == ['/one.txt']\n",
        passing="import io\nimport zipfile\n\nimport zipp\n\n\n"
        "def test_names():\n"
        "    archive = zipfile.ZipFile(io.BytesIO(), 'w')\n"
        "    archive.writestr('one.txt', b'')\n"
        "    archive.filename = ''\n"
        "    assert [path.name for path in zipp.Path(archive).iterdir()] == ['one.txt']\n",
        exception=None,
    ),
)


@pytest.fixture(scope="module")
def releases(pytestconfig: pytest.Config) -> Path:
    """A folder with the old and the new releases of all packages, kept from one test session to the next."""
    cache = pytestconfig.cache
    assert cache is not None
    folder = cache.mkdir("releases")
    _install(folder, "old", [f"{bug.package}=={bug.old}" for bug in BUGS])
    _install(folder, "new", [f"{bug.package}=={bug.new}" for bug in BUGS])
    return folder


def _install(folder: Path, name: str, requirements: list[str]) -> None:
    listing = folder / f"{name}.txt"
    if listing.is_file() and listing.read_text().split() == requirements:
        return
    shutil.rmtree(folder / name, ignore_errors=True)
    options = ["--quiet", "--retries=5", "--no-deps", "--no-compile", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder / name), *requirements]
    for _ in range(2):  # the index may fail once
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            listing.write_text("\n".join(requirements))
            return
    missing(f"releases cannot be installed from the package index: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="module")
def records(releases: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, dict[str, Any]]:
    """The records of ``bouncer-eval replay brt`` on every candidate of every bug, by task id."""
    folder = tmp_path_factory.mktemp("brt")
    write(folder / "cases.jsonl", [_case(bug, releases) for bug in BUGS])
    write(folder / "candidates.jsonl", [line for bug in BUGS for line in _candidates(bug)])
    command = [sys.executable, "-m", "evaluation", "replay", "brt", "--seconds", "5", "--json"]
    for name in ("cases", "candidates"):
        command += [f"--{name}", str(folder / f"{name}.jsonl")]
    done = subprocess.run([*command, "--out", str(folder / "run")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failed"] == 0
    return {record["task_id"]: record for record in read(folder / "run" / "records.jsonl")}


def _case(bug: Bug, releases: Path) -> dict[str, Any]:
    return {
        "instance_id": bug.id,
        "problem_statement": bug.report,
        "base": str(releases / "old"),
        "fixed": str(releases / "new"),
        "command": [sys.executable, "-m", "pytest", "-q", "{tests}"],
        # The plugins around these tests are no part of theirs, and slow to load.
        "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }


def _candidates(bug: Bug) -> list[dict[str, str]]:
    tests = {"gold": bug.gold, "wrong": bug.wrong, "passing": bug.passing}
    path = "tests/test_report.py"
    return [
        {"instance_id": bug.id, "candidate_id": name, "path": path, "content": test}
        for name, test in tests.items()
    ]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_the_gold_test_reproduces_the_bug(records: Mapping[str, dict[str, Any]], bug: Bug) -> None:
    record = records[f"{bug.id}/gold"]
    assert (record["applied"], record["brt"], record["flaky"]) == (True, True, False), record["reason"]
    assert record["base"]["status"] == ("timeout" if bug.exception is None else "failed")
    assert record["base"]["exception_type"] == bug.exception
    assert record["fixed"]["status"] == "passed"


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("wrong", "failed", "it fails on the fixed version too: "),
        ("passing", "passed", "it passes on the buggy version"),
    ],
)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_any_other_test_is_rejected(
    records: Mapping[str, dict[str, Any]], bug: Bug, name: str, status: str, reason: str
) -> None:
    record = records[f"{bug.id}/{name}"]
    assert (record["applied"], record["brt"]) == (True, False)
    assert (record["base"]["status"], record["fixed"]["status"]) == (status, status)
    assert record["reason"].startswith(reason)
