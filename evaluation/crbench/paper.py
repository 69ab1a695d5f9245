"""The figures that the paper published, to stand beside ours (CR-Bench, Table 4)."""

from __future__ import annotations

from dataclasses import dataclass

#: What was measured there; our tasks are built anew, so the rows are neighbours, not targets.
DATA_SET = "CR-Bench-verified, 174 tasks"
JUDGE = "claude-sonnet-4.5"


@dataclass(frozen=True)
class Row:
    """One agent with one model, as shares."""

    name: str
    recall: float
    precision: float
    f1: float
    usefulness: float
    snr: float

    @property
    def comments_per_pull(self) -> float:
        """Not printed in the paper; it follows from equations 2 and 3 with one bug a task."""
        return self.recall / self.precision


ROWS = (
    Row("single-shot, GPT-5.2", 0.2701, 0.0356, 0.0630, 0.8363, 5.11),
    Row("single-shot, GPT-5-mini", 0.1839, 0.0351, 0.0590, 0.7429, 2.89),
    Row("reflexion, GPT-5.2", 0.3276, 0.0510, 0.0883, 0.6610, 1.95),
    Row("reflexion, GPT-5-mini", 0.2759, 0.0319, 0.0572, 0.4772, 0.91),
)
