"""One picture of recall over comments: thresholds, the tools of Martian's benchmark, and clean pull requests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bot.features.shared.findings import Category, Impact, Severity
from evaluation.crbench.filters import Filter
from evaluation.crbench.golden_score import remarks
from evaluation.crbench.judge import ReviewComment, comments_in_file
from evaluation.crbench.task import PaperSeverity, read_tasks
from tests.evaluation.browser import look
from tests.evaluation.crbench.conftest import comments_of, judge_of, recording
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.crbench.test_golden import aacr
from tests.evaluation.crbench.test_golden import build as build_golden
from tests.evaluation.crbench.test_replay_and_score import MERGED, SQUASHED, finding, replay, score
from tests.evaluation.running import command, read, write


@pytest.fixture
def run(project: Path, tasks: Path) -> Path:
    """Two bugs found: one of high severity at 40 %, one of low severity at 90 %; and noise of high severity."""
    first = [
        {**finding("engine.py", "return items[0]", "It is empty."), "confidence": 40},
        {**finding("engine.py", "def first(items):", "Noise.", "high"), "confidence": 80, "category": "data"},
    ]
    second = [{**finding("total.py", "return sum(items[1:])", "It skips.", "low"), "confidence": 90}]
    replies = [
        (name, {"reasoning": "r", "findings": result}) for name, result in ((MERGED, first), (SQUASHED, second))
    ]
    folder = replay(project, tasks, recording(project / "r.jsonl", "reviewer", replies))
    judge = judge_of(
        project / "j.jsonl",
        comments_of(folder),
        lambda comment: "NOISE" if comment.text == "Noise." else "BUG_HIT",
    )
    score(tasks, folder, "--judge", judge, "--comments", "reported")
    return folder


def test_thresholds_trade_bugs_for_silence(tasks: Path, run: Path) -> None:
    result = score(tasks, run, "--filter", "1")
    curve = {
        (point["min_severity"], point["min_confidence"]): (point["comments_per_pull"], point["recall_per_bug"])
        for point in result["filters"]["single-shot, reviewer"]
    }
    assert curve["low", 0] == (1.5, 1.0)
    assert curve["medium", 0] == (1.0, 0.5)
    assert curve["low", 50] == (1.0, 0.5)
    assert curve["low", 90] == (0.5, 0.5)
    assert curve["high", 90] == (0.0, 0.0)
    selection = result["chosen"]["single-shot, reviewer"]
    assert (selection["min_severity"], selection["min_confidence"], selection["recall_per_bug"]) == (
        "low",
        90,
        0.5,
    )
    output = command("score", "crbench", "--tasks", str(tasks), "--run", str(run), "--filter", "1").out
    assert (
        "severity medium and 50 % confidence keep 0 of the 2 bugs found (0.0 of 100.0 % of all) "
        "and 1 of 3 comments" in output
    )
    assert "review: {min_severity: low, min_confidence: 90} finds 50.0 % with 0.50 comments" in output
    ran = command("score", "crbench", "--tasks", str(tasks), "--run", str(run), "--filter", "0.1")
    assert "most bugs with at most 0.1" in ran.out, "silence is a filter, too"


def test_a_filter_is_the_live_reviewers_rule() -> None:
    def comment(**values: Any) -> ReviewComment:
        return ReviewComment(task_id="t", path="p", line=1, text="x", **values)

    strict = Filter(Severity.MEDIUM, 50)
    assert strict.passes(comment())
    assert not strict.passes(comment(severity="low", confidence=99))
    assert not strict.passes(comment(severity="high", confidence=49))
    assert strict.passes(comment(severity="high", confidence=35, models=2)), "a second model counts 15 percent"
    assert strict.passes(comment(severity="high", confidence=1, proof="proven"))
    dependent = [strict.passes(comment(severity="high", confidence=chance, depends=True)) for chance in (74, 75)]
    assert dependent == [False, True]


GOLDEN = [
    {"golden_comment": "It is empty.", "severity": "High"},
    {"golden_comment": "It skips.", "severity": "Low"},
]
URL = "https://github.com/ada/engine/pull/5"


@pytest.fixture
def martian(tmp_path: Path) -> Path:
    """A clone with one pull request, two tools and two judges; the tool ``loud`` has three comments."""

    def evaluation(matched: list[str], others: list[str]) -> dict[str, Any]:
        return {
            "skipped": False,
            "true_positives": GOLDEN[: len(matched)],
            "false_positives": [{"candidate": text} for text in others],
            "false_negatives": GOLDEN[len(matched) :],
            "total_candidates": len(matched) + len(others),
        }

    clone = Scratch(tmp_path / "martian")
    texts = {"quiet": ["empty list"], "loud": ["empty again", "a nit", "another nit"]}
    for judge, hits in (("opus", 1), ("gpt", 0)):
        folder = f"offline/results/{judge}"
        results = {
            "quiet": evaluation(texts["quiet"], []),
            "loud": evaluation(texts["loud"][:hits], texts["loud"][hits:]),
        }
        candidates = {tool: [{"text": text} for text in replies] for tool, replies in texts.items()}
        # A pull request that the judge skipped says nothing about a tool, whatever candidates it has.
        skipped = {"quiet": {"skipped": True, "total_candidates": 1}}
        clone.write(f"{folder}/evaluations.json", json.dumps({URL: results, f"{URL}1": skipped}))
        others = {"quiet": [{"text": "never judged"}]}
        clone.commit("Add results", f"{folder}/candidates.json", json.dumps({URL: candidates, f"{URL}1": others}))
    return clone.folder


def test_the_tools_of_martians_benchmark_are_counted_per_judge(martian: Path) -> None:
    ran = command("score", "golden", "--martian", str(martian), "--json")
    tools = {(tool["tool"], tool["judge"]): tool for tool in ran.json["tools"]}
    assert tools["loud", "opus"].items() >= {"recall": 0.5, "precision": 1 / 3, "comments_per_pull": 3.0}.items()
    assert tools["loud", "gpt"].items() >= {"recall": 0.0, "precision": 0.0, "golden": 2}.items()
    assert tools["quiet", "opus"].items() >= {"recall": 0.5, "precision": 1.0, "pulls": 1}.items()
    command("score", "golden", "--martian", str(martian.parent / "repos"), code=2)
    assert "give --tasks, --martian, or both" in command("score", "golden", "--json", code=2).err


def test_our_judge_is_compared_with_each_published_one(martian: Path, tmp_path: Path) -> None:
    labels = {"empty list": "BUG_HIT", "empty again": "BUG_HIT", "a nit": "NOISE", "another nit": "BUG_HIT"}
    replies = [
        (f"ada__engine-5/{ReviewComment(task_id='ada__engine-5', path='', line=None, text=text).key}",
         {"reason": "r", "classification": label, "bug": 1})
        for text, label in labels.items()
    ]  # fmt: skip
    of_skipped = ReviewComment(task_id="ada__engine-51", path="", line=None, text="never judged").key
    replies.append((f"ada__engine-51/{of_skipped}", {"reason": "r", "classification": "NOISE", "bug": None}))
    judge = recording(tmp_path / "judge.jsonl", "judge", replies)
    options = ("--martian", str(martian), "--judge", judge, "--cache", f"{tmp_path}/cache")
    agreement = command("score", "golden", *options, "--json").json["agreement"]
    # Cohen (1960) by hand. opus: matched 1 1 0 0, ours 1 1 0 1: p_o = 3/4, p_e = 1/2 * 3/4 + 1/2 * 1/4.
    assert agreement["opus"] == {"candidates": 4, "agreement": 0.75, "kappa": pytest.approx(0.5)}
    # gpt: matched 1 0 0 0, ours 1 1 0 1: p_o = 1/2, p_e = 1/4 * 3/4 + 3/4 * 1/4.
    assert agreement["gpt"]["kappa"] == pytest.approx((0.5 - 0.375) / (1 - 0.375))
    assert "0.500" in command("score", "golden", *options).out


def test_a_report_shows_curve_and_tools_with_a_note_that_the_sets_differ(
    project: Path, run: Path, martian: Path
) -> None:
    command("report", str(run), "--martian", str(martian), "--out", f"{project}/r.html")
    page = (project / "r.html").read_text()
    for text in ("Comments and recall", "not a ranking against this reviewer", "the 2 tools of Martian"):
        assert text in page


@pytest.fixture
def golden(tmp_path: Path, scratch: Scratch) -> Path:
    """Two confirmed comments and a rejected one on pull request 5, with the kinds that a judge gave them."""
    base, head = scratch.git("rev-parse", "main~3"), scratch.git("rev-parse", "five")
    confirmed = aacr(5, base, head, ("Starts at two.", "Code Defect"), ("Slow.", "Performance"))
    confirmed["project_main_language"] = "Python"
    for comment, level in zip(confirmed["comments"], ("Diff Level", "Repo Level"), strict=True):
        comment.update(context=level, path="a.py", to_line=1)
    rejected = aacr(5, base, head, ("Nonsense.", "Code Defect"), kind="negative")
    kinds = [
        (f"ada__engine-5/{number}", {"reason": "r", "kind": kind})
        for number, kind in enumerate(("defect", "style"))
    ]
    judge = recording(tmp_path / "kinds.jsonl", "kinds", kinds)
    build_golden(tmp_path, "aacr", [confirmed, rejected], "--judge", judge)
    return tmp_path / "tasks.jsonl"


def test_golden_comments_are_scored_by_language_level_and_kind(golden: Path, tmp_path: Path) -> None:
    places = [("ada__engine-5", 1), ("ada__engine-5", None), ("unknown-1", 1)]
    comments = write(
        "said.jsonl",
        ({"instance_id": name, "path": "a.py", "line": line, "comment": "x is two"} for name, line in places),
    )
    judge = judge_of(tmp_path / "j.jsonl", comments_in_file(str(comments)), lambda comment: "BUG_HIT", bug=1)
    result = command(f"score crbench --tasks {golden} --predictions {comments} --judge {judge} --json").json
    assert (result["bugs"], result["comments"], result["hits"]) == (2, 2, 2)
    assert (result["recall"], result["recall_per_bug"]) == (1.0, 0.5), "both are about the same golden comment"
    by = result["by"].items()
    shares = {name: {kind: share["recall_per_bug"] for kind, share in kinds.items()} for name, kinds in by}
    assert shares["language"] == {"Python": 0.5}
    assert shares["level"] == {"diff": 1.0, "repository": 0.0}
    assert shares["kind"] == {"defect": 1.0, "style": 0.0}
    assert list(shares["kind"]) == ["defect", "style"]


def test_judge_and_second_question_are_scored_on_rejected_comments(golden: Path, tmp_path: Path) -> None:
    items = remarks(list(read_tasks(str(golden))), None, 0)
    assert [(item.remark.description, item.confirmed) for item in items] == [
        ("Starts at two.", True), ("Slow.", True), ("Nonsense.", False),
    ]  # fmt: skip
    classes = {"Starts at two.": "BUG_HIT", "Slow.": "VALID_SUGGESTION", "Nonsense.": "NOISE"}
    chances = {"Starts at two.": 90, "Slow.": 30, "Nonsense.": 10}
    stands = {"trace": "t", "breaks_when": "always", "quote": "x = 2", "instead": "two"}
    lines = []
    for item in items:
        text, subject = item.remark.description, f"ada__engine-5/{item.comment.key}"
        judgements = {"reason": "r", "classification": classes[text], "bug": 1}
        verdict = {90: "upheld", 30: "unsure", 10: "refuted"}[chances[text]]
        doubted = {**stands, "p_holds": chances[text], "verdict": verdict}
        lines += [
            {"model": "m", "subject": subject, "purpose": "crbench.judge", **judgements},
            {"model": "m", "subject": subject, "purpose": "review.doubt", **doubted},
        ]
    write(tmp_path / "m.jsonl", lines)
    model = f"recorded:{tmp_path}/m.jsonl#m"
    options = ("--tasks", str(golden), "--judge", model, "--doubt", model, "--cache", f"{tmp_path}/cache")
    result = command("score", "golden", *options, "--json").json
    assert result["judge"]["confirmed"] == {"BUG_HIT": 1, "VALID_SUGGESTION": 1, "NOISE": 0, "unjudged": 0}
    assert result["judge"]["rejected"]["NOISE"] == 1
    assert result["doubt"]["confirmed"] == {"asked": 2, "dropped": 1, "unanswered": 0}
    assert result["doubt"]["rejected"] == {"asked": 1, "dropped": 1, "unanswered": 0}
    assert result["doubt"]["auc"] == 1.0
    ran = command("score", "golden", *options, "--limit", "1")
    assert "AUC of its chance, confirmed against rejected: not defined over 1" in ran.out


DAYS = 86_400


def test_clean_pull_requests_are_those_that_needed_no_repair_in_180_days(tmp_path: Path) -> None:
    clone = Scratch(tmp_path / "repos" / "ada+engine")
    clone.commit("Begin", "base.py", "x = 0")
    for number, name in ((1, "soon"), (2, "late"), (3, "never")):
        commit = clone.commit(f"Add {name} (#{number})", f"{name}.py", "x = 1", "y = 2")
        clone.git("update-ref", f"refs/pull/{number}/head", commit)
    clone.commit("Close an issue (#21)", "issue.py", "x = 1")
    clone.commit("Describe it (#4)", "docs/a.md", "Words.")
    clone._clock += 180 * DAYS - 300  # 180 days after #1, and a few minutes more after nothing else
    clone.commit("Fix soon (#11)", "soon.py", "x = 2", "y = 2")
    clone._clock += DAYS
    clone.commit("Fix late (#12)", "late.py", "x = 2", "y = 2")
    clone.commit("Add recent (#5)", "recent.py", "z = 1")
    yes = {"reasoning": "r", "category": "UNPREVENTABLE", "confidence": 1}
    model = recording(tmp_path / "m.jsonl", "m", [(f"ada__engine-{n}/preventable", yes) for n in (11, 12)])
    paths = ("--repo", str(clone.folder), "--since", "2020-01-01", "--out", f"{tmp_path}/own.jsonl")
    assert "and 2 clean pull requests" in command("build", "own", *paths, "--offline", "--model", model).err
    clean = {task.instance_id: task for task in read_tasks(f"{tmp_path}/own.jsonl")}
    assert set(clean) == {"ada__engine-2.clean", "ada__engine-3.clean"}
    command("build", "own", *paths, "--offline", "--model", model, "--clean", "0", "--overwrite")
    assert list(read_tasks(f"{tmp_path}/own.jsonl")) == []


def test_comments_on_clean_pull_requests_are_counted_apart(project: Path, tasks: Path) -> None:
    rows = read(tasks)
    [merged, squashed] = [row for row in rows if row["kept"]]
    clean = [{**squashed, "instance_id": f"c-{number}", "bugs": [], "clean": True} for number in (1, 2, 3)]
    write(tasks, (merged, *clean))
    remark = finding("total.py", "return sum(items[1:])", "Wrong.")
    replies = [
        (MERGED, {"reasoning": "r", "findings": []}),
        ("c-1", {"reasoning": "r", "findings": [remark]}),
        ("c-2", {"reasoning": "r", "findings": []}),
    ]
    run = replay(project, tasks, recording(project / "r.jsonl", "reviewer", replies))
    judge = recording(project / "j.jsonl", "j", [("x", {})])
    result = score(tasks, run, "--judge", judge)
    assert (result["tasks"], result["bugs"], result["comments"]) == (1, 1, 0)
    assert result["unanswered"] == 0, "the clean one without an answer is no task with a bug"
    assert result["clean"] == {
        "tasks": 2, "silent": 1, "comments": 1, "silent_share": 0.5, "comments_per_clean_pull": 0.5,
    }  # fmt: skip
    ran = command("score", "crbench", "--tasks", str(tasks), "--run", str(run))
    assert "without a comment % [95 %]" in ran.out


@pytest.mark.debian("chromium")
def test_no_texts_of_a_page_about_reviews_overlap(project: Path, run: Path, martian: Path) -> None:
    """All sections of two reviewers, and the one picture with the tools."""
    shutil.copytree(run, project / "again")
    paths = (str(run), f"{project}/again", "--martian", str(martian))
    command("report", *paths, "--out", f"{project}/r.html")
    look(project / "r.html", figures=7)


def test_golden_comments_replay_from_a_recorded_model_to_a_page(golden: Path, tmp_path: Path) -> None:
    noticed = finding("a.py", "x = 2", "x is two")
    reviewer = recording(
        tmp_path / "r.jsonl", "reviewer", [("ada__engine-5", {"reasoning": "r", "findings": [noticed]})]
    )
    folder = replay(tmp_path, golden, reviewer)
    judge = judge_of(tmp_path / "j.jsonl", comments_of(folder), lambda comment: "BUG_HIT", bug=1)
    score(golden, folder, "--judge", judge)
    assert "| single-shot, reviewer | 1 | – | – | " in command("report", folder).out, "no fix, no fixed lines"


@pytest.mark.debian("chromium")
def test_no_names_overlap_in_radar_plots_of_all_kinds_of_bugs(project: Path, tasks: Path) -> None:
    severities = list(PaperSeverity)
    bugs = [
        {
            "description": f"Bug {number}.", "category": category, "impact": list(Impact)[number % len(Impact)],
            "severity": Severity(severities[number % 4]), "paper_severity": severities[number % 4],
        }
        for number, category in enumerate(Category)
    ]  # fmt: skip
    rows = read(tasks)
    merged = next(row for row in rows if row["instance_id"] == MERGED)
    tasks.write_text(json.dumps({**merged, "bugs": bugs}) + "\n")
    remark = finding("engine.py", "return items[0]", "It is empty.")
    replies = [(MERGED, {"reasoning": "r", "findings": [remark]})]
    folder = replay(project, tasks, recording(project / "r.jsonl", "reviewer", replies))
    score(
        tasks,
        folder,
        "--judge",
        judge_of(project / "j.jsonl", comments_of(folder), lambda comment: "BUG_HIT", bug=2),
    )
    shutil.copytree(folder, project / "again")
    command("report", str(folder), f"{project}/again", "--out", f"{project}/r.html")
    look(project / "r.html", figures=8)
