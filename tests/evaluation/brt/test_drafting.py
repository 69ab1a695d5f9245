"""A benchmark drafts with the app's own pipeline and judges with the fixed version; scoring reads the records."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from bot.reproduction.report import parse_report
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import ProgramResult, ProgramRun
from evaluation.brt.cases import Checkouts, read_cases
from evaluation.brt.drafting import Pair, examples_for
from evaluation.run.folder import Record, RunFolder
from tests.evaluation.checkouts import UNITTEST_CASE, UNITTEST_HEAD, checkouts
from tests.evaluation.running import facts_of, printed, read, refusal, write

pytestmark = pytest.mark.usefixtures("remembered_runs")

BUGGY = (
    "def split(items, size):\n    return [items[i * size : (i + 1) * size] for i in range(len(items) // size)]\n"
)
FIXED = BUGGY.replace("len(items) // size", "-(-len(items) // size)")
REPORT = "split drops the rest\n\n`split([1, 2, 3], 2)` returns `[[1, 2]]`. I expect `[[1, 2], [3]]`.\n"
HEAD = UNITTEST_HEAD.format(name="split")
RIGHT = f"{HEAD}self.assertEqual(split([1, 2, 3], 2), [[1, 2], [3]])\n"
#: Fails on both versions, and as reported: only the fixed version can tell.
GREEDY = f"{HEAD}self.assertEqual(split([1, 2, 3], 2), [[1, 2], [3, None]])\n"
PASSING = f"{HEAD}self.assertEqual(split([1, 2], 2), [[1, 2]])\n"
CASES = {"two-of-three": [GREEDY, RIGHT, PASSING], "only-wrong": [GREEDY, PASSING, GREEDY], "silent": []}


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Three cases on one project, and a recorded model that knows two of them."""
    tests = {"test_lists.py": HEAD.replace("_rest", "_some") + "self.assertEqual(split([1], 1), [[1]])\n"}
    checkouts(tmp_path, {"lists.py": BUGGY, **tests}, {"lists.py": FIXED, **tests})
    write("cases.jsonl", ({**UNITTEST_CASE, "instance_id": name, "problem_statement": REPORT} for name in CASES))
    lines = [
        {"model": "m", "subject": name, "plan": "", "code": code}
        for name, codes in CASES.items()
        for code in codes
    ]
    write("drafts.jsonl", lines)
    return tmp_path


@pytest.mark.debian("bubblewrap")
def test_drafts_are_judged_ranked_and_scored(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[str, str]] = []
    run_program = Bubblewrap.run

    def counted(sandbox: Bubblewrap, request: ProgramRun) -> ProgramResult:
        runs.append((request.workdir.name, "".join(request.files.values())))
        return run_program(sandbox, request)

    monkeypatch.setattr(Bubblewrap, "run", counted)
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--out", "run", "--samples", "3"]

    run = printed("replay", "brt", *arguments)
    scores = printed("score", "brt", "--run", "run")

    records = {record["task_id"]: record for record in read("run/records.jsonl")}
    assert run["failed"] == 1
    # A draft of two cases runs twice for each on the buggy version, and not once more to be judged.
    statements = [draft.removeprefix(HEAD) for draft in (GREEDY, RIGHT, PASSING)]
    times = Counter(
        (version, statement) for version, text in runs for statement in statements if statement in text
    )
    assert [times["base", statement] for statement in statements] == [4, 2, 4]
    assert [times["fixed", statement] for statement in statements] == [2, 2, 0]
    drafts = records["two-of-three"]["drafts"]
    assert [draft["brt"] for draft in drafts] == [False, True, False]
    assert [draft["base"]["status"] for draft in drafts] == ["failed", "failed", "passed"]
    assert [draft["fixed"] and draft["fixed"]["status"] for draft in drafts] == ["failed", "passed", None]
    assert "holds no reply" in records["silent"]["error"]
    assert scores["instances"] == 3
    assert scores["reproduced"] == 1
    assert scores["without_answer"] == 1
    assert scores["brt"] == pytest.approx(1 / 3)
    suggestions = scores["suggestions"]
    assert suggestions["bugs"] == 2
    assert suggestions["suggestion_precision"] == pytest.approx(1 / 2)
    assert suggestions["suggestion_recall"] == 1.0
    assert suggestions["acc@5"] == 1
    report = printed("report", "run")
    assert [section["title"] for section in report["sections"]] == [
        "Runs",
        "Bugs reproduced",
        "Suggestions",
        "Drafts",
        "Beside SWT-Bench",
        "Cost",
        "Tables and figures of the papers",
    ]
    (row, _) = report["sections"][2]["tables"][0]["rows"]
    assert row[:3] == ["m (2 bugs)", 1, 1]
    # One answer for each of three bugs: two have one, both fail before the fix, one of them passes after it.
    beside = report["sections"][4]["tables"][0]["rows"]
    assert beside[0] == ["m", 3, "66.7", "66.7", "33.3"]
    assert ["LIBRO, GPT-4o (Verified)", 433, None, None, "17.8"] in beside


@pytest.mark.debian("bubblewrap")
def test_a_recognised_bug_is_recorded_and_left_out_of_a_second_score(bench: Path) -> None:
    lines = [{"model": "m", "subject": name, "plan": "", "code": RIGHT} for name in ("two-of-three", "only-wrong")]
    lines[0]["recognised"] = True  # type: ignore[assignment]
    write("drafts.jsonl", lines)
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--out", "run", "--samples", "1"]

    printed("replay", "brt", *arguments)
    scores = printed("score", "brt", "--run", "run")

    assert scores["brt"] == pytest.approx(2 / 3)
    [without] = scores["without_recognised"].values()
    assert (without["recognised"], without["asked"]) == (1, 1)
    assert without["figures"]["brt"][0] == pytest.approx(1 / 2)


def test_the_published_rankings_are_scored_by_the_command(shared_data: Path) -> None:
    rankings = str(shared_data / "brt" / "libro_ranking_d4j_selected_th1.csv")

    scores = printed("score", "brt", "--rankings", rankings, "--replicates", "200")

    assert {name: scores[name] for name in scores if "@" in name} == {
        "acc@1": 149,
        "acc@3": 184,
        "acc@5": 199,
        "wef@1": 201,
        "wef@3": 539,
        "wef@5": 797,
    }
    accuracy = scores["per_bug"]["acc@1"]
    assert accuracy["value"] == pytest.approx(149 / 350)
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]


def test_an_open_book_shows_the_nearest_bugs_but_not_the_bug_itself() -> None:
    book = [
        Pair(instance_id="same", problem_statement=REPORT, test="the answer"),
        Pair(instance_id="near", problem_statement="split drops items of a list", test="near"),
        Pair(instance_id="nearer", problem_statement="split drops the rest of a list", test="nearer"),
        Pair(instance_id="far", problem_statement="The page is blue.", test="far"),
    ]

    examples = examples_for("same", parse_report(REPORT), book)

    assert [candidate_id.test for candidate_id in examples] == ["nearer", "near"]
    assert len(examples_for("same", parse_report(REPORT), ())) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["score", "brt"], "give one of --rankings, --outcomes and --run"),
        (["score", "brt", "--run", "x", "--before", "y"], "--before goes with --rankings"),
        (["score", "brt", "--rankings", "nowhere.csv"], "nowhere.csv: "),
        (
            ["replay", "brt", "--cases", "c", "--candidates", "d", "--model", "m:m", "--out", "o"],
            "leave --model out",
        ),
    ],
)
def test_wrong_usage_ends_with_2_and_says_where(arguments: list[str], complaint: str) -> None:
    assert complaint in refusal(*arguments)


def test_an_interrupted_run_keeps_all_of_its_bugs_in_the_denominator(tmp_path: Path) -> None:
    """Two of ten bugs were tried and reproduced before the end: that is 20 %, not 100 %."""
    folder = RunFolder.resume(tmp_path / "run", facts_of("brt"), [f"bug-{n}/only" for n in range(10)])
    for name in ("bug-0/only", "bug-1/only"):
        folder.append(Record(task_id=name, details={"instance_id": name.partition("/")[0], "brt": True}))
    folder.append(Record(task_id="bug-1/other", error="the sandbox broke"))  # the bug has an answer all the same
    folder.close(None)

    scores = printed("score", "brt", "--run", "run")
    assert [scores[name] for name in ("instances", "reproduced", "without_answer", "brt")] == [10, 2, 8, 0.2]


@pytest.mark.debian("bubblewrap")
def test_nothing_is_asked_where_no_test_can_run(bench: Path) -> None:
    """The command's interpreter knows no test runner: that is no verdict, and no draft is paid for."""
    (case, *_) = read("cases.jsonl")
    lines = [{**case, "command": [sys.executable, "-m", "no_such_runner", "{tests}"]}]
    write("cases.jsonl", lines)
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--out", "run"]

    run = printed("replay", "brt", *arguments)
    scores = printed("score", "brt", "--run", "run")

    (record,) = read("run/records.jsonl")
    assert record["state"] == "environment"
    assert "No module named no_such_runner" in record["error"]
    assert record["usage"]["calls"] == 0
    assert (run["failed"], scores["instances"], scores["without_answer"]) == (1, 1, 1)


def test_without_a_sandbox_there_is_one_clear_error(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bench))

    paths = ("--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--out", "run")
    assert "bwrap is not installed" in refusal("replay", "brt", *paths)
    assert not Path("run/records.jsonl").exists()


@pytest.mark.debian("bubblewrap")
def test_the_plain_method_selection_by_agreement_alone_and_exports(bench: Path) -> None:
    """A draft that asserts what is wrong is turned round: a reproducing test here, none by LIBRO's own method."""
    inverted = f"{HEAD}self.assertEqual(split([1, 2, 3], 2), [[1, 2]])\n"
    odd = f"{HEAD}raise RuntimeError('of its own')\n"
    (case, *_) = read("cases.jsonl")
    Path("cases.jsonl").write_text(json.dumps({**case, "instance_id": "one"}) + "\n")
    lines = [{"model": "m", "subject": "one", "plan": "", "code": code} for code in (inverted, odd)]
    write("drafts.jsonl", lines)
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--samples", "2"]

    printed("replay", "brt", *arguments, "--no-match", "--out", "run")
    scores = printed("score", "brt", "--run", "run", "--export", "libro")
    plain = printed("score", "brt", "--run", "run", "--plain")

    assert (scores["brt"], scores["brt_plain"], plain["brt"]) == (1.0, 0.0, 0.0)
    assert (plain["suggestions"]["suggestion_precision"], plain["suggestions"]["acc@5"]) == (0.0, 0)
    printed("score", "brt", "--run", "run", "--plain", "--export", "plain")
    assert Path("plain/rankings_before.csv").read_text().splitlines()[1:] == ["one,100000,0,1"]
    assert len(Path("plain/features.csv").read_text().splitlines()) == 2
    (record,) = read("run/records.jsonl")
    assert sorted(record["shown"]) == ["0", "1"]
    suggestions = scores["suggestions"]
    assert (suggestions["suggestion_precision"], suggestions["suggestion_precision_of_tests"]) == (1.0, 0.5)
    again = printed("score", "brt", "--rankings", "libro/rankings.csv")
    assert again["acc@1"] == suggestions["acc@1"]
    features = list(csv.DictReader(Path("libro/features.csv").read_text().splitlines()))
    assert [(row["success"], row["clus_size_output_fib"]) for row in features] == [("True", "1"), ("False", "1")]


@pytest.mark.debian("bubblewrap")
def test_rows_of_libros_package_are_cases_as_they_are(bench: Path) -> None:
    for version in ("base", "fixed"):
        (bench / "bugs" / "Lists_1").mkdir(parents=True, exist_ok=True)
        (bench / version).rename(bench / "bugs" / "Lists_1" / version)
    row = {
        "bug_id": "Lists_1",
        "title": "split drops the rest",
        "description_html": "<p>It does.</p>",
        "invalid": False,
    }
    write("libro.jsonl", (row, {**row, "bug_id": "Lists_2"}, {**row, "bug_id": "3", "invalid": True}))
    for version in ("base", "fixed"):
        (bench / "bugs" / "3" / version).mkdir(parents=True)  # an invalid report is no case, checked out or not
    assert list(read_cases("libro.jsonl", Checkouts(bench / "bugs", ("pytest", "{tests}")))) == ["Lists_1"]
    right = {"instance_id": "Lists_1", "candidate_id": "1", "path": "test_rest.py", "content": RIGHT}
    Path("tests.jsonl").write_text(json.dumps(right) + "\n")
    test_command = f"env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q {{tests}}"
    places = f"--checkouts bugs --test-command '{test_command}'"

    printed(f"replay brt --cases libro.jsonl {places} --candidates tests.jsonl --out run")

    (record,) = read("run/records.jsonl")
    assert record["brt"] is True, record


@pytest.mark.debian("bubblewrap")
def test_the_preset_of_libro_changes_no_draft_and_ranks_as_libro_does(bench: Path) -> None:
    """Two drafts fail alike, one as reported, one in a third way, one passes, one cannot be read."""
    odd = f"{HEAD}raise RuntimeError('of its own')\n"
    later = f"{HEAD}self.assertEqual(len(split([1, 2, 3], 2)), 7)\n"
    passing = f"{HEAD}self.assertEqual(split([1, 2, 3], 2), [[1, 2]])\n"
    codes = (odd, odd, RIGHT, later, passing, "def test_broken(:\n")
    (case, *_) = read("cases.jsonl")
    Path("cases.jsonl").write_text(json.dumps({**case, "instance_id": "one"}) + "\n")
    lines = [{"model": "m", "subject": "one", "plan": "", "code": code} for code in codes]
    write("drafts.jsonl", lines)
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--preset", "libro"]

    printed("replay", "brt", *arguments, "--out", "run")
    scores = printed("score", "brt", "--run", "run", "--export", "libro")
    printed("replay", "brt", *arguments, "--samples", "3", "--threshold", "3", "--out", "strict")
    strict = printed("score", "brt", "--run", "strict")
    printed("replay", "brt", *arguments, "--samples", "3", "--pick", "--out", "picked")

    (record,) = read("run/records.jsonl")
    facts = json.loads(Path("run/run.json").read_text())
    settings = {"samples": 50, "threshold": 2, "match": False, "turn": False, "repair": False, "pick": False}
    assert facts["config"]["drafting"].items() >= settings.items()
    assert "recognised" not in facts["prompts"]
    assert [draft["fate"] for draft in record["drafts"]] == [*["failed"] * 4, "passed", "unusable"]
    assert not any(draft["repaired"] or draft["inverted"] for draft in record["drafts"])
    # The value of the report comes first, then the larger cluster, whose equal drafts are one candidate.
    assert record["shown"] == ["2", "0", "3"]
    assert (scores["suggestions"]["bugs"], scores["suggestions"]["acc@1"]) == (1, 1)
    before = "one,1,1,3"
    assert Path("libro/rankings_before.csv").read_text().splitlines()[1:] == [before]
    assert strict["suggestions"]["bugs"] == 0
    assert strict["suggestions"]["suggestion_recall"] == 0.0
    (picked,) = read("picked/records.jsonl")
    assert picked["shown"] == ["0"], "clusters of a single draft are removed before the model picks"


def test_a_run_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    RunFolder.resume(tmp_path / "run", facts_of("crbench")).close(None)

    write("tasks.jsonl", [{"instance_id": "a", "underspecified": 1}])
    for command, benchmark in (
        ("brt --run", "brt"),
        ("bloom --baseline", "brt"),
        ("bouncerbench-input --tasks tasks.jsonl --run", "bouncerbench-input"),
    ):
        assert f"is a run of crbench, not of {benchmark}" in refusal(f"score {command} run")
