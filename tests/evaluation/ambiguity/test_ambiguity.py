"""Pairs of a full issue and its summary, with scripted models: nothing here is an answer of a real one."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from bot.core.errors import OperatorError
from bot.models.prompts import Prompts
from evaluation.ambiguity.bench import PairRecord, ScoredRun, Verdict, read_pairs, sections
from evaluation.ambiguity.loop import QuestionLoop
from evaluation.benchmark import Scoring
from evaluation.run.model import benchmark_prompts
from tests.evaluation.running import command, read, write
from tests.scripted import ScriptedModel

FULL = "split drops the rest\n\n`split([1, 2, 3], 2)` gives `[[1, 2]]` in version 2.1. I expect `[[1, 2], [3]]`."
SUMMARY = "split loses items\n\nSome items are missing in the result of split."
PAIRS = {
    "lists-1": (FULL, SUMMARY),
    "lists-2": (f"{FULL} Second.", "Second\n\nIt is broken."),
    "lists-3": ("a", "b"),
}
ANSWER = "In version 2.1, split([1, 2, 3], 2) gives [[1, 2]]."


def verdict(subject: str, contains: str, label: str, p_bounce: int, *questions: str) -> dict[str, Any]:
    return {
        "model": "scripted", "subject": subject, "purpose": "triage", "contains": contains, "explanation": "x",
        "open_points": list(questions), "label": label, "p_bounce": p_bounce,
    }  # fmt: skip


def author(subject: str, purpose: str, **reply: Any) -> dict[str, Any]:
    return {"model": "scripted author", "subject": subject, "purpose": f"ambiguity-{purpose}", **reply}


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Three pairs: one is asked about and cleared, one is read as clear, one gets no usable verdict."""
    write(
        "pairs.jsonl",
        (
            {"instance_id": name, "original_issue": full, "problem_statement": summary}
            for name, (full, summary) in PAIRS.items()
        ),
    )
    write(
        "scripted.jsonl",
        [
            verdict("lists-1", "", "WELL_SPECIFIED", 10),
            verdict("lists-1", "Some items are missing", "VAGUE", 80, "Which version?", "Which call?"),
            verdict("lists-1", ANSWER, "REASONABLY_SPECIFIED", 30),
            author("lists-1", "author", answer=ANSWER),
            author(
                "lists-1", "points", points=["Version 2.1.", "The call.", "The expected result.", "The result."]
            ),
            author("lists-1", "recovered", numbers=[4, 1, 2, 2, 9, 0]),
            verdict("lists-2", "", "WELL_SPECIFIED", 20),
            verdict("lists-2", "It is broken", "REASONABLY_SPECIFIED", 15, "Which part?"),
            author("lists-2", "points", points=["Version 2.1.", "The call."]),
        ],
    )
    return tmp_path


def replayed(*more: str) -> None:
    models = ("--model", "recorded:scripted.jsonl#scripted", "--author", "recorded:scripted.jsonl#scripted author")
    command("replay", "ambiguity", "--tasks", "pairs.jsonl", *models, "--out", "run", *more, "--json")


def test_questions_bring_back_facts_and_clear_the_summary(bench: Path) -> None:
    replayed()

    (scores,) = command("score", "ambiguity", "--run", "run", "--json").json["ambiguity"].values()
    assert (scores["pairs"], scores["without_answer"]) == (3, 1)
    # Full issues score 10 and 20, summaries 80 and 15: three of four comparisons are right.
    assert scores["auc"][0] == 0.75
    assert scores["bounced_summaries"][0] == pytest.approx(1 / 3)
    assert scores["bounced_full"][0] == 0.0
    # Three of six facts came back; a number that no fact has, or one twice, counts for nothing.
    assert scores["brought_back"][0] == 0.5
    assert scores["clear_afterwards"][0] == 1.0
    assert scores["by_label"] == {
        "REASONABLY_SPECIFIED": {
            "summaries": 1, "questions": 0.0, "brought_back": 0.0, "clear_afterwards": None,
        },
        "VAGUE": {"summaries": 1, "questions": 2.0, "brought_back": 0.75, "clear_afterwards": 1.0},
    }  # fmt: skip
    records = {row["task_id"]: row for row in read("run/records.jsonl")}
    assert records["lists-1"]["answer"] == ANSWER
    # Triage of both texts and of the answer; the author answers, lists the facts, and finds them in the answer.
    assert records["lists-1"]["usage"]["calls"] == 6
    assert "no verdict" in records["lists-3"]["error"]


def test_the_report_has_both_figures_beside_the_published_ones(bench: Path) -> None:
    replayed()

    command("report", "run", "--out", "report.html")

    page = Path("report.html").read_text()
    assert "author recorded:scripted.jsonl#scripted author, loop True; triage: " in page, "every setting is told"
    assert "left-out facts that the answers bring back %" in page
    assert "Claude 3.5 Sonnet, medium" in page
    assert "The question loop by label of the summary" in page


def test_without_the_loop_no_author_is_asked(bench: Path) -> None:
    replayed("--no-loop", "--limit", "2")

    for record in read("run/records.jsonl"):
        assert record["usage"]["calls"] == 2
        assert "answer" not in record


def test_equal_scores_count_half_and_labels_stand_in_for_probabilities() -> None:
    def pair(full: str, summary: str, *percents: int) -> PairRecord:
        full_verdict, summary_verdict = (
            Verdict(label=label, p_bounce=percent, bounced=False)
            for label, percent in zip((full, summary), percents or (None, None), strict=True)
        )
        return PairRecord(full=full_verdict, summary=summary_verdict)

    pairs = {"a": pair("WELL_SPECIFIED", "WELL_SPECIFIED"), "b": pair("WELL_SPECIFIED", "VAGUE"), "c": None}

    (section, _) = sections([ScoredRun("m", pairs)], Scoring(replicates=0))

    assert section.data["ambiguity"]["m"]["auc"][0] == 0.75
    mixed = {"a": pair("WELL_SPECIFIED", "VAGUE", 70, 80), "b": pair("REASONABLY_SPECIFIED", "VAGUE")}
    (of_labels, _) = sections([ScoredRun("m", mixed)], Scoring(replicates=0))
    assert of_labels.data["ambiguity"]["m"]["auc"][0] == 1.0, "70 % and a label are not on one scale"
    assert section.data["ambiguity"]["m"]["brought_back"][0] is None  # no facts, no share


def test_questions_are_counted_for_each_summary_of_a_label() -> None:
    vague = Verdict(label="VAGUE", p_bounce=None, bounced=True)
    pairs = {
        name: PairRecord(full=vague, summary=vague, questions=questions, points=("p", "q"), recovered=recovered)
        for name, questions, recovered in (("a", ("x?", "y?"), (1, 2)), ("b", ("z?",), (1,)))
    }
    (section, _) = sections([ScoredRun("m", pairs)], Scoring(replicates=0))
    assert section.data["ambiguity"]["m"]["by_label"] == {
        "VAGUE": {"summaries": 2, "questions": 1.5, "brought_back": 0.75, "clear_afterwards": 0.0}
    }


def workbook(path: Path, rows: list[list[str]], shared: bool) -> None:
    """A workbook with one sheet, its texts shared or in their cells; the third column is left empty."""
    strings = [text for row in rows for text in row]
    cells = ""
    for number, row in enumerate(rows, 1):
        columns = []
        for letter, text in zip("ABD", row, strict=True):
            place = f'r="{letter}{number}"'
            columns.append(
                f'<c {place} t="s"><v>{strings.index(text)}</v></c>'
                if shared
                else f'<c {place} t="inlineStr"><is><t>{escape(text)}</t></is></c>'
            )
        cells += f'<row r="{number}">{"".join(columns)}</row>'
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    items = "".join(
        f"<si><r><t>{escape(text[:1])}</t></r><r><t>{escape(text[1:])}</t></r></si>" for text in strings
    )
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/worksheets/sheet1.xml", f"<worksheet {space}><sheetData>{cells}</sheetData></worksheet>")
        book.writestr("xl/sharedStrings.xml", f"<sst {space}>{items}</sst>")


@pytest.mark.parametrize("shared", [True, False])
def test_a_workbook_is_read_as_it_was_published(tmp_path: Path, shared: bool) -> None:
    header = ["instance_id", "original_issue", "problem_statement"]
    workbook(tmp_path / "pairs.xlsx", [header, ["a-1", "full <text>_x000D_ & more", "short"]], shared)

    (pair,) = read_pairs(str(tmp_path / "pairs.xlsx"))

    assert (pair.instance_id, pair.original_issue) == ("a-1", "full <text> & more")
    assert pair.problem_statement == "short"


def test_a_broken_workbook_or_row_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "pairs.xlsx").write_bytes(b"PK no archive")
    header = ["instance_id", "original_issue", "problem_statement"]
    workbook(tmp_path / "row.xlsx", [header, ["a-1", "full", "short"], ["a-2", "", "short"]], False)

    with pytest.raises(OperatorError, match="cannot be read as a workbook"):
        list(read_pairs(str(tmp_path / "pairs.xlsx")))
    with pytest.raises(OperatorError, match=r"row\.xlsx:3: original_issue: "):
        list(read_pairs(str(tmp_path / "row.xlsx")))


@pytest.mark.parametrize(("label", "is_cleared"), [("VAGUE", False), ("WELL_SPECIFIED", True)])
def test_triage_asks_the_author_answers_and_triage_reads_again(label: str, is_cleared: bool) -> None:
    vague = {"explanation": "x", "open_points": ["Which call?"], "label": "VAGUE", "p_bounce": 90}
    triage = ScriptedModel([vague, {"explanation": "x", "label": label}])
    author_model = ScriptedModel([{"answer": "Any call."}])
    loop = QuestionLoop("x", triage, author_model, Prompts(), benchmark_prompts(), "ambiguity.author")

    clarified = loop.clarify(SUMMARY, FULL)

    assert (clarified.flagged, clarified.cleared, clarified.label, clarified.p_bounce) == (
        True,
        is_cleared,
        "VAGUE",
        90,
    )
    assert (clarified.questions, clarified.answer) == (("Which call?",), "Any call.")
    assert clarified.report == f"{SUMMARY}\n\nThe author added:\n\nAny call.\n"
    for text in (FULL, "Which call?"):
        assert text in author_model.asked[0].user
    assert "Any call." in triage.asked[1].user
    assert "I expect" not in triage.asked[1].user  # triage sees the answer, never the full text
