"""Every command that the page of the papers' tables names for test generation runs, on recorded replies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluation.brt.libro import FEATURES
from evaluation.report.papers import PAPERS
from tests.conftest import ROOT
from tests.evaluation.bloom.test_commands import REPORT, TEST, added, bench
from tests.evaluation.running import command, read, write

__all__ = ["bench"]

pytestmark = [pytest.mark.debian("bubblewrap"), pytest.mark.usefixtures("remembered_runs")]

RENAMED = "func_cut_into_pieces"
QUOTED = "`split_list([1, 2, 3], 2)`, `[[1, 2]]`, `[[1, 2], [3]]`"


def reply(purpose: str, contains: str = "", **fields: Any) -> dict[str, Any]:
    return {"model": "m", "subject": "lists-1", "purpose": purpose, "contains": contains, **fields}


def verdict(label: str, contains: str = "") -> dict[str, Any]:
    fields = {"explanation": "x", "open_points": ["Which call?"], "label": label, "p_bounce": 60}
    return reply("triage", contains, **fields)


@pytest.fixture
def words(bench: Path) -> dict[str, str]:
    """Values of the words in capitals: small files, and a model that has an answer to every question."""
    (case,) = read("cases.jsonl")
    write("cases.jsonl", [{**case, "test_patch": added(TEST)}])
    draft = {"model": "m", "subject": "lists-1", "plan": "", "code": TEST}
    write("models.jsonl", [
        reply("bloom-rephrased", report=f"The rest is lost.\n\n{QUOTED}"),
        reply("bloom-rephrased", RENAMED, report=f"It is lost.\n\n{QUOTED}".replace("split_list", RENAMED)),
        reply("bloom-translated", report=f"Der Rest fehlt.\n\n{QUOTED}"),
        reply("bloom-same", same=True, differences=""),
        reply("bloom-rename", name="cut_into_pieces"),
        reply("bloom-answer", answer="Two lists."),
        reply("reproduce-pick", choice=1),
        verdict("VAGUE"), verdict("WELL_SPECIFIED", "Two lists."),
        *[draft] * 50,
    ])  # fmt: skip
    write("book.jsonl", [{"instance_id": "old", "problem_statement": REPORT, "test": TEST}])
    names = [f"b-{n}" for n in range(120)]
    write("components.jsonl", [
        {"bug_id": name, "test code": n % 2 == 0, "stack trace": n % 3 == 0} for n, name in enumerate(names)
    ])  # fmt: skip
    write("reports.jsonl", [{"bug_id": name, "title": "It fails", "body": "Here."} for name in names])
    write("unclear.jsonl", [{"instance_id": "lists-1", "unclear": True}])
    write("hints.jsonl", [{"instance_id": "lists-1", "hints_text": "Two lists."}])
    rows = [f"b_{n},{1 if n % 2 == 0 else 100000},{(n + 1) % 2},3\n" for n in range(120)]
    Path("ranks.csv").write_text(f"bug_id,first_success_rank,total_success_fibs,num_clusters\n{''.join(rows)}")
    failing = {"buggy": {"autogen_failed": True, "failure_message": "f"}, "fixed": {}, "success": True}
    Path("outcomes.json").write_text(json.dumps({"b-1": {f"b-1_n{n}": failing for n in range(2)}}))
    row = ("b-1", "b-1_n0.txt", "True", "9", "2", "2", "False", "False", "True", "True", "False")
    Path("features.csv").write_text(",".join(FEATURES) + "\n" + ",".join(row) + "\n")
    files = {
        "CASES": "cases.jsonl", "CSV": "ranks.csv", "BEFORE": "ranks.csv", "OUTCOMES": "outcomes.json",
        "FEATURES": "features.csv", "REPORTS": "reports.jsonl", "COMPONENTS": "components.jsonl",
        "BOOK": "book.jsonl", "UNCLEAR": "unclear.jsonl", "HINTS": "hints.jsonl", "PAGE": "page.html",
        "CHANGED": "REPHRASED/cases.jsonl", "ASKED": "CLARIFIED/cases.jsonl", "CLOSED": "BASELINE",
        **dict.fromkeys("MJ", "recorded:models.jsonl#m"),
    }  # fmt: skip
    drafting = ("replay", "brt", "--cases", "cases.jsonl", "--model", files["M"], "--samples", "1")
    command(*drafting, "--out", "BASELINE")
    shutil.copytree("BASELINE", "AGAIN")
    shutil.copytree("BASELINE", "DRAFTED")
    (record,) = read("BASELINE/records.jsonl")
    (draft_record,) = record["drafts"]
    write("DRAFTED/records.jsonl", [
        {**record, "task_id": name, "instance_id": name, "drafts": [{**draft_record, "brt": n % 2 == 0}]}
        for n, name in enumerate(names)
    ])  # fmt: skip
    return files


def test_every_command_of_the_papers_tables_runs(words: dict[str, str]) -> None:
    items = PAPERS["Test generation from bug reports"]
    commands = dict.fromkeys(part for item in items for part in item.command.split("; "))
    output = "".join(command(*(words.get(word, word) for word in line.split())).out for line in commands)
    assert "reproduction improvement rate, points" in output
    assert "ambiguity detection rate %" in output


@pytest.mark.parametrize("paper", PAPERS)
def test_the_documentation_has_a_line_for_every_table_and_figure(paper: str) -> None:
    """Each line says a command, how near its result comes to the paper, and why."""
    text = (ROOT / "docs" / "replay.md").read_text("utf-8")
    part = text.partition(f"\n## {paper}, table by table\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line[:2] == "| "]
    names = " ".join(row[0] for row in rows)

    missing = [item.name for item in PAPERS[paper] if item.name not in names]

    assert missing == []
    for name, line, near, why in rows[1:]:
        assert near.split(" ")[0] in {"exact", "approximate", "not", "method", "within", "quoted"}, name
        assert line or near == "not to be had", name
        assert why, name
