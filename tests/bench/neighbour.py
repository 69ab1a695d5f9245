"""How much a busy installation delays a quiet one: an issue alone, and behind N waiting issues of a neighbour.

    python -m tests.bench neighbour [--issues N] [--database sqlite|postgresql|both]

``bouncer serve`` runs as users run it, with one second between two writes of an installation, against the
simulated GitHub and with recorded replies, which take no time. Measured is the time from the delivery to the
comment on the quiet installation's issue.
"""

from __future__ import annotations

import argparse
import json
import time

from tests.bench.databases import databases
from tests.bot.pipeline.rig import REPLY, REPOSITORY, Rig, rigged, wait

QUIET = "calm/harbour"
GOAL_SECONDS = 10.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench neighbour")
    parser.add_argument("--issues", type=int, default=1000, help="waiting issues of the busy installation")
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    options = parser.parse_args()
    for name, url, folder in databases(options.database):
        with rigged(folder, url) as rig:
            alone, behind = _measure(rig, options.issues)
        print(
            f"{name}: alone {alone:.1f} s, behind {options.issues} issues of another installation {behind:.1f} s, "
            f"difference {behind - alone:+.1f} s (goal: at most {GOAL_SECONDS:.0f} s)",
            flush=True,
        )


def _measure(rig: Rig, issues: int) -> tuple[float, float]:
    """Seconds until the quiet installation's issue is answered: alone, and behind the others."""
    subjects = [f"{REPOSITORY}#{number}" for number in range(1, issues + 1)]
    subjects += [f"{QUIET}#{number}" for number in range(1, 10)]
    lines = ({"model": "bounces", "subject": subject, **REPLY} for subject in subjects)
    rig.replies.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rig.github.create_repository(QUIET)
    quiet = rig.github.install(rig.installation.app, QUIET).id
    rig.start("bot", "serve")
    wait(rig.ready, 300, "serve is up")
    _answer(rig, quiet)
    alone = _answer(rig, quiet)
    for number in range(issues):
        issue = rig.github.open_issue(REPOSITORY, f"Broken {number}", "It does not work.")
        assert rig.deliver("issues", rig.opened(issue)) == 202
    return alone, _answer(rig, quiet)


def _answer(rig: Rig, installation: int) -> float:
    """Open an issue in the quiet installation. Return the seconds until there is a comment on it."""
    number = rig.github.open_issue(QUIET, "Broken", "It does not work.")
    payload = {**rig.opened(number, QUIET), "installation": {"id": installation}}
    start = time.monotonic()
    assert rig.deliver("issues", payload) == 202
    wait(lambda: rig.github.comments(QUIET, number), 3600, "the comment")
    return time.monotonic() - start


if __name__ == "__main__":
    main()
