"""CR-Bench: pull requests that introduced a bug, reviewed by the live reviewer and judged by CR-Evaluator.

Construction (Algorithm 1): ``mapping`` finds the lines that a fix removes, the commits that wrote them, and the
one pull request that these belong to; ``task`` asks a model whether a review could have prevented the bug, and
holds the result; ``pulls`` restores what the reviewer saw; ``build`` runs the steps. ``own`` takes the fixes
from a repository's own history, ``golden`` takes review comments from other benchmarks.

Replay and judging: ``bench``, ``judge``, ``judged``, ``metrics``; ``sections`` presents the scores beside the
paper's.
"""

from __future__ import annotations

from evaluation.benchmark import Entry

_COMMANDS = "evaluation.crbench.commands"

ENTRIES = {
    "crbench": Entry(
        "defects that a review should have found (CR-Bench)",
        {
            "build": (f"{_COMMANDS}:build", "Find the pull requests that introduced known bugs."),
            "replay": (f"{_COMMANDS}:replay", "Review every pull request that introduced a bug."),
            "score": (f"{_COMMANDS}:score", "Measure how many bugs a review finds, and its noise."),
        },
        "evaluation.crbench.bench:CRBENCH",
        batched=True,
    ),
    "golden": Entry(
        "review comments from AACR-Bench or Martian, as tasks for crbench",
        {
            "build": (f"{_COMMANDS}:build_golden", "Convert comments of AACR-Bench or Martian to tasks."),
            "score": (f"{_COMMANDS}:score_golden", "Measure judges on comments that people judged."),
        },
    ),
    "own": Entry(
        "pull requests of your own repository that introduced a bug, or its duplicates, as tasks",
        {"build": (f"{_COMMANDS}:build_own", "Find pull requests that introduced bugs, or duplicates.")},
    ),
}
