"""Ten planted pairs, from GitHub to a report. The model is scripted: it measures nothing of a real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.cli import main as bouncer
from bot.pipeline.store import migrated
from bot.simgithub import SimulatedGitHub
from evaluation.duplicates.bench import HistoryIssue, ScoredRun, _compared
from evaluation.run.folder import Record
from tests.evaluation.running import command, printed, refusal
from tests.pairs import PAIRS

NAME = "acme/means"
#: Issues of their own.
OTHERS = ("Tooltips flicker", "Docs for the palette", "Sort rows by date")


def plant(github: SimulatedGitHub) -> tuple[list[int], list[int], int]:
    """Open and close the issues; return the duplicates, the others, and the duplicate of a duplicate."""
    github.create_repository(NAME)
    github.grant(NAME, "mia", "triage")
    earlier = [github.open_issue(NAME, title, body) for title, body, _ in PAIRS]
    others = [github.open_issue(NAME, title) for title in OTHERS]
    later = [github.open_issue(NAME, title) for _, _, title in PAIRS]
    chained = github.open_issue(NAME, f"{PAIRS[0][2]} again")
    for number, root in zip([*later, chained], [*earlier, later[0]], strict=True):
        github.comment(NAME, number, f"Duplicate of #{root}", "mia")
        github.close(NAME, number, by="mia", reason="duplicate")
    unnamed = github.open_issue(NAME, "Umlauts again")
    github.close(NAME, unnamed, by="mia", reason="duplicate")
    leaky = github.open_issue(NAME, "Slow import", f"Duplicate of #{earlier[3]}")
    for number in (*others, leaky):
        github.close(NAME, number, by="mia")
    return later, others, chained


def script(later: list[int], others: list[int], chained: int) -> None:
    """Recognise eight pairs, call one different, leave one out, and take one other issue for a pair."""
    replies = {number: (number - len(PAIRS) - len(OTHERS), 95) for number in later[:8]}
    replies |= {later[8]: (later[8] - len(PAIRS) - len(OTHERS), 40), chained: (later[0], 92), others[1]: (3, 91)}
    replies |= dict.fromkeys((others[0], others[2]), (3, 10))
    with Path("scripted.jsonl").open("w") as out:
        for number, (match, chance) in replies.items():
            relation = "same cause" if chance >= 50 else "different"
            row = {"number": match, "both": "fail", "relation": relation, "p_same_cause": chance}
            line = {"model": "scripted", "subject": f"acme__means-{number}", "comparisons": [row]}
            out.write(json.dumps(line) + "\n")


def test_ten_planted_pairs_go_from_github_to_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///bouncer.db")
    with migrated("sqlite:///bouncer.db"), SimulatedGitHub() as github:
        later, others, chained = plant(github)
        script(later, others, chained)
        monkeypatch.setenv("GITHUB_API_URL", github.api_url)
        with pytest.raises(SystemExit, match="0"):
            bouncer(["index", NAME, "--pause", "0"])
    build = ("build", "own", "--duplicates", NAME, "--out", "tasks.jsonl")
    counts = printed(*build)
    assert (counts["issues"], counts["tasks"], counts["duplicates"]) == (26, 14, 11)
    assert "tasks.jsonl exists" in refusal(*build), "a task file is not overwritten unasked"

    model = ("--model", "recorded:scripted.jsonl#scripted")
    command("replay", "duplicates", "--tasks", "tasks.jsonl", *model, "--out", "run")
    (scores,) = printed("score", "duplicates", "--run", "run", "--suggest-above", "90")["duplicates"].values()
    # The tenth pair has no answer: its candidates are not known, and it counts as not found.
    assert (scores["tasks"], scores["without_answer"], scores["duplicates"]) == (14, 1, 11)
    assert scores["recall_at_5"][0] == pytest.approx(10 / 11)
    # Nine of ten suggestions name the root, also of a duplicate of a duplicate.
    assert (scores["suggested"], scores["right"], scores["precision"][0]) == (10, 9, 0.9)
    assert scores["promise"]["suggest_above"] is None

    output = command("score", "duplicates", "--run", "run", "--suggest-above", "95").out
    columns = [line.split() for line in output.splitlines()]
    assert ["run", "90", "10", "1", "90.0", "9"] in columns, "threshold, suggestions, wrong, precision, named"
    assert ["run", "95", "8", "0", "100.0", "8"] in columns, "the threshold of the command is listed, too"
    command("report", "run", "--out", "report.html")
    page = Path("report.html").read_text()
    assert "recall at 5 %" in page
    assert "recorded:scripted.jsonl#scripted" in page
    assert "10 suggestions, 1 of them wrong, bear no promise that at most 5% are wrong" in page


def test_another_duplicate_among_the_candidates_leads_to_the_root() -> None:
    task = HistoryIssue(
        number=9, title="t", state="closed", root=3, instance_id="acme__means-9", repository=NAME, task=True
    )
    comparison = {"number": 7, "both": "fail", "relation": "same cause", "p_same_cause": 95}
    record = Record(
        task_id=task.instance_id, decision={"record": {"candidates": [7], "comparisons": [comparison]}}
    )
    row = _compared(task, record, {(NAME, 7): 3, (NAME, 9): 3})
    assert (row.retrieved, row.named(90), row.named(96)) == (True, 3, None)
    other = _compared(task, record, {(NAME, 7): 4, (NAME, 9): 3})
    promise = ScoredRun("m", 90, (row, other)).promise
    assert (promise.suggestions, promise.wrong) == (2, 1), "a duplicate of something else"


def test_a_repository_without_an_index_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///bouncer.db")
    with migrated("sqlite:///bouncer.db"):
        error = refusal("build", "own", "--duplicates", NAME)
    assert f"DATABASE_URL has no index of {NAME}: run bouncer index {NAME}" in error
    assert "give --repo and --since, or --duplicates" in refusal("build", "own")
