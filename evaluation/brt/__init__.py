"""Bug-reproducing tests: recorded rankings, judged candidates and the figures of LIBRO."""

from __future__ import annotations

from evaluation.benchmark import Entry

_COMMANDS = "evaluation.brt.commands"

ENTRIES = {
    "brt": Entry(
        "tests that reproduce a reported bug (LIBRO, Bloom)",
        {
            "replay": (f"{_COMMANDS}:replay", "Draft tests from bug reports, or judge given tests."),
            "score": (f"{_COMMANDS}:score", "Score tests and their ranking."),
        },
        "evaluation.brt.report:BRT",
    )
}
