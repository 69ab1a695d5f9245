"""BouncerBench (Mathews and Nagappan): does a bouncer stop vague issues and wrong patches, and only these?"""

from __future__ import annotations

from evaluation.benchmark import Entry

_COMMANDS = "evaluation.bouncerbench.commands"


ENTRIES = {
    "bouncerbench": Entry(
        "construction of both task files (BouncerBench, section II)",
        {"build": (f"{_COMMANDS}:build", "Build tasks from annotations, issues and patches.")},
    ),
    "bouncerbench-input": Entry(
        "vague issues (BouncerBench; Mathews and Nagappan)",
        {
            "replay": (f"{_COMMANDS}:replay_input", "Triage every issue."),
            "score": (f"{_COMMANDS}:score_input", "Score decisions about issues."),
            "calibrate": ("evaluation.calibration.commands:calibrate_input", "Fit thresholds for issues."),
        },
        "evaluation.bouncerbench.bench:INPUT_BENCH",
        batched=True,
    ),
    "bouncerbench-output": Entry(
        "wrong patches (BouncerBench; Mathews and Nagappan)",
        {
            "replay": (f"{_COMMANDS}:replay_output", "Verify every patch."),
            "score": (f"{_COMMANDS}:score_output", "Score decisions about patches."),
            "calibrate": ("evaluation.calibration.commands:calibrate_output", "Fit thresholds for patches."),
        },
        "evaluation.bouncerbench.bench:OUTPUT_BENCH",
        batched=True,
    ),
    "bouncerbench-chain": Entry(
        "the input bouncer followed by the output bouncer (BouncerBench, section V)",
        {"score": (f"{_COMMANDS}:score_chain", "Score both bouncers in sequence.")},
    ),
}
