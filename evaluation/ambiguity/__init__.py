"""Does triage tell an under-specified issue from the full one, and do its questions bring back what is missing?

Ambig-SWE (Vijayvargiya et al. 2025, arXiv 2502.13069) has 500 issues, each with a summary that leaves details out.
"""

from __future__ import annotations

from evaluation.benchmark import Entry

_COMMANDS = "evaluation.ambiguity.commands"

ENTRIES = {
    "ambiguity": Entry(
        "full issues beside under-specified summaries, and the questions between them (Ambig-SWE)",
        {
            "replay": (
                f"{_COMMANDS}:replay",
                "Triage both texts of each pair, ask a simulated author, triage again.",
            ),
            "score": (f"{_COMMANDS}:score", "Measure the AUC of the pairs, and what the questions bring back."),
        },
        "evaluation.ambiguity.bench:AMBIGUITY",
    )
}
