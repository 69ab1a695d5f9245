"""A benchmark drafts with the app's own pipeline and judges with the fixed version; scoring reads the records."""

from __future__ import annotations

import csv
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.reproduction.report import parse_report
from evaluation.brt.cases import Checkouts, read_cases
from evaluation.brt.drafting import Pair, examples_for
from evaluation.cli import main
from evaluation.run.folder import Record, RunFacts, RunFolder, Tasks

BUGGY = (
    "def split(items, size):\n    return [items[i * size : (i + 1) * size] for i in range(len(items) // size)]\n"
)
FIXED = BUGGY.replace("len(items) // size", "-(-len(items) // size)")
REPORT = "split drops the rest\n\n`split([1, 2, 3], 2)` returns `[[1, 2]]`. I expect `[[1, 2], [3]]`.\n"
HEAD = "from lists import split\n\ndef test_rest():\n    "
RIGHT = f"{HEAD}assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
#: Fails on both versions, and as reported: only the fixed version can tell.
GREEDY = f"{HEAD}assert split([1, 2, 3], 2) == [[1, 2], [3, None]]\n"
PASSING = f"{HEAD}assert split([1, 2], 2) == [[1, 2]]\n"
CASES = {"two-of-three": [GREEDY, RIGHT, PASSING], "only-wrong": [GREEDY, PASSING, GREEDY], "silent": []}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code or 0
    assert isinstance(code, int)
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three cases on one project, and a recorded model that knows two of them."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("base", BUGGY), ("fixed", FIXED)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lists.py").write_text(text)
    case = {
        "problem_statement": REPORT,
        "base": "base",
        "fixed": "fixed",
        "command": [sys.executable, "-m", "pytest", "-q", "{tests}"],
        "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }
    Path("cases.jsonl").write_text(
        "".join(json.dumps({**case, "instance_id": identity}) + "\n" for identity in CASES)
    )
    lines = [
        {"model": "m", "subject": name, "plan": "", "code": code}
        for name, codes in CASES.items()
        for code in codes
    ]
    Path("drafts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


@pytest.mark.debian("bubblewrap")
def test_drafts_are_judged_ranked_and_scored(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--out", "run", "--samples", "3"]

    code, run = printed(capsys, "replay", "brt", *arguments, "--json")
    _, scores = printed(capsys, "score", "brt", "--run", "run", "--json")

    records = {
        load["task_id"]: load for load in map(json.loads, Path("run/records.jsonl").read_text().splitlines())
    }
    assert (code, run["failed"]) == (0, 1)
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
    _, report = printed(capsys, "report", "run", "--json")
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
def test_a_recognised_bug_is_recorded_and_left_out_of_a_second_score(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{"model": "m", "subject": name, "plan": "", "code": RIGHT} for name in ("two-of-three", "only-wrong")]
    lines[0]["recognised"] = True  # type: ignore[assignment]
    Path("drafts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--out", "run", "--samples", "1"]

    printed(capsys, "replay", "brt", *arguments, "--json")
    _, scores = printed(capsys, "score", "brt", "--run", "run", "--json")

    assert scores["brt"] == pytest.approx(2 / 3)
    [without] = scores["without_recognised"].values()
    assert (without["recognised"], without["asked"]) == (1, 1)
    assert without["figures"]["brt"][0] == pytest.approx(1 / 2)


def test_the_published_rankings_are_scored_by_the_command(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rankings = str(shared_data / "brt" / "libro_ranking_d4j_selected_th1.csv")

    _, scores = printed(capsys, "score", "brt", "--rankings", rankings, "--replicates", "200", "--json")

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
def test_wrong_usage_ends_with_2_and_says_where(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_an_interrupted_run_keeps_all_of_its_bugs_in_the_denominator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of ten bugs were tried and reproduced before the end: that is 20 %, not 100 %."""
    started = datetime(2026, 1, 1, tzinfo=UTC)
    facts = RunFacts(
        benchmark="brt", model="m", version="0", tasks=Tasks(source="cases.jsonl"), started_at=started
    )
    folder = RunFolder.resume(tmp_path / "run", facts, [f"bug-{n}/only" for n in range(10)])
    for name in ("bug-0/only", "bug-1/only"):
        folder.append(Record(task_id=name, details={"instance_id": name.partition("/")[0], "brt": True}))
    folder.append(Record(task_id="bug-1/other", error="the sandbox broke"))  # the bug has an answer all the same
    folder.close(None)

    with pytest.raises(SystemExit) as ended:
        main(["score", "brt", "--run", str(tmp_path / "run"), "--json"])

    assert not ended.value.code
    scores = json.loads(capsys.readouterr().out)
    assert [scores[name] for name in ("instances", "reproduced", "without_answer", "brt")] == [10, 2, 8, 0.2]


@pytest.mark.debian("bubblewrap")
def test_nothing_is_asked_where_no_test_can_run(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command's interpreter knows no test runner: that is no verdict, and no draft is paid for."""
    (case, *_) = map(json.loads, Path("cases.jsonl").read_text().splitlines())
    lines = [{**case, "command": [sys.executable, "-m", "no_such_runner", "{tests}"]}]
    Path("cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--out", "run"]

    _, run = printed(capsys, "replay", "brt", *arguments, "--json")
    _, scores = printed(capsys, "score", "brt", "--run", "run", "--json")

    (record,) = map(json.loads, Path("run/records.jsonl").read_text().splitlines())
    assert record["state"] == "environment"
    assert "No module named no_such_runner" in record["error"]
    assert record["usage"]["calls"] == 0
    assert (run["failed"], scores["instances"], scores["without_answer"]) == (1, 1, 1)


def test_without_a_sandbox_there_is_one_clear_error(
    bench: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(bench))

    with pytest.raises(SystemExit) as ended:
        main(["replay", "brt", "--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--out", "run"])

    assert ended.value.code == 2
    assert capsys.readouterr().err.count("bwrap is not installed") == 1
    assert not Path("run/records.jsonl").exists()


@pytest.mark.debian("bubblewrap")
def test_the_plain_method_selection_by_agreement_alone_and_exports(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A draft that asserts what is wrong is turned round: a reproducing test here, none by LIBRO's own method."""
    inverted = f"{HEAD}assert split([1, 2, 3], 2) == [[1, 2]]\n"
    odd = f"{HEAD}raise RuntimeError('of its own')\n"
    (case, *_) = map(json.loads, Path("cases.jsonl").read_text().splitlines())
    Path("cases.jsonl").write_text(json.dumps({**case, "instance_id": "one"}) + "\n")
    lines = [{"model": "m", "subject": "one", "plan": "", "code": code} for code in (inverted, odd)]
    Path("drafts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--samples", "2"]

    printed(capsys, "replay", "brt", *arguments, "--no-match", "--out", "run", "--json")
    _, scores = printed(capsys, "score", "brt", "--run", "run", "--export", "libro", "--json")
    _, plain = printed(capsys, "score", "brt", "--run", "run", "--plain", "--json")

    assert (scores["brt"], scores["brt_plain"], plain["brt"]) == (1.0, 0.0, 0.0)
    assert (plain["suggestions"]["suggestion_precision"], plain["suggestions"]["acc@5"]) == (0.0, 0)
    printed(capsys, "score", "brt", "--run", "run", "--plain", "--export", "plain", "--json")
    assert Path("plain/rankings_before.csv").read_text().splitlines()[1:] == ["one,100000,0,1"]
    assert len(Path("plain/features.csv").read_text().splitlines()) == 2
    (record,) = map(json.loads, Path("run/records.jsonl").read_text().splitlines())
    assert sorted(record["shown"]) == ["0", "1"]
    suggestions = scores["suggestions"]
    assert (suggestions["suggestion_precision"], suggestions["suggestion_precision_of_tests"]) == (1.0, 0.5)
    _, again = printed(capsys, "score", "brt", "--rankings", "libro/rankings.csv", "--json")
    assert again["acc@1"] == suggestions["acc@1"]
    features = list(csv.DictReader(Path("libro/features.csv").read_text().splitlines()))
    assert [(row["success"], row["clus_size_output_fib"]) for row in features] == [("True", "1"), ("False", "1")]


@pytest.mark.debian("bubblewrap")
def test_rows_of_libros_package_are_cases_as_they_are(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version in ("base", "fixed"):
        (bench / "bugs" / "Lists_1").mkdir(parents=True, exist_ok=True)
        (bench / version).rename(bench / "bugs" / "Lists_1" / version)
    row = {
        "bug_id": "Lists_1",
        "title": "split drops the rest",
        "description_html": "<p>It does.</p>",
        "invalid": False,
    }
    Path("libro.jsonl").write_text(
        "".join(
            json.dumps(key) + "\n"
            for key in (row, {**row, "bug_id": "Lists_2"}, {**row, "bug_id": "3", "invalid": True})
        )
    )
    for version in ("base", "fixed"):
        (bench / "bugs" / "3" / version).mkdir(parents=True)  # an invalid report is no case, checked out or not
    assert list(read_cases("libro.jsonl", Checkouts(bench / "bugs", ("pytest", "{tests}")))) == ["Lists_1"]
    right = {"instance_id": "Lists_1", "candidate_id": "1", "path": "test_rest.py", "content": RIGHT}
    Path("tests.jsonl").write_text(json.dumps(right) + "\n")
    places = [
        "--checkouts",
        "bugs",
        "--test-command",
        f"{sys.executable} -m pytest -q -p no:cacheprovider {{tests}}",
    ]

    printed(
        capsys,
        "replay",
        "brt",
        "--cases",
        "libro.jsonl",
        *places,
        "--candidates",
        "tests.jsonl",
        "--out",
        "run",
        "--json",
    )

    (record,) = map(json.loads, Path("run/records.jsonl").read_text().splitlines())
    assert record["brt"] is True, record


@pytest.mark.debian("bubblewrap")
def test_the_preset_of_libro_changes_no_draft_and_ranks_as_libro_does(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two drafts fail alike, one as reported, one passes, one cannot be read."""
    odd = f"{HEAD}raise RuntimeError('of its own')\n"
    later = f"{HEAD}assert len(split([1, 2, 3], 2)) == 7\n"
    codes = (odd, odd, later, RIGHT, f"{HEAD}assert split([1, 2, 3], 2) == [[1, 2]]\n", "def test_broken(:\n")
    (case, *_) = map(json.loads, Path("cases.jsonl").read_text().splitlines())
    Path("cases.jsonl").write_text(json.dumps({**case, "instance_id": "one"}) + "\n")
    lines = [{"model": "m", "subject": "one", "plan": "", "code": code} for code in codes]
    Path("drafts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["--cases", "cases.jsonl", "--model", "recorded:drafts.jsonl#m", "--preset", "libro"]

    printed(capsys, "replay", "brt", *arguments, "--out", "run", "--json")
    _, scores = printed(capsys, "score", "brt", "--run", "run", "--export", "libro", "--json")
    printed(capsys, "replay", "brt", *arguments, "--threshold", "3", "--out", "strict", "--json")
    _, strict = printed(capsys, "score", "brt", "--run", "strict", "--json")
    printed(capsys, "replay", "brt", *arguments, "--pick", "--out", "picked", "--json")

    (record,) = map(json.loads, Path("run/records.jsonl").read_text().splitlines())
    facts = json.loads(Path("run/run.json").read_text())
    settings = {"samples": 50, "threshold": 2, "match": False, "turn": False, "repair": False, "pick": False}
    assert facts["config"]["drafting"].items() >= settings.items()
    assert "recognised" not in facts["prompts"]
    assert [draft["fate"] for draft in record["drafts"]] == [*["failed"] * 4, "passed", "unusable"]
    assert not any(draft["repaired"] or draft["inverted"] for draft in record["drafts"])
    # The value of the report comes first, then the larger cluster, whose equal drafts are one candidate.
    assert record["shown"] == ["3", "0", "2"]
    assert (scores["suggestions"]["bugs"], scores["suggestions"]["acc@1"]) == (1, 1)
    before = "one,1,1,3"
    assert Path("libro/rankings_before.csv").read_text().splitlines()[1:] == [before]
    assert strict["suggestions"]["bugs"] == 0
    assert strict["suggestions"]["suggestion_recall"] == 0.0
    (picked,) = map(json.loads, Path("picked/records.jsonl").read_text().splitlines())
    assert picked["shown"] == ["0"], "clusters of a single draft are removed before the model picks"


def test_a_run_of_another_benchmark_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = RunFacts(
        benchmark="crbench", model="m", version="0", tasks=Tasks(source="t"), started_at=datetime.now(UTC)
    )
    RunFolder.resume(tmp_path / "run", facts).close(None)

    for command in (("brt", "--run"), ("bloom", "--baseline")):
        with pytest.raises(SystemExit) as ended:
            main(["score", *command, str(tmp_path / "run")])

        assert ended.value.code == 2
        assert "is a run of crbench, not of replay brt" in capsys.readouterr().err
