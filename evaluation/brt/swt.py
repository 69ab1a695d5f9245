"""SWT-Bench's published rows, and our runs counted as they count: one answer for each instance."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.brt.metrics import Bug
from evaluation.report.page import Cell, Section, Table, percentage

#: Set, method, model, success rate S in percent: swtbench.com, the rows in unit test mode.
PUBLISHED: tuple[tuple[str, str, str, float], ...] = (
    ("Verified", "LogicStar AI", "L*Agent v1", 84.0),
    ("Verified", "PatchTwin+Guard", "GPT-5", 82.9),
    ("Verified", "OpenHands", "GPT-5", 79.8),
    ("Verified", "PatchTwin+Guard", "GPT-5-mini", 75.8),
    ("Verified", "ReProAgent", "GPT-5-mini", 69.7),
    ("Verified", "OpenHands", "GPT-5-mini", 62.4),
    ("Verified", "e-Otter++", "Claude 3.7 Sonnet", 62.1),
    ("Verified", "Amazon Q Developer Agent", "v20250405-dev", 51.0),
    ("Verified", "AssertFlip", "GPT-4o", 45.5),
    ("Verified", "Otter++", "GPT-4o", 37.4),
    ("Verified", "Otter", "GPT-4o", 31.6),
    ("Verified", "OpenHands", "Claude 3.5 Sonnet", 27.7),
    ("Verified", "LIBRO", "GPT-4o", 17.8),
    ("Verified", "Zero-Shot Plus", "GPT-4o + BM25", 14.3),
    ("Lite", "ReProAgent", "GPT-5-mini", 56.2),
    ("Lite", "e-Otter++", "Claude 3.7 Sonnet", 52.5),
    ("Lite", "Amazon Q Developer Agent", "v20250405-dev", 39.9),
    ("Lite", "AssertFlip", "GPT-4o", 38.0),
    ("Lite", "OpenHands", "Claude 3.5 Sonnet, CI set-up", 28.3),
    ("Lite", "OpenHands", "Claude 3.5 Sonnet", 22.8),
    ("Lite", "SWE-Agent+", "GPT-4", 18.5),
    ("Lite", "SWE-Agent", "GPT-4", 15.9),
    ("Lite", "LIBRO", "GPT-4", 14.1),
    ("Lite", "Aider", "GPT-4", 12.7),
    ("Lite", "Zero-Shot Plus", "GPT-4 + BM25", 9.4),
    ("Lite", "AutoCodeRover", "GPT-4", 9.1),
    ("Lite", "Zero-Shot Base", "GPT-4 + BM25", 3.6),
)
INSTANCES = {"Verified": 433, "Lite": 276}


def swt_section(runs: Sequence[tuple[str, Sequence[Bug]]]) -> Section:
    """Our runs beside SWT-Bench's rows. A bug without an answer counts as failed."""
    counts = [(name, _counted(bugs)) for name, bugs in runs]
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            count["instances"],
            *(
                percentage(count[key] / count["instances"] if count["instances"] else None)
                for key in ("answered", "failing", "reproduced")
            ),
        )
        for name, count in counts
    ]
    quoted: list[tuple[Cell, ...]] = [
        (f"{method}, {model} ({group})", INSTANCES[group], None, None, f"{rate:.1f}")
        for group, method, model, rate in PUBLISHED
    ]
    header = ("run", "instances", "with a test that applies %", "fails before the fix %", "success rate S %")
    note = (
        "S: the one answer for an instance (our first suggestion, or the first given test) fails before the fix "
        "and passes after it. SWT-Bench's rows are from swtbench.com, July 2026, without those that run a script "
        "instead of a test. Sets, environments and dates differ."
    )
    table = Table(header, (*rows, *quoted), quoted_from=len(rows), note=note)
    return Section("Beside SWT-Bench", tables=(table,), data={"swt_bench": dict(counts)})


def _counted(bugs: Sequence[Bug]) -> dict[str, int]:
    answers = [bug.answer for bug in bugs]
    return {
        "instances": len(bugs),
        "answered": sum(answer is not None and answer.applied for answer in answers),
        "failing": sum(answer is not None and answer.base is not None and answer.base.fails for answer in answers),
        "reproduced": sum(answer is not None and answer.brt for answer in answers),
    }
