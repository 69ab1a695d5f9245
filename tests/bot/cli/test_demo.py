"""The demonstration: the whole way from a signed delivery to a posted comment, as a newcomer sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def demo(folder: Path, *arguments: str, seconds: int = 280) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "BOUNCER_DATA_DIR": str(folder / "data")}
    return subprocess.run(
        [sys.executable, "-m", "bot", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=folder,
        env=environment,
        check=False,
    )


def replies(folder: Path) -> Path:
    """What a model said about the three issues, written down."""
    said = [
        {"label": "WELL_SPECIFIED", "explanation": "All there.", "p_bounce": 2},
        {"label": "VAGUE", "explanation": "Which files?", "open_points": ["Which files fail?"], "p_bounce": 81},
        {"label": "IMPOSSIBLE_TO_SOLVE", "explanation": "Nothing is said.", "p_bounce": 99},
    ]
    file = folder / "replies.jsonl"
    lines = ({"instance_id": f"acme/rocket#{n}", "model": "tape", **reply} for n, reply in enumerate(said, 1))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_three_issues_are_judged_and_shown(tmp_path: Path) -> None:
    done = demo(tmp_path, "--model", f"recorded:{replies(tmp_path)}#tape")
    assert done.returncode == 0, done.stderr
    clear, vague, empty = done.stdout.split("╭")[1:]
    assert "#1 (clear)" in clear
    assert "nothing was posted" in clear
    assert "labels: none" in clear
    assert "#2 (vague)" in vague
    assert "Which files fail?" in vague
    assert "labels: needs-info" in vague
    assert "IMPOSSIBLE_TO_SOLVE" in empty
    assert "This is a recorded answer: no model was asked just now." in empty


def test_a_model_that_cannot_be_had_is_one_clear_line(tmp_path: Path) -> None:
    done = demo(tmp_path, "--model", "nobody:knows")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("bouncer: ")
    assert "nobody:knows" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.local_model
def test_the_small_model_speaks_and_is_named_for_what_it_is(tmp_path: Path) -> None:
    # The weights are shared with the other tests: they are fetched once.
    (tmp_path / "issue.md").write_text("# Bug\n\nIt broke.\n")
    done = subprocess.run(
        [sys.executable, "-m", "bot", "triage", "issue.md", "--model", "local:smollm2", "--json"],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reply = json.loads(done.stdout)
    assert reply["model"] in ("local:smollm2", "")
    assert reply["label"] in ("WELL_SPECIFIED", "REASONABLY_SPECIFIED", "VAGUE", "IMPOSSIBLE_TO_SOLVE", None)
    assert (reply["label"] is None) == bool(reply["abstained"])
