"""A report is one page that needs nothing else and says what every number describes."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bot.core.actions import Usage
from evaluation.report.figures import Series, radar
from evaluation.report.page import Report, Section, Table, as_html, as_json, as_markdown
from evaluation.report.papers import PAPERS
from evaluation.report.runs import cost_row, is_timeless
from evaluation.report.terminal import short
from tests.evaluation.browser import look
from tests.evaluation.running import PATCH, command, facts_of, read, refusal, replies, write

INPUT_LABELS = ("WELL_SPECIFIED", "REASONABLY_SPECIFIED", "VAGUE", "IMPOSSIBLE_TO_SOLVE")
OUTPUT_LABELS = ("CORRECT_AND_PRECISE", "CORRECT_BUT_INCOMPLETE", "BROAD_MISSING_KEY_ASPECTS", "INCORRECT")


class Page(HTMLParser):
    """Collects what a browser would fetch, and whether tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.fetched += [v or "" for k, v in attributes if k in ("src", "href", "xlink:href", "data")]
        if tag not in ("meta", "br", "img", "link", "use", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``runs`` are copies from."""
    folder = tmp_path_factory.mktemp("runs")
    names = [f"o__n-{n}" for n in range(40)]
    issues = [
        {"instance_id": alias, "problem_statement": "Title\n" + "word " * (n * 15), "underspecified": n % 4}
        for n, alias in enumerate(names)
    ]
    patches = [
        {**row, "patch": PATCH + "#" * n * 90, "resolved": n % 3 == 0, "pass_frac": (n % 3) / 4}
        for n, row in enumerate(issues)
    ]
    rows = [
        {
            "instance_id": alias,
            "model": model,
            "label": INPUT_LABELS[(n * step) % 4],
            "p_bounce": n * 2,
            "explanation": "",
        }
        for model, step in (("first<b>", 1), ("second", 3))
        for n, alias in enumerate(names)
    ]
    verdicts = {alias: OUTPUT_LABELS[n % 4] for n, alias in enumerate(names)}
    inputs, outputs = write(folder / "i.jsonl", issues), write(folder / "o.jsonl", patches)
    output, judgements = write(folder / "r.jsonl", rows), replies(folder / "v.jsonl", verdicts, "third")
    for benchmark, tasks, model, name in (
        ("bouncerbench-input", inputs, f"recorded:{output}#first<b>", "a"),
        ("bouncerbench-input", inputs, f"recorded:{output}#second", "b"),
        ("bouncerbench-output", outputs, f"recorded:{judgements}#third", "c"),
    ):
        command("replay", benchmark, "--tasks", tasks, "--model", model, "--out", folder / name)
    return folder


@pytest.fixture
def runs(original: Path, tmp_path: Path) -> list[Path]:
    """Two runs of the input bouncer and one of the output bouncer on forty tasks."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return [tmp_path / name for name in "abc"]


def test_the_page_needs_nothing_else_and_escapes_what_it_was_given(runs: list[Path], tmp_path: Path) -> None:
    command("report", *runs, "--out", "r.html")
    text = (tmp_path / "r.html").read_text()
    page = Page(text)
    assert page.open == []
    assert all(address.startswith("#") for address in page.fetched)
    assert "<script" not in text
    assert "first<b>" not in text
    assert "first&lt;b&gt;" in text
    assert text.count("<svg") == 7
    for part in ("Beside the paper&#39;s table II", "McNemar", "Both bouncers in a row", "27.35", "triage.paper"):
        assert part in text


def test_the_numbers_of_the_page_are_those_of_score(runs: list[Path], tmp_path: Path) -> None:
    result = command("report", *runs, "--json").json
    sections = {section["title"]: section for section in result["sections"]}
    scored = command(f"score bouncerbench-input --tasks {tmp_path}/i.jsonl --run {runs[0]} --json").json
    of_page = sections["Input bouncer"]["scores"]["first<b>"]
    assert {name: of_page[name] for name in of_page} == {name: scored[name] for name in of_page}
    facts = sections["Runs"]["runs"][0]
    assert facts["totals"]["records"] == 40
    assert facts["prompts"]["triage.paper"]
    assert "investigate False" in str(sections["Runs"]["tables"][0]["rows"]), "a setting that is off is told, too"
    table_ii = sections["Input bouncer"]["tables"][0]["rows"]
    assert ["o4-mini (paper)", 1699, 0.592, 0.271, "26.8", "5.4", None, "39.0", 0.14, 0.38] in table_ii
    # IV.G: 27.35 USD for the 1,699 + 642 tasks.
    codex = ["codex (paper)", 2341, None, None, None, None, "27.35", "0.01168", None]
    assert codex in sections["Cost"]["tables"][0]["rows"]


def test_two_runs_are_compared_and_three_make_a_chain(runs: list[Path]) -> None:
    sections = {entry["title"]: entry for entry in command("report", *runs[:2], "--json").json["sections"]}
    result = sections["Input bouncer: second against first<b>"]["comparison"]
    assert result["tasks"] == 40
    assert len(result["flips"]) == result["only_first_right"] + result["only_second_right"]
    assert {"instance_id", "to_bounce", "corrected", "tool_calls"} == result["flips"][0].keys()
    assert "Both bouncers in a row" not in sections
    sections = {entry["title"]: entry for entry in command("report", runs[2], runs[0], "--json").json["sections"]}
    assert sections["Both bouncers in a row"]["chain"]["submitted"]["all"] == 40
    assert not any("against" in title for title in sections)


def test_the_markdown_has_the_same_tables(runs: list[Path], tmp_path: Path) -> None:
    printed = command("report", *runs).out
    command("report", *runs, "--out", "r.md")
    assert re.sub(r"bouncer 0.*", "", printed) == re.sub(r"bouncer 0.*", "", (tmp_path / "r.md").read_text())
    assert "| codex (paper) | 1,699 | 0.561 | 0.258 | 21.5 | 4.0 |" in printed
    assert "<b>" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "none is not a run"),
        (["{a}", "--out", "r.pdf"], "--out r.pdf: must end in"),
        (["{a}", "--tasks", "none.jsonl"], "none.jsonl: No such file"),
        (["{a}", "{c}", "--tasks", "x.jsonl"], "the runs are of several benchmarks, write BENCH=F"),
        (["{a}", "--tasks", "{blank}"], "says of no task of {a} what is right: name a labelled file with --tasks"),
    ],
)
def test_a_report_that_cannot_be_written_says_why(runs: list[Path], arguments: list[str], message: str) -> None:
    blank = write("blank.jsonl", [{"instance_id": "o__n-1"}])
    filled = [argument.format(a=runs[0], c=runs[2], blank=blank) for argument in arguments]
    assert message.format(a=runs[0]) in refusal("report", *filled)


def test_a_run_of_a_benchmark_without_words_of_its_own_shows_its_facts(runs: list[Path]) -> None:
    facts = json.loads((runs[0] / "run.json").read_text())
    (runs[0] / "run.json").write_text(json.dumps({**facts, "benchmark": "juggling"}))
    result = command("report", runs[0], "--json").json
    assert [section["title"] for section in result["sections"]] == ["Runs", "Cost"]
    titles = [section["title"] for section in command("report", runs[0], runs[2], "--json").json["sections"]]
    assert len(titles) == len(set(titles)), "no title stands twice in the list of contents"
    assert "Runs (2)" in titles


def report(*rows: tuple[Any, ...]) -> Report:
    table = Table(("name", "value"), rows, title="T", quoted_from=1, note="n")
    return Report("title", (Section("part", ("text",), (table,)),), "made today")


def test_cells_that_are_not_defined_are_dashes_and_null() -> None:
    page = report(("a|b", None), ("c", 1234))
    assert "<td>–</td>" in as_html(page)
    assert "| a\\|b | – |" in as_markdown(page)
    assert "1,234" in as_html(page)
    assert json.loads(as_json(page))["sections"][0]["tables"][0]["rows"] == [["a|b", None], ["c", 1234]]


def test_columns_of_numbers_are_told_from_columns_of_words() -> None:
    table = Table(("run", "change", "label"), (("1", "-0.5", "VAGUE"), ("2", "-0.3", "2 of 3")))
    assert table.words == (True, False, False)
    assert Table(("run", "label"), (("1", "VAGUE"),)).words == (True, True)


def test_a_recorded_model_has_a_short_name_and_no_dates() -> None:
    assert (short("recorded:replies.jsonl#m"), short("openai:fine#tuned")) == ("m", "openai:fine#tuned")
    for model, timeless in (
        ("recorded:r#m", True),
        ("recorded:r#m, recorded:s#m", True),
        ("recorded:r#m,o:m", False),
    ):
        assert is_timeless(facts_of("b", model=model)) is timeless, "a fallback that is asked live answers today"


def test_a_long_name_widens_the_picture_instead_of_being_cut() -> None:
    def width(name: str) -> float:
        picture = radar(["a", "b", "c"], [Series(name, [0.1, 0.2, 0.3]), Series("t", [0.3, 0.2, 0.1])])
        width_match = re.search(r'width="([0-9.]+)pt"', picture)
        assert width_match is not None
        return float(width_match[1])

    assert width("single-shot, openai:some-model-with-a-long-name (in a folder)") > width("s") + 50


def test_the_page_names_a_command_for_every_table_and_figure(runs: list[Path]) -> None:
    result = command("report", runs[0], "--json").json["sections"]
    papers = {table["title"]: table["rows"] for table in result[-1]["tables"]}
    items = {paper: {row[0]: row[1:] for row in rows} for paper, rows in papers.items()}
    assert {"Table I", "Table II", "Table III", "Table IV", *(f"Figure {n}" for n in range(1, 5))} <= items[
        "BouncerBench"
    ].keys()
    assert {f"{kind} {n}" for kind in ("Table", "Figure") for n in range(1, 5)} == items["CR-Bench"].keys()
    assert {*(f"Table {n}" for n in range(1, 6)), *(f"Figure {n}" for n in range(1, 8))} <= items[
        "Test generation from bug reports"
    ].keys()
    assert items["BouncerBench"]["Table II"][-1] == "on this page"
    assert items["BouncerBench"]["Table III"][-1].startswith("not on this page; published")
    for rows in papers.values():
        for _, _, commands, _ in rows:
            for part in commands.split("; "):
                words = part.split()
                if words[0] != "–":
                    help_text = command(*words[: 1 if words[0] == "report" else 2], "--help").out
                    assert [word for word in words if word.startswith("--") and word not in help_text] == [], part


def test_every_command_of_the_bouncers_tables_runs_and_at_hand_is_computed(
    original: Path, runs: list[Path], tmp_path: Path
) -> None:
    annotations = [
        {"instance_id": f"o__n-{n}", "underspecified": n % 4, "false_negative": 0, "other_major_issues": 0.0}
        for n in range(40)
    ]
    patches = [
        {"instance_id": f"o__n-{n}", "model_patch": PATCH + "#" * n, "resolved": False, "submission": "agent"}
        for n in range(40)
    ]
    shutil.copytree(runs[2], tmp_path / "again")
    values = {
        "INPUT": tmp_path / "i.jsonl", "OUTPUT": tmp_path / "o.jsonl", "RUN_I": runs[0], "RUN_O": runs[2],
        "RUN_O2": tmp_path / "again", "MODEL_I": f"recorded:{original}/r.jsonl#first<b>",
        "MODEL_O": f"recorded:{original}/v.jsonl#third", "ANNOTATIONS": write("a.jsonl", annotations),
        "INSTANCES": tmp_path / "i.jsonl", "PATCHES": write("p.jsonl", patches), "NAME": "agent",
        "BUILT": tmp_path / "built",
        "bouncerbench-output=ANSWERS": f"bouncerbench-output={tmp_path}/v.jsonl#third",
    }  # fmt: skip
    parts = {part for item in PAPERS["BouncerBench"] for part in item.command.split("; ") if part != "–"}
    for part in sorted(parts):
        command(*(values.get(word, word) for word in part.split()))

    def at_hand(*folders: Path) -> set[str]:
        tables = command("report", *folders, "--json").json["sections"][-1]["tables"]
        return {row[0] for row in tables[0]["rows"] if row[-1] == "on this page"}

    assert at_hand(runs[0]) == {"Table I", "Table II", "Figure 2", "IV.C"}
    assert at_hand(runs[2]) == {"Table III", "Figure 3"}, "no task says which tests fail"
    assert "IV.E" in at_hand(runs[2], tmp_path / "again")


def test_what_the_tasks_do_not_tell_is_not_called_at_hand(runs: list[Path]) -> None:
    """Labels without texts have no lengths, outcomes without patches neither; recorded replies have no cost."""
    labels = write("labels.jsonl", ({"instance_id": f"o__n-{n}", "underspecified": n % 4} for n in range(40)))
    outcomes = write("outcomes.jsonl", ({"instance_id": f"o__n-{n}", "resolved": n % 3 == 0} for n in range(40)))
    tasks = ("--tasks", f"bouncerbench-input={labels}", "--tasks", f"bouncerbench-output={outcomes}")
    rows = command("report", runs[0], runs[2], *tasks, "--json").json["sections"][-1]["tables"][0]["rows"]
    assert {row[0] for row in rows if row[-1] == "on this page"} == {
        "Table I", "Table II", "Table III", "Table IV", "Figure 4", "IV.C",
    }  # fmt: skip


def test_recorded_answers_stand_on_the_page_beside_runs(runs: list[Path], tmp_path: Path) -> None:
    """The authors' JSON, and the labels that output tasks carry."""
    authors = {
        row["instance_id"]: {"label": row["label"], "explanation": "e", "trace": []}
        for row in read(tmp_path / "r.jsonl")
        if row["model"] == "second"
    }
    (tmp_path / "codex.json").write_text(json.dumps(authors))
    rows = read(tmp_path / "o.jsonl")
    carried = [{**row, "bouncer_labels": {"m": "INCORRECT"}, "codex_label": "CORRECT_AND_PRECISE"} for row in rows]
    write(tmp_path / "carried.jsonl", carried)
    answers = ("bouncerbench-input=codex.json", "bouncerbench-output=carried.jsonl#codex")
    tasks = ("--tasks", "bouncerbench-input=i.jsonl", "--tasks", "bouncerbench-output=carried.jsonl")

    sections = {
        part["title"]: part for part in command("report", runs[0], *answers, *tasks, "--json").json["sections"]
    }

    of_file, of_run = (
        command("score", "bouncerbench-input", "--tasks", "i.jsonl", *source, "--json").json
        for source in (("--predictions", "codex.json"), ("--run", runs[1]))
    )
    table_ii = sections["Input bouncer"]["scores"]
    assert table_ii.keys() == {"first<b>", "codex.json"}
    assert table_ii["codex.json"]["f_m"] == of_file["f_m"] == of_run["f_m"]
    assert sections["Output bouncer"]["scores"]["codex"]["r_b"] == 0.0
    assert "Input bouncer: codex.json against first<b>" in sections
    assert [run["benchmark"] for run in sections["Runs"]["runs"]] == ["bouncerbench-input"]
    assert "on this page" in {row[-1] for row in sections["Tables and figures of the papers"]["tables"][0]["rows"]}


def test_runs_and_answers_of_one_name_are_told_apart(runs: list[Path], tmp_path: Path) -> None:
    for folder in ("old", "new"):
        shutil.copytree(runs[1], tmp_path / folder / "run")
        shutil.copy(tmp_path / "r.jsonl", tmp_path / folder)
    command("report", "old/run", "new/run", "--out", "runs.json")
    answers = [f"bouncerbench-input={folder}/r.jsonl#second" for folder in ("old", "new")]
    command("report", runs[1], *answers, "--tasks", "i.jsonl", "--out", "answers.json")

    pages = [json.loads((tmp_path / f"{name}.json").read_text())["sections"] for name in ("runs", "answers")]
    scores = [next(part["scores"] for part in page if "scores" in part) for page in pages]
    assert [*scores[0]] == ["second (old/run)", "second (new/run)"]
    assert [*scores[1]] == ["second", "second (old/r.jsonl#second)", "second (new/r.jsonl#second)"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("bouncerbench-input=none.json", "--tasks bouncerbench-input=F is needed"),
        ("brt=none.json", "brt is scored from runs alone"),
        ("bouncerbench=none.json", "is not a run"),
    ],
)
def test_answers_that_cannot_be_reported_on_say_why(argument: str, message: str) -> None:
    assert message in refusal("report", argument)


@pytest.mark.debian("chromium")
def test_no_texts_of_the_page_overlap_wide_or_narrow(runs: list[Path], tmp_path: Path) -> None:
    """Scores, thresholds, lengths, calibration, both bouncers in a row, and the page of the papers' tables."""
    command("report", *runs, "--out", "r.html")
    look(tmp_path / "r.html", figures=7)


def test_cost_and_seconds_are_shown_in_total_and_for_a_task() -> None:
    usage = Usage(calls=8, input_tokens=100, cached_tokens=40, output_tokens=10, cost_usd=2.0)
    assert cost_row("a", 4, usage, 8.0) == ("a", 4, 8, 100, 40, 10, "2.00", "0.50000", "2.000")
    assert cost_row("a", 0, Usage(), 0.0)[-3:] == (None, None, None)
