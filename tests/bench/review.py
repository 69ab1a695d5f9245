"""How long a review takes besides the model and GitHub, and what it costs in tokens.

    python -m tests.bench review

A synthetic diff of 20,000 lines with 500 findings (goal: read, packed and anchored in 1 s or less), then one whole
review of a real-sized change through the live handler with a scripted model that answers at once (goal: 500 ms or
less), then tokens per review over the real patches where they are at hand.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from bot.app import now
from bot.code.change.diff import parse
from bot.code.change.packing import pack
from bot.core.config import RepoConfig
from bot.core.text import estimate
from bot.features.review.anchoring import anchor
from bot.features.review.strategies import Change, Question
from bot.features.services import NoHistory, Services
from bot.features.shared.findings import Reported
from bot.github.offline import ReplayForge, pull_request_opened
from bot.models.prompts import Prompts
from bot.router import SLASH_COMMANDS, decide
from tests.scripted import ScriptedModel

FILES, LINES, FINDINGS, RUNS = 40, 500, 500, 7
BUDGET = RepoConfig().review.call_tokens
GOAL_RULES, GOAL_REVIEW = 1.0, 0.5


def synthetic(files: int, lines: int) -> str:
    """A diff of ``files`` files with ``lines`` lines each, half of them added, in hunks of 50."""
    source = random.Random(1)
    parts = []
    for number in range(files):
        path = f"src/package_{number % 7}/module_{number}.py"
        parts.append(f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n")
        for hunk in range(lines // 50):
            at = 1 + hunk * 100
            parts.append(f"@@ -{at},38 +{at + 13 * hunk},37 @@ def function_{hunk}(value):\n")
            body = [f" {code(source)}" for _ in range(25)] + [f"-{code(source)}" for _ in range(13)]
            body += [f"+{code(source)}" for _ in range(12)]
            parts.append("\n".join(body) + "\n")
    return "".join(parts)


def code(source: random.Random) -> str:
    indent = " " * 4 * source.randint(0, 3)
    return f"{indent}value_{source.randint(0, 9999)} = function_{source.randint(0, 99)}(value, {source.random()})"


def reported(text: str, count: int) -> list[Reported]:
    """Findings as models give them: most quote a line, some with its number, some quote what is not there."""
    source = random.Random(2)
    diff = parse(text)
    lines = [(file.path, line) for file in diff.files for hunk in file.hunks for line in hunk.lines]
    findings = []
    for number in range(count):
        path, line = source.choice(lines)
        quote = (line.text, f"{line.new or ''} {line.mark} {line.text}", line.text[8:40], "not_in_the_diff()")[
            number % 4
        ]
        findings.append(
            Reported.model_validate(
                {
                    "path": path,
                    "quote": quote,
                    "line": line.new,
                    "symbol": f"function_{source.randint(0, 120)}",
                    "comment": "Breaks.",
                    "category": "coding",
                    "impact": "reliability",
                    "severity": "high",
                }
            )
        )
    return findings


class Times(NamedTuple):
    """Medians over several runs, seconds."""

    processor: float
    wall: float

    def __str__(self) -> str:
        return f"{self.processor * 1000:,.0f} ms of processor time, {self.wall * 1000:,.0f} ms by the clock"


def timed(work: Callable[[], Any]) -> Times:
    """Nothing here waits for anything, so processor time is what a machine that is not busy would show."""
    processor, wall = [], []
    for _ in range(RUNS):
        starts = process_time(), perf_counter()
        work()
        processor.append(process_time() - starts[0])
        wall.append(perf_counter() - starts[1])
    return Times(statistics.median(processor), statistics.median(wall))


def rules() -> Times:
    text = synthetic(FILES, LINES)
    findings = reported(text, FINDINGS)
    placed = dropped = 0

    def work() -> None:
        nonlocal placed, dropped
        packed = pack(parse(text), BUDGET, 1_000)
        anchored, lost = anchor(findings, packed.diff)
        placed, dropped = len(anchored), len(lost)

    times = timed(work)
    print(f"diff of {text.count(chr(10)):,} lines, {FINDINGS} findings ({placed} placed, {dropped} dropped):")
    return times


def whole() -> Times:
    """One review through router and handler of 2,000 lines, with 10 findings in each call."""
    text = synthetic(8, 250)
    findings = [finding.model_dump(mode="json") for finding in reported(text, 10)]
    event, snapshot = pull_request_opened(text, title="Change", body="It changes things.")
    model = ScriptedModel(lambda _: {"reasoning": "", "findings": findings})
    services = Services(
        commands=SLASH_COMMANDS,
        prompts=Prompts(),
        forge=ReplayForge(snapshot),
        model=model,
        config=RepoConfig(),
        clock=now,
        history=NoHistory(),
        repository=event.repository,
    )
    times = timed(lambda: decide(event, services, only="review"))
    print(
        f"review of {text.count(chr(10)):,} lines, {len(model.asked) // RUNS} calls to a model that takes no time:"
    )
    return times


def tokens(folder: Path) -> None:
    """Estimated tokens of the questions of one single-shot review of each SWE-bench fix."""
    prompts = Prompts()
    costs: list[int] = []
    pieces: list[int] = []
    with gzip.open(folder / "swebench" / "instances.jsonl.gz", "rt", encoding="utf-8") as rows:
        for row in rows:
            record = json.loads(row)
            if not record.get("patch"):
                continue
            packed = pack(parse(record["patch"]), BUDGET, RepoConfig().review.max_calls)
            title, _, body = record["problem_statement"].partition("\n")
            questions = [
                Question(piece, 1, len(packed.pieces), Change(title, body)).prompt(prompts, "review.single-shot")
                for piece in packed.pieces
            ]
            costs.append(sum(estimate(prompt.system) + estimate(prompt.user) for prompt in questions))
            pieces += [piece.tokens for piece in packed.pieces]
    print(
        f"tokens per single-shot review (upper estimate, {len(costs)} SWE-bench fixes): median "
        f"{statistics.median(costs):,.0f}, 95th percentile {_percentile(costs, 95):,}, most {max(costs):,}; "
        f"of these the diff: median {statistics.median(pieces):,.0f}, most {max(pieces):,} of {BUDGET:,} a call"
    )


def _percentile(values: Sequence[int], percent: int) -> int:
    return sorted(values)[len(values) * percent // 100]


def main() -> None:
    """Print what was measured; exit code 1 where a goal was missed."""
    missed = False
    for measure, goal in ((rules, GOAL_RULES), (whole, GOAL_REVIEW)):
        times = measure()
        missed |= times.processor > goal
        print(f"    median of {RUNS}: {times}; goal {goal * 1000:,.0f} ms")
    folder = Path(os.environ.get("BOUNCER_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if folder.is_dir():
        tokens(folder)
    sys.exit(missed)


if __name__ == "__main__":
    main()
