"""``bouncer calibrate`` from end to end: 200 issues and 200 pull requests of a simulated GitHub over HTTP.

They are exported, judged with recorded answers and calibrated.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bot.simgithub import App, SimulatedGitHub

NAME = "acme/rocket"
EACH = 200
#: Issues without any action, among those that were fixed.
IDLE = 80


def fill(github: SimulatedGitHub) -> App:
    """Fixed issues with the pull requests that closed them, and idle ones."""
    app = github.create_app()
    github.create_repository(NAME, {"app.py": "a = 0\n"})
    github.install(app, NAME)
    github.advance(days=-90)
    for number in range(EACH):
        issue = github.open_issue(NAME, f"It crashes {number}", "Steps to reproduce: start it.")
        pull = github.open_pull(
            NAME, f"Fix #{issue}", f"Fixes #{issue}.", files={f"f{number}.py": "x\n"}, closes=[issue]
        )
        github.merge(NAME, pull, by="carol")
        if number % (EACH // IDLE) == 0:
            github.close(NAME, github.open_issue(NAME, f"Better {number}", "Please."), reason="not_planned")
    github.advance(days=90)
    return app


def record(github: SimulatedGitHub, file: Path) -> None:
    """Answers of a model that ranks well and is not always right."""
    generator = random.Random(1)
    with github.world.lock:
        issues = dict(github.world.repositories[NAME].issues)
    with file.open("w") as out:
        for number, issue in issues.items():
            good = issue.pull is not None or bool(issue.closed_by)
            chance = min(99, max(1, round(generator.gauss(30 if good else 70, 15))))
            labels = ("INCORRECT", "CORRECT_AND_PRECISE") if issue.pull else ("VAGUE", "WELL_SPECIFIED")
            reply = {"explanation": f"On {number}.", "label": labels[chance < 50], "p_bounce": chance}
            out.write(json.dumps({"model": "m", "subject": f"{NAME}#{number}", **reply}) + "\n")


def calibrate(github: SimulatedGitHub, app: App, folder: Path) -> dict[str, Any]:
    """Run the command in a process of its own; return its report."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(Path.cwd()),
        "GITHUB_API_URL": github.api_url,
        "GITHUB_APP_ID": str(app.id),
        "GITHUB_APP_PRIVATE_KEY": app.private_key,
        "BOUNCER_DATA_DIR": "data",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "bot", "calibrate", NAME, "--model", "recorded:replies.jsonl#m", "--json",
         "--limit", str(EACH)],
        env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as place, SimulatedGitHub() as github:
        folder = Path(place)
        app = fill(github)
        record(github, folder / "replies.jsonl")
        before, began = len(github.requests), time.monotonic()
        report = calibrate(github, app, folder)
        seconds = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        requests = len(github.requests) - before
        print(
            f"{report['triage']['cases']} issues and {report['verify']['cases']} pull requests: {seconds:.1f} s "
            f"({used.ru_utime + used.ru_stime:.1f} s of our own processor time), {requests} requests to GitHub "
            f"({report['requests']} by its own count)"
        )
        print(
            f"line for issues: {report['triage']['line']['bounce_above']} %, {report['triage']['bounced']} bounced"
        )


if __name__ == "__main__":
    main()
