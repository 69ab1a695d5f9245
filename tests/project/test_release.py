"""Releases: builds are reproducible, workflows are pinned, and no page names a package that is not published."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import bot

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PAGES = [
    ROOT / "README.md",
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    ROOT / "action.yml",
    ROOT / "Dockerfile",
]
#: Packages that pages may have people install from the package index.
PUBLISHED: frozenset[str] = frozenset()


def load(file: Path) -> dict[Any, Any]:
    content: dict[Any, Any] = yaml.safe_load(file.read_text())
    return content


def build(folder: Path, tag: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, "TAG": tag}
    command = [ROOT / ".ci/build", folder]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_build_of_a_release_is_reproducible_and_hashed(tmp_path: Path) -> None:
    done = build(tmp_path / "first", f"v{bot.__version__}")
    assert done.returncode == 0, done.stderr
    files = {file.name: file for file in (tmp_path / "first").iterdir()}
    name = f"bouncer_bot-{bot.__version__}"
    assert set(files) == {f"{name}-py3-none-any.whl", f"{name}.tar.gz", "sbom.json", "SHA256SUMS"}
    for line in files.pop("SHA256SUMS").read_text().splitlines():
        digest, _, file = line.partition("  ")
        assert hashlib.sha256(files.pop(file).read_bytes()).hexdigest() == digest
    assert not files
    # The script itself builds twice and compares. In a list of components, a number or the time of the day would
    # differ each time.
    bill = json.loads((tmp_path / "first" / "sbom.json").read_text())
    assert "serialNumber" not in bill
    committed = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, check=True)
    assert datetime.fromisoformat(bill["metadata"]["timestamp"]).timestamp() == int(committed.stdout)
    assert {"flask", "dbos"} <= {component["name"].lower() for component in bill["components"]}


def test_tag_of_another_version_is_not_built(tmp_path: Path) -> None:
    done = build(tmp_path / "out", "v9.9.9")
    assert (done.returncode, done.stderr) == (1, f"build: the tag is v9.9.9, the version is {bot.__version__}\n")


def test_version_is_stated_alike_everywhere() -> None:
    version = bot.__version__
    assert re.search(rf'^version = "{re.escape(version)}"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert f'LABEL org.opencontainers.image.version="{version}"' in (ROOT / "Dockerfile").read_text()
    heading = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading
    assert heading[1] == version
    done = subprocess.run([sys.executable, "-m", "bot", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == version


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflow_is_pinned_and_starts_without_rights(file: Path) -> None:
    workflow = load(file)
    assert workflow["permissions"] == {}
    assert "pull_request_target" not in workflow[True]  # YAML 1.1 reads the key "on" as true
    for name, job in workflow["jobs"].items():
        assert "timeout-minutes" in job, name
        for step in job["steps"]:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + "0" * 40)), step
            assert "${{" not in step.get("run", ""), f"{name}: a value of the event stands in a script"


def test_workflows_use_the_same_scripts_as_people() -> None:
    steps = [step for file in WORKFLOWS for job in load(file)["jobs"].values() for step in job["steps"]]
    scripts = "\n".join(step.get("run", "") for step in steps)
    for script in (".ci/run", ".ci/build", ".ci/lock --upgrade", ".ci/prices", ".ci/audit"):
        assert script in scripts
        assert (ROOT / script.split()[0]).is_file()


def test_no_page_installs_a_package_that_is_not_published() -> None:
    installed = {
        (page.name, name)
        for page in PAGES
        for command in re.findall(r"(?:pip|pipx|uvx?)\S* install ([^`\n|]*)", page.read_text())
        for name in re.split(r"&&|;|\\", command)[0].split()
        if re.match(r"[A-Za-z]", name)
        and not name.startswith(("git+",))
        and not re.search(r"\.txt$|^(?:REPOSITORY|bubblewrap|chromium)", name)
    }
    assert {name for _, name in installed} <= PUBLISHED, installed
