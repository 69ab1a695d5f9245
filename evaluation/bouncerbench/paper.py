"""The paper's published figures, to be shown beside ours (BouncerBench, tables II to IV, IV.C, IV.G, V)."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.bouncerbench.tasks import INPUT, OUTPUT, Kind


@dataclass(frozen=True)
class Published:
    """A row of table II or III; rates are shares, not percent."""

    model: str
    f_m: float
    score: float
    r_b: float
    fnr_a: float


#: How many tasks the published figures are over, and how many of them should bounce.
TASKS: dict[Kind, tuple[int, int]] = {INPUT: (1699, 650), OUTPUT: (642, 405)}

ROWS: dict[Kind, tuple[Published, ...]] = {
    INPUT: (
        Published("claude-3.7-sonnet", 0.422, 0.209, 0.040, 0.006),
        Published("gpt-4.1", 0.500, 0.233, 0.129, 0.020),
        Published("gemma3_27b-it-q8_0", 0.399, 0.198, 0.017, 0.003),
        Published("o4-mini", 0.592, 0.271, 0.268, 0.054),
        Published("qwen3_32b-q8_0", 0.466, 0.232, 0.088, 0.013),
        Published("codex", 0.561, 0.258, 0.215, 0.040),
    ),
    OUTPUT: (
        Published("claude-3.7-sonnet", 0.347, -0.100, 0.079, 0.025),
        Published("gpt-4.1", 0.356, -0.076, 0.086, 0.017),
        Published("gemma3_27b-it-q8_0", 0.301, -0.119, 0.032, 0.017),
        Published("o4-mini", 0.612, 0.203, 0.462, 0.131),
        Published("qwen3_32b-q8_0", 0.405, -0.033, 0.153, 0.063),
        Published("codex", 0.690, 0.320, 0.610, 0.169),
    ),
}

#: How people labelled the 1,699 issues: kind -> label -> issues (table I).
TABLE_I: dict[str, dict[str, int]] = {
    "issue specification": {"0": 396, "1": 653, "2": 542, "3": 108},
    "test validity": {"0": 382, "1": 278, "2": 558, "3": 481},
    "other issues": {"no": 1564, "yes": 135},
}

#: The 405 incorrect patches by the kinds of tests that they fail (II.A.2).
FAILING: dict[str, int] = {"both": 107, "fail-to-pass": 270, "pass-to-pass": 28}

#: Model -> raw agreement, Cohen's kappa, Spearman's rho with annotators (IV.C; kappa of gpt-4.1 is "0.09-0.11").
AGREEMENT: dict[str, tuple[float, float, float]] = {
    "o4-mini": (0.390, 0.14, 0.38),
    "claude-3.7-sonnet": (0.284, 0.03, 0.29),
    "gpt-4.1": (0.341, 0.09, 0.37),
}

#: Submission -> correct before, correct after (shares), mean patch length (characters), correct ones lost (share).
TABLE_IV: dict[str, tuple[float, float, float, float]] = {
    "SWE-agent": (0.559, 0.638, 12_000, 0.166),
    "Amazon Q": (0.507, 0.613, 1_700, 0.113),
    "OpenHands": (0.505, 0.607, 54_100, 0.304),
    "r_sample_all": (0.369, 0.574, 3_800, 0.194),
}

#: Lite with o4-mini before and codex after the patch is written (V.B): shown patches and the wrong share of them.
LITE_SHOWN = (642, 333)
LITE_WRONG_SHARE = (0.631, 0.426)

#: US dollars for the 1,699 + 642 tasks (IV.G).
COSTS: dict[str, float] = {"claude-3.7-sonnet": 21.25, "codex": 27.35}
