"""From a review task to a score: the live review handler, a judge who does not know it, and what is printed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import NotFound, NotRecorded
from evaluation.crbench.bench import stage
from evaluation.crbench.judge import comments_in
from evaluation.crbench.task import read_tasks
from evaluation.git.repository import GitRepository
from evaluation.run.folder import RunFolder
from tests.evaluation.checkouts import CASE
from tests.evaluation.crbench.conftest import comments_of, judge_of, recording
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import command, printed, read, refusal, write

MERGED, SQUASHED = "ada__engine-101", "ada__engine-102"


def finding(path: str, quote: str, comment: str, severity: str = "high") -> dict[str, Any]:
    return {
        "path": path,
        "quote": quote,
        "line": None,
        "symbol": "",
        "comment": comment,
        "category": "structural",
        "impact": "reliability",
        "severity": severity,
        "suggestion": None,
    }


HIT = "`items[0]` fails for an empty list."
STYLE = "Give `first` a default."
WRONG = "`sum` is not defined."


@pytest.fixture
def reviewer(project: Path) -> str:
    """Finds the first bug twice over, in other words; on the second task it only says something wrong."""
    first = {
        "reasoning": "r",
        "findings": [
            finding("engine.py", "return items[0]", HIT),
            finding("engine.py", "def first(items):", STYLE, "medium"),
            finding("engine.py", "return items[0]", "A remark that is held back.", "low"),
        ],
    }
    second = {"reasoning": "r", "findings": [finding("total.py", "return sum(items[1:])", WRONG)]}
    return recording(project / "reviewer.jsonl", "reviewer", [(MERGED, first), (SQUASHED, second)])


def replay(project: Path, tasks: Path, reviewer: str, out: str = "run", *more: str) -> Path:
    run = project / out
    command("replay", "crbench", "--tasks", str(tasks), "--model", reviewer, "--out", str(run), *more)
    return run


def judge(project: Path, run: Path, name: str = "judge", **labels: str | None) -> str:
    """A recorded judge with one word on each comment of a run; None = it has nothing to say."""
    names = {HIT: "hit", STYLE: "style", WRONG: "wrong"}
    return judge_of(
        project / f"{name}.jsonl", comments_of(run), lambda comment: labels.get(names.get(comment.text, "held"))
    )


def score(tasks: Path, run: Path, *more: str) -> dict[str, Any]:
    result = command("score", "crbench", "--tasks", str(tasks), "--run", str(run), "--json", *more).json
    assert isinstance(result, dict)
    return result


def test_a_judge_weighs_what_the_live_handler_would_post(project: Path, tasks: Path, reviewer: str) -> None:
    run = replay(project, tasks, reviewer)
    judge_id = judge(project, run, hit="BUG_HIT", style="VALID_SUGGESTION", wrong="NOISE")

    result = score(tasks, run, "--judge", judge_id)

    assert {
        name: result[name] for name in ("tasks", "bugs", "comments", "hits", "valid", "noise", "unjudged")
    } == {"tasks": 2, "bugs": 2, "comments": 3, "hits": 1, "valid": 1, "noise": 1, "unjudged": 0}
    assert result["recall"] == result["recall_per_bug"] == 0.5
    assert result["precision"] == pytest.approx(1 / 3)
    assert result["f1"] == pytest.approx(0.4)
    assert result["usefulness"] == pytest.approx(2 / 3)
    assert result["snr"] == 2.0
    assert result["comments_per_pull"] == 1.5
    assert result["by"]["category"]["structural"] == {
        "bugs": 1,
        "recall_per_bug": 1.0,
        "interval": [pytest.approx(0.2065, abs=1e-3), 1.0],
    }
    assert result["by"]["severity"]["medium"]["recall_per_bug"] == 0.0
    low, high = result["intervals"]["recall"]
    assert 0 <= low <= 0.5 <= high <= 1
    output = command("score", "crbench", "--tasks", str(tasks), "--run", str(run), "--judge", judge_id).out
    rows = [" ".join(line.split()) for line in output.splitlines()]
    assert "single-shot, reviewer 50.00 33.33 40.00 66.67 2.00 50.00 1.50" in rows
    assert "single-shot, GPT-5.2 (paper) 27.01 3.56 6.30 83.63 5.11 7.59" in rows
    assert "3 comments: 1 bug hit, 1 valid, 1 noise" in output
    assert "judged by recorded:" in output


def test_a_change_that_the_reviewer_knew_is_left_out_of_a_second_score(project: Path, tasks: Path) -> None:
    knew = {"reasoning": "r", "findings": [finding("engine.py", "return items[0]", HIT)], "recognised": True}
    new = {"reasoning": "r", "findings": [], "recognised": False}
    reviewer = recording(project / "r.jsonl", "reviewer", [(MERGED, knew), (SQUASHED, new)])
    run = replay(project, tasks, reviewer)

    result = score(tasks, run, "--judge", judge(project, run, hit="BUG_HIT"))

    assert result["recall"] == 0.5
    [without] = result["without_recognised"].values()
    assert (without["recognised"], without["asked"], without["figures"]["recall"][0]) == (1, 2, 0.0)


def test_a_finding_below_the_confidence_threshold_is_not_posted(project: Path, tasks: Path) -> None:
    unsure = {**finding("engine.py", "return items[0]", HIT), "confidence": 5}
    replies = [(MERGED, {"reasoning": "r", "findings": [unsure]}), (SQUASHED, {"reasoning": "r", "findings": []})]
    reviewer = recording(project / "r.jsonl", "reviewer", replies)
    for out, options, count in (("o", (), 0), ("l", ("--set", "review.min_confidence=5"), 1)):
        run = replay(project, tasks, reviewer, out, *options)
        assert len(list(comments_in(RunFolder.read(run).records(), "posted"))) == count


def drafted(subject: str, code: str) -> dict[str, Any]:
    return {"model": "reviewer", "subject": subject, "purpose": "reproduce", "plan": "", "code": code}


@pytest.mark.debian("bubblewrap")
@pytest.mark.usefixtures("remembered_runs")
def test_findings_are_proven_in_the_sandbox_and_counted_apart(project: Path, tasks: Path) -> None:
    looks = {
        MERGED: finding("engine.py", "return items[0]", f"{HIT} It raises IndexError: list index out of range."),
        SQUASHED: finding("total.py", "return sum(items[1:])", f"{WRONG} It raises NameError."),
    }
    lines = [
        {"model": "reviewer", "subject": name, "purpose": "review", "reasoning": "r", "findings": [look]}
        for name, look in looks.items()
    ]
    lines.append(drafted(MERGED, "from engine import first\n\ndef test_first():\n    assert first([]) is None\n"))
    lines.append(
        drafted(SQUASHED, "from total import total\n\ndef test_total():\n    assert total([0, 2]) == 2\n")
    )
    write(project / "r.jsonl", lines)
    write(tasks, [{**row, "env": CASE["env"]} for row in read(tasks)])
    reviewer, repos = f"recorded:{project}/r.jsonl#reviewer", str(project / "repos")

    ran = command("replay", "crbench", "--tasks", str(tasks), "--model", reviewer, "--out", "x", "--prove", code=2)
    assert "--repos DIR is needed: review.prove is on" in ran.err
    test_command = f"{sys.executable} -m pytest -q {{tests}}"
    proving = ("--prove", "--repos", repos, "--test-command", test_command, "--set", "review.max_findings=3")
    run = replay(project, tasks, reviewer, "proven", *proving)
    records = {record.task_id: record.decision or {} for record in RunFolder.read(run).records()}
    assert {name: record["record"]["proofs"] for name, record in records.items()} == {
        MERGED: {"proven": 1},
        SQUASHED: {"not proven": 1},
    }
    classes = {MERGED: "BUG_HIT", SQUASHED: "NOISE"}
    judges = judge_of(project / "j.jsonl", comments_of(run), lambda comment: classes[comment.task_id])
    result = score(tasks, run, "--judge", judges)
    assert {name: (item["comments"], item["precision"]) for name, item in result["groups"].items()} == {
        "proven by a test": (1, 1.0),
        "not proven": (1, 0.0),
        "not proven, but tried": (1, 0.0),
    }
    assert result["groups"]["proven by a test"]["bugs_found"] == 1
    assert "proven by a test" in command("score", "crbench", "--tasks", str(tasks), "--run", str(run)).out


def test_a_judge_that_fails_is_reported_and_never_counted_as_noise(
    project: Path, tasks: Path, reviewer: str
) -> None:
    run = replay(project, tasks, reviewer)
    judge_id = judge(project, run, hit="BUG_HIT", style="VALID_SUGGESTION", wrong=None)

    result = score(tasks, run, "--judge", judge_id)

    assert (result["comments"], result["noise"], result["unjudged"]) == (3, 0, 1)
    assert result["snr"] is None, "without noise there is no ratio"
    assert result["usefulness"] == pytest.approx(2 / 3), "a comment that nobody could judge still is a comment"


def test_several_judges_vote_and_their_agreement_is_shown(project: Path, tasks: Path, reviewer: str) -> None:
    run = replay(project, tasks, reviewer)
    panel = [
        judge(project, run, "kind", hit="BUG_HIT", style="VALID_SUGGESTION", wrong="VALID_SUGGESTION"),
        judge(project, run, "fair", hit="BUG_HIT", style="VALID_SUGGESTION", wrong="NOISE"),
        judge(project, run, "hard", hit="BUG_HIT", style="NOISE", wrong="BUG_HIT"),
    ]

    result = score(tasks, run, *(word for member in panel for word in ("--judge", member)))

    assert (result["votes"], result["hits"], result["valid"], result["noise"]) == (3, 1, 1, 0)
    assert result["unjudged"] == 1, "three judges, three opinions: no majority"
    # Fleiss (1971) by hand: P = (1 + 1/3 + 0) / 3; shares 4/9, 3/9, 2/9; P_e = 29/81.
    assert result["agreement"] == pytest.approx((4 / 9 - 29 / 81) / (1 - 29 / 81))


def test_what_was_held_back_can_be_judged_and_counted_too(project: Path, tasks: Path, reviewer: str) -> None:
    run = replay(project, tasks, reviewer)
    judge_id = judge(project, run, hit="BUG_HIT", style="NOISE", wrong="NOISE", held="BUG_HIT")
    result = score(tasks, run, "--judge", judge_id, "--comments", "reported")

    assert (result["comments"], result["hits"]) == (4, 2)
    assert (result["recall"], result["recall_per_bug"]) == (1.0, 0.5), "a bug that is hit twice is found once"
    assert score(tasks, run)["comments"] == 4, "what was judged"
    posted = score(tasks, run, "--comments", "posted")
    assert (posted["comments"], posted["hits"], posted["recall"]) == (3, 1, 0.5)

    score(tasks, run, "--judge", judge_id, "--comments", "posted")
    paths = ("--tasks", str(tasks), "--run", str(run))
    ran = command("score", "crbench", *paths, "--comments", "reported", code=2)
    assert "not every reported comment was judged" in ran.err


def test_comments_that_no_judge_was_asked_about_are_not_scored(project: Path, tasks: Path) -> None:
    comments = [
        {"instance_id": name, "path": "total.py", "line": 1, "comment": WRONG} for name in (MERGED, SQUASHED)
    ]
    paths = ("score", "crbench", "--tasks", tasks, "--predictions", write(project / "c.jsonl", comments[:1]))
    assert printed(*paths, "--judge", recording(project / "j.jsonl", "j", [("x", {})]))["unjudged"] == 1
    write(project / "c.jsonl", comments)
    assert "not every posted comment was judged" in refusal(*paths)


def test_a_task_file_that_lacks_a_task_of_the_run_is_refused(project: Path, tasks: Path, reviewer: str) -> None:
    run = replay(project, tasks, reviewer)
    part = project / "part.jsonl"
    part.write_text(tasks.read_text().splitlines(keepends=True)[0])
    judge_id = judge(project, run, hit="BUG_HIT")
    ran = command("score", "crbench", "--tasks", str(part), "--run", str(run), "--judge", judge_id, code=2)
    assert "the task file lacks 1 of the 2 tasks of" in ran.err
    single = replay(project, tasks, reviewer, "single", "--limit", "1")
    assert score(tasks, single, "--judge", judge_id)["tasks"] == 1


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_task_without_an_answer_counts_as_a_bug_not_found(
    project: Path, tasks: Path, reviewer: str, is_recorded: bool
) -> None:
    """It failed, or the run was interrupted before it."""
    if is_recorded:
        only = (project / "reviewer.jsonl").read_text().splitlines()[0]
        (project / "reviewer.jsonl").write_text(only + "\n")
    run = replay(project, tasks, reviewer)
    if not is_recorded:
        lines = (run / "records.jsonl").read_text().splitlines(keepends=True)
        (run / "records.jsonl").write_text(next(line for line in lines if MERGED in line))

    scores = score(tasks, run, "--judge", judge(project, run, hit="BUG_HIT", style="NOISE"))
    left_out = score(tasks, run, "--missing", "exclude")

    assert (scores["tasks"], scores["unanswered"], scores["bugs"], scores["recall"]) == (2, 1, 2, 0.5)
    assert (left_out["unanswered"], left_out["bugs"], left_out["recall"]) == (1, 1, 1.0)


def test_the_same_replay_judged_again_gives_the_same_bytes(project: Path, tasks: Path, reviewer: str) -> None:
    first, second = replay(project, tasks, reviewer, "one"), replay(project, tasks, reviewer, "two")
    judges = judge(project, first, hit="BUG_HIT", style="VALID_SUGGESTION", wrong="NOISE")
    printed = [score(tasks, run, "--judge", judges, "--seed", "3") for run in (first, second)]
    for run in (first, second):
        command("report", str(run), "--out", str(run / "report.html"))
        command("report", str(run), "--out", str(run / "report.md"))

    assert printed[0] == printed[1]
    for name in ("records.jsonl", "judgements.jsonl", "judge.json", "report.html", "report.md"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    page = (first / "report.html").read_text()
    for words in (
        "reflexion, GPT-5-mini (paper)",
        "judged by",
        "functional_suitability",
        "as in the paper&#39;s figure 3: data 1, structural 1",
    ):
        assert words in page
    assert HIT.replace("`", "&#96;") in page or HIT in page, "every comment and its judgement can be read"


def test_both_strategies_are_replayed_and_are_different_runs(project: Path, tasks: Path, reviewer: str) -> None:
    single = replay(project, tasks, reviewer, "single", "--strategy", "single-shot")
    looked_again = replay(
        project, tasks, reviewer, "again", "--strategy", "reflexion", "--set", "review.iterations=2"
    )

    rounds = [
        [record.decision["record"]["rounds"] for record in RunFolder.read(run).records() if record.decision]
        for run in (single, looked_again)
    ]
    assert rounds == [[1, 1], [2, 2]], "it looks again, and stops where that changes nothing"
    arguments = ("--tasks", str(tasks), "--model", reviewer, "--out", str(single), "--strategy", "reflexion")
    assert "holds another run" in command("replay", "crbench", *arguments, code=2).err


def test_a_run_that_was_not_judged_says_how_to_have_it_judged(project: Path, tasks: Path, reviewer: str) -> None:
    run = replay(project, tasks, reviewer)

    ran = command("score", "crbench", "--tasks", str(tasks), "--run", str(run), code=2)
    assert "a judge is needed: --judge provider:name" in ran.err
    assert "was not judged yet" in command("report", str(run), code=2).err
    ran = command("score", "crbench", "--tasks", str(tasks), "--run", str(run), "--judge", reviewer)
    assert "judges its own comments" in ran.err


def test_nothing_that_came_after_the_pull_request_can_be_read(project: Path, tasks: Path) -> None:
    scratch = Scratch(project / "repos" / "ada+engine")
    task = next(read_tasks(str(tasks)))
    assert task.pull is not None
    with GitRepository(scratch.folder) as clone:
        staged = stage(task.instance_id, task.repo, task.pull, clone)
        forge = staged.forge(staged.snapshot)

        assert forge.file("engine.py", "main") == b"def first(items):\n    return items[0] if items else None\n"
        assert forge.file("engine.py", task.pull.head_sha) == b"def first(items):\n    return items[0]\n"
        assert list(forge.sources(task.pull.base_sha).paths()) == ["engine.py"]
        with pytest.raises(NotFound):
            forge.file("total.py", "main")
        for later in (
            scratch.git("rev-parse", "main~3"),
            task.base_commit,
            scratch.head(),
            "HEAD",
            "refs/heads/main",
        ):
            with pytest.raises(NotRecorded):
                forge.file("engine.py", later)
        with pytest.raises(NotRecorded):
            forge.pull_request(8)
        with pytest.raises(NotRecorded):
            forge.issue(101)
        assert not forge.pull_request(7).merged
        forge.checkout("main", project / "unpacked")
        assert (project / "unpacked" / "engine.py").exists()


def test_comments_on_other_tasks_are_refused_before_a_judge_is_asked(project: Path, tasks: Path) -> None:
    file = write(project / "c.jsonl", [{"instance_id": "other", "path": "a.py", "line": 1, "comment": WRONG}])
    judge_id = recording(project / "j.jsonl", "j", [("x", {})])
    message = refusal("score", "crbench", "--tasks", tasks, "--predictions", file, "--judge", judge_id)
    assert "none of the 1 comments is about one of the 2 tasks" in message


def test_a_missing_folder_of_clones_is_refused() -> None:
    assert "typo' does not exist" in refusal("replay crbench --tasks t.jsonl --model m:m --out run --repos typo")


def test_tasks_without_a_clone_are_named(project: Path, tasks: Path, reviewer: str) -> None:
    (project / "others").mkdir()
    words = ("--tasks", str(tasks), "--model", reviewer, "--out", str(project / "run"))
    ran = command("replay", "crbench", *words, "--repos", str(project / "others"))
    assert f"{MERGED} is reviewed without code: --repos holds no clone of ada/engine" in ran.err
