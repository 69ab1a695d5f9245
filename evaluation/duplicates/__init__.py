"""Does the live feature find the issue that a new one repeats, and name no other?

Tasks are a repository's own issues: those that maintainers closed as a duplicate of a named issue, and others.
"""

from __future__ import annotations

from evaluation.benchmark import Entry

_COMMANDS = "evaluation.duplicates.commands"

ENTRIES = {
    "duplicates": Entry(
        "issues that repeat an earlier one, from a repository's own history",
        {
            "replay": (f"{_COMMANDS}:replay", "Compare each closed issue with the issues before it."),
            "score": (f"{_COMMANDS}:score", "Measure recall at 5, and precision at the threshold."),
        },
        "evaluation.duplicates.bench:DUPLICATES",
        batched=True,
    )
}
