"""Commands on files, each a process: diffs and folders of strangers, and what is printed of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.code.diff import parse
from tests.attacks import diffs, files
from tests.attacks.corpus import each, params
from tests.attacks.files import KEYS, MODEL, TRIAGE, lay
from tests.attacks.processes import Ended, run

#: What would steer a terminal, or show text in another order than it has.
STEERS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)


def plain(done: Ended, codes: tuple[int, ...]) -> None:
    """Check that a command ended as expected, with plain text; an error is one line."""
    output = (done.out + done.err).decode()
    assert done.code in codes, output
    assert "Traceback" not in output
    assert not STEERS.search(output), repr(output)
    if done.code == 2:
        assert (done.out, done.err.count(b"\n")) == (b"", 1), output


@pytest.mark.parametrize(("never", "attack"), params(diffs.TABLE))
def test_diff(tmp_path: Path, never: str, attack: bytes) -> None:
    paths = [file.path for file in parse(attack.decode("utf-8", "replace")).files[:1]]
    finding: dict[str, Any] = {
        "line": None,
        "quote": "evil()",
        "symbol": "",
        "category": "logic",
        "suggestion": None,
    }
    finding |= {"impact": "reliability", "severity": "high", "comment": "It fails \x1b[2J. Always."}
    reply = {"reasoning": "x", "findings": [{**finding, "path": path} for path in paths]}
    line = {"model": "m", "subject": "offline/files#1", **reply}
    (tmp_path / "replies.jsonl").write_text(json.dumps(line) + "\n")
    before = {path.name for path in tmp_path.parent.iterdir()}
    done = run(["review", "--diff", "-", *MODEL, "--sarif", "out.sarif"], tmp_path, attack)
    plain(done, (0, 2))
    assert {path.name for path in tmp_path.parent.iterdir()} == before, never
    assert {path.name for path in tmp_path.iterdir()} <= {"replies.jsonl", "out.sarif"}, never
    if done.code == 0:
        log = json.loads((tmp_path / "out.sarif").read_text())
        places = re.findall(r'"uri": "([^"]*)"', json.dumps(log["runs"][0].get("results", [])))
        assert [uri for uri in places if uri.startswith(("/", "file:", "http:", "https:"))] == [], never


@pytest.mark.parametrize(("never", "attack"), params(files.TABLE))
def test_command(tmp_path: Path, never: str, attack: dict[str, Any]) -> None:
    lay(tmp_path, attack["files"])
    done = run(attack["words"], tmp_path, attack["stdin"], OPENAI_API_KEY=KEYS)
    plain(done, attack["code"])
    assert not (tmp_path / "owned").exists(), never
    assert KEYS.encode() not in done.out + done.err, never
    if "--json" in attack["words"] and done.code == 0:
        (line,) = done.out.splitlines()
        assert line.isascii(), never
        assert json.loads(line)["label"] in ("WELL_SPECIFIED", None), never


def test_the_installed_command_imports_no_module_of_the_folder(tmp_path: Path) -> None:
    """Plant all files at once and run the installed program."""
    planted = [attack["files"] for never, _, attack in each(files.TABLE) if "changes what" in never]
    lay(tmp_path, {name: text for texts in planted for name, text in texts.items()})
    program = shutil.which("bouncer", path=str(Path(sys.executable).parent))
    assert program
    done = subprocess.run(
        [program, *TRIAGE, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        env={"LANG": "C.UTF-8"},
    )
    assert json.loads(done.stdout)["label"] == "WELL_SPECIFIED", done.stderr
    assert not (tmp_path / "owned").exists()
