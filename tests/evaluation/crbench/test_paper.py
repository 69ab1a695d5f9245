"""The paper's own reviewers and judge: its fields, the whole change, and every comment in the denominators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmark import Session
from evaluation.crbench.judge import Panel, ReviewComment, judge_all
from evaluation.crbench.paper_review import paper_session
from evaluation.crbench.task import ReviewTask, read_tasks
from evaluation.report.papers import PAPERS
from evaluation.run.model import benchmark_prompts
from tests.evaluation.crbench.conftest import comments_of, judge_of, recording
from tests.evaluation.crbench.test_judge import comment, task
from tests.evaluation.crbench.test_replay_and_score import (
    MERGED,
    SQUASHED,
    WRONG,
    finding,
    judge,
    replay,
    score,
)
from tests.evaluation.running import command, read, write
from tests.scripted import ScriptedModel


def remark(file: str, line: int | None, comment: str, severity: str = "low") -> dict[str, Any]:
    return {"file": file, "line": line, "comment": comment, "severity": severity}


#: Nothing in these stands in the change: neither path nor line nor symbol.
NOISE = [remark("nowhere.py", 400 + number, f"Remark {number}.") for number in range(30)]


@pytest.fixture
def stub(project: Path) -> str:
    replies: list[tuple[str, dict[str, Any]]] = [
        (MERGED, {"comments": [*NOISE, remark("engine.py", 2, "`items[0]` fails.", "HIGH")]}),
        (SQUASHED, {"comments": NOISE}),
    ]
    return recording(project / "stub.jsonl", "stub", replies)


def test_everything_that_the_papers_reviewer_reports_is_judged(project: Path, tasks: Path, stub: str) -> None:
    run = replay(project, tasks, stub, "paper", "--preset", "paper")
    facts = json.loads((run / "run.json").read_text())
    assert facts["config"] == {"preset": "paper", "review": {"strategy": "single-shot"}}
    assert list(facts["prompts"]) == ["crbench.single-shot"]
    judge = judge_of(
        project / "j.jsonl",
        comments_of(run),
        lambda comment: "BUG_HIT" if comment.text == "`items[0]` fails." else "NOISE",
    )

    result = score(tasks, run, "--judge", judge, "--judge-style", "paper")

    assert (result["preset"], result["judge_style"]) == ("paper", "paper")
    assert (result["comments"], result["hits"], result["noise"]) == (61, 1, 60)
    assert (result["precision"], result["snr"]) == (1 / 61, 1 / 60)
    output = command("score", "crbench", "--tasks", str(tasks), "--run", str(run)).out
    assert "single-shot, stub, paper preset" in output
    assert "its prompts, the whole change, everything that it reports counts" in output
    assert "asked as in the paper" in output


@pytest.mark.parametrize(
    "option",
    [("--set", "review.max_findings=2"), ("--prove",), ("--strategy", "panel"), ("--repos", ".")],
)
def test_options_of_our_reviewer_do_not_go_with_the_papers(option: tuple[str, ...]) -> None:
    replaying = "replay crbench --tasks t.jsonl --model m:m --out run --prompt paper"
    assert f"leave {option[0]}" in command(replaying, *option, code=2).err


def reviewed(session: Session[ReviewTask], model: ScriptedModel, source: Path) -> list[dict[str, Any]]:
    [first, *_] = read_tasks(str(source))
    comments = session.run(first, model).details["comments"]
    assert isinstance(comments, list)
    return comments


def test_the_papers_reviewers_ask_its_fields_about_the_whole_change(tasks: Path) -> None:
    from bot.core.config import ReviewConfig

    first, second = remark("a.py", 1, "First."), remark("b.py", None, "Second.", "medium")
    model = ScriptedModel([{"comments": [first]}, {"comments": [first, second]}, {"comments": [second]}])
    session = paper_session(ReviewConfig(strategy="reflexion", iterations=2), benchmark_prompts())

    assert reviewed(session, model, tasks) == [second], "the last round replaces the list"

    fields = model.requests[0].schema.model_json_schema()["$defs"]["PaperComment"]["properties"]
    assert list(fields) == ["file", "line", "comment", "severity"]
    [task_shown, *_] = read_tasks(str(tasks))
    assert task_shown.pull is not None
    for number, prompt in enumerate(model.asked):
        for text in ("Repository: <", "Pull request: #7", task_shown.pull.diff):
            assert text in prompt.user
        assert ("Title of 7" in prompt.user, "Why." in prompt.user) == (
            (True, True) if number == 0 else (False, False)
        )
    assert "First." in model.asked[1].user
    assert "Second." in model.asked[2].user


def test_a_later_round_that_fails_leaves_the_review_as_it_was(tasks: Path) -> None:
    from bot.core.config import ReviewConfig
    from bot.core.errors import ModelError

    first = remark("a.py", 1, "First.")
    model = ScriptedModel([{"comments": [first]}, ModelError("refused", "refused")])
    session = paper_session(ReviewConfig(strategy="reflexion", iterations=1), benchmark_prompts())
    assert reviewed(session, model, tasks) == [first]


def judged_as_in_the_paper(model: ScriptedModel, *bugs: str) -> ReviewTask:
    comments: list[ReviewComment] = [comment("It breaks.")]
    panel = Panel((model,), benchmark_prompts(), workers=1, style="paper")
    review_task = task(*bugs)
    judge_all(panel, {"ada__engine-1": review_task}, comments)
    return review_task


def test_the_papers_judge_sees_bug_files_and_comment_and_gives_two_fields() -> None:
    model = ScriptedModel([{"classification": "NOISE", "reason": "r"}])
    judged_as_in_the_paper(model, "Index error.")
    [request] = model.requests
    assert list(request.schema.model_json_schema()["properties"]) == ["classification", "reason"]
    for text in ("Index error.", "src/engine.py", "Line: 1", "It breaks."):
        assert text in request.prompt.user
    places = [request.prompt.system.index(f". {name}:") for name in ("BUG_HIT", "VALID_SUGGESTION", "NOISE")]
    assert places == sorted(places), "the classes stand in the order of listing 6"


def test_the_papers_judge_refuses_tasks_with_several_bugs(project: Path, tasks: Path, stub: str) -> None:
    rows = read(tasks)
    several = [{**row, "bugs": 2 * row["bugs"]} for row in rows]
    write(tasks, several)
    run = replay(project, tasks, stub, "paper", "--preset", "paper")
    paths = ("--tasks", str(tasks), "--run", str(run), "--judge-style", "paper", "--judge", stub)
    ran = command("score", "crbench", *paths, code=2)
    assert "asks about a single bug, and ada__engine-101 has several" in ran.err


def test_a_file_that_our_reviewer_was_not_shown_is_counted(project: Path, tasks: Path) -> None:
    (project / "c.yml").write_text("review: {ignore: [engine.py]}\n")
    findings = {"reasoning": "r", "findings": [finding("total.py", "return sum(items[1:])", WRONG)]}
    ours = recording(project / "r.jsonl", "r", [(SQUASHED, findings)])
    run = replay(project, tasks, ours, "ours", "--config", f"{project}/c.yml")
    result = score(tasks, run, "--judge", judge(project, run, wrong="NOISE"))
    assert (result["not_shown"], result["preset"]) == (1, "ours")
    ran = command("score", "crbench", "--tasks", str(tasks), "--run", str(run))
    assert "in 1 task the reviewer was not shown a file of the fix" in ran.out


def test_every_command_of_the_papers_tables_runs(project: Path, builder: str) -> None:
    remarks = {"comments": [remark("engine.py", 2, "It fails.")]}
    model = recording(project / "m.jsonl", "m", [(MERGED, remarks), (SQUASHED, {"comments": []})])
    key = ReviewComment(task_id=MERGED, path="engine.py", line=2, text="It fails.").key
    verdict = {"classification": "BUG_HIT", "reason": "r"}
    values = {
        "FIXES": project / "fixes.jsonl", "CLONES": project / "repos", "BUILDER": builder,
        "REVIEW": project / "t.jsonl", "MODEL_R": model, "RUN_R": project / "run",
        "J": recording(project / "j.jsonl", "j", [(f"{MERGED}/{key}", verdict)]),
    }  # fmt: skip
    parts = dict.fromkeys(part for item in PAPERS["CR-Bench"] for part in item.command.split("; ") if part != "–")
    for part in parts:
        ran = command(*(str(values.get(word, word)) for word in part.split()))
    assert "asked as in the paper" in ran.out
