"""``bouncer calibrate`` over HTTP: the past of a repository, recorded answers, and the line that follows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.calibration import export
from bot.pipeline.store import migrated
from bot.pipeline.store.issues import FirstPass, Issues
from bot.simgithub import App, SimulatedGitHub
from tests.bot.cli.github_commands import Ran
from tests.builders import issue
from tests.conformance.checking import violations

NAME = "acme/rocket"

Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def past() -> Iterator[tuple[SimulatedGitHub, App]]:
    """A repository with 64 fixed issues and every other way in which things end."""
    with SimulatedGitHub() as github:
        app = github.create_app()
        github.create_repository(NAME, {"app.py": "a = 0\n"})
        github.install(app, NAME)
        github.advance(days=-80)
        for number in range(64):
            fixed(github, f"It crashes {number}")
        for number in range(8):
            issue = github.open_issue(NAME, f"Make it better {number}", "Please.")
            github.close(NAME, issue, reason="not_planned")
        silent = github.open_issue(NAME, "Does not work", "At all.")
        github.label(NAME, silent, "status: needs info", by="carol")
        github.close(NAME, silent)
        answer = github.open_issue(NAME, "Question", "How?")
        github.label(NAME, answer, "needs-info", by="carol")
        github.comment(NAME, answer, "Like this.", "alice")
        github.close(NAME, answer)
        github.advance(days=80)
        yield github, app


def fixed(github: SimulatedGitHub, title: str) -> tuple[int, int]:
    """An issue, and the merged pull request that closed it."""
    issue = github.open_issue(NAME, title, "Steps to reproduce: start it.")
    pull = github.open_pull(
        NAME, f"Fix #{issue}", f"Fixes #{issue}.", files={f"f{issue}.py": "x\n"}, closes=[issue]
    )
    github.merge(NAME, pull, by="carol")
    return issue, pull


@pytest.fixture
def run(
    past: tuple[SimulatedGitHub, App],
    tmp_path: Path,
    bouncer: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Run the command as the App of the simulated GitHub; code, stdout, stderr."""
    github, app = past
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_API_URL", github.api_url)
    monkeypatch.setenv("GITHUB_APP_ID", str(app.id))
    monkeypatch.setenv("GITHUB_APP_PRIVATE_KEY", app.private_key)
    monkeypatch.setenv("BOUNCER_DATA_DIR", str(tmp_path / "data"))

    def act(*arguments: str, model: str = "recorded:replies.jsonl#m") -> Ran:
        return bouncer("calibrate", NAME, "--model", model, *arguments)

    return act


def replies(github: SimulatedGitHub, probability: Callable[[int], int | None], but: tuple[int, ...] = ()) -> None:
    """Write the recorded answers about issues and pull requests; some have none."""
    with github.world.lock:
        every = dict(github.world.repositories[NAME].issues)
    with Path("replies.jsonl").open("w") as out:
        for number, issue in every.items():
            chance = probability(number)
            high = number % 2 if chance is None else chance >= 50
            labels = ("INCORRECT", "CORRECT_AND_PRECISE") if issue.pull else ("VAGUE", "WELL_SPECIFIED")
            report = {"explanation": f"On {number}.", "label": labels[0 if high else 1]}
            line = {
                "model": "m",
                "subject": f"{NAME}#{number}",
                **report,
                **({} if chance is None else {"p_bounce": chance}),
            }
            if number not in but:
                out.write(json.dumps(line) + "\n")


def actionable(github: SimulatedGitHub, number: int) -> bool:
    with github.world.lock:
        issue = github.world.repositories[NAME].issues[number]
    return issue.pull is not None or bool(issue.closed_by)


def test_a_promise_is_printed_with_the_lines_for_bouncer_yml(run: Run, past: tuple[SimulatedGitHub, App]) -> None:
    github, _ = past
    replies(github, lambda number: 10 + number % 30 if actionable(github, number) else 80)
    before = len(github.requests)
    code, out, _ = run()
    requests = list(github.requests)[before:]
    assert code == 0
    assert "Issues: 64 actionable issues, 9 issues that were probably not actionable" in out
    assert "Pull requests: 64 good patches, 0 patches that were reverted or repaired" in out
    assert "triage:\n  bounce_above: 40\n  harm: 5\n" in out
    assert f"{len(requests)} requests to GitHub" in out
    assert len(requests) < 80
    assert violations(requests) == []
    page = Path("calibration.html").read_text()
    assert "http://" not in page.replace(github.web_url, "")
    assert "<script" not in page
    assert "Actionable issues that would have been bounced" not in page


def test_the_page_shows_mistakes_of_both_kinds_with_links(run: Run, past: tuple[SimulatedGitHub, App]) -> None:
    github, _ = past
    first = next(number for number in range(1, 200) if actionable(github, number))
    replies(github, lambda number: 99 if number == first else 10)
    run("--harm", "10%")
    page = Path("calibration.html").read_text()
    bounced = page.index("Actionable issues that would have been bounced")
    passed = page.index("Let through: issues that were probably not actionable")
    assert bounced < page.index(f'href="{github.web_url}/{NAME}/issues/{first}"') < passed
    assert "1 of 64</b> actionable issues bounced" in " ".join(page.split())


def test_json_is_one_object_and_an_export_replays_without_github(
    run: Run, past: tuple[SimulatedGitHub, App], monkeypatch: pytest.MonkeyPatch
) -> None:
    github, _ = past
    replies(github, lambda number: 10 if actionable(github, number) else 80)
    report = json.loads(run("--json", "--export", "past.json")[1])
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("BOUNCER_DATA_DIR", "elsewhere")
    again = json.loads(run("--json", "--from", "past.json")[1])
    assert report == again
    assert report["triage"]["line"]["bounce_above"] == 11
    assert (report["triage"]["good"], report["triage"]["cases"]) == (64, 73)


def test_texts_are_judged_as_they_were_opened(run: Run, past: tuple[SimulatedGitHub, App]) -> None:
    github, _ = past
    issue = github.open_issue(NAME, "Broken", "It is broken.")
    github.edit(NAME, issue, body="It is broken on Windows, see this traceback.")
    github.edit(NAME, issue, title="Broken on Windows")
    github.comment(NAME, issue, "secret of the maintainers", "carol")
    github.close(NAME, issue, reason="not_planned")
    replies(github, lambda number: 10)
    run("--export", "past.json", "--limit", "5")
    exported = json.loads(Path("past.json").read_text())
    original = next(item["issue"] for item in exported["issues"] if item["issue"]["number"] == issue)
    assert (original["title"], original["body"]) == ("Broken", "It is broken.")
    assert "secret of the maintainers" not in Path("past.json").read_text()


def test_reverted_and_repaired_patches_are_bad_and_young_ones_unknown(
    run: Run, past: tuple[SimulatedGitHub, App]
) -> None:
    github, _ = past
    github.advance(days=-40)
    reverted = fixed(github, "Reverted")[1]
    github.revert(NAME, reverted, by="carol")
    issue, repaired = fixed(github, "Repaired")
    github.reopen(NAME, issue)
    github.advance(days=40)
    _, young = fixed(github, "Young")
    replies(github, lambda number: 90 if number in (reverted, repaired) else 5)
    report = json.loads(run("--json")[1])["verify"]
    assert report["cases"] - report["good"] == 2
    assert report["bounced"] == 2
    mentioned = {item["number"] for item in report["mistakes"]}
    assert not {reverted, repaired, young} & mentioned


def test_too_few_cases_bear_no_promise_and_shadow_mode_is_proposed(
    run: Run, past: tuple[SimulatedGitHub, App]
) -> None:
    replies(past[0], lambda number: 10)
    code, out, _ = run("--limit", "40")
    assert code == 0
    assert "No promise can be given that at most 5 % of the actionable issues are bounced" in out
    assert "it takes at least 59" in out
    assert "triage:\n  mode: shadow" in out


def test_replies_without_a_probability_draw_the_line_at_a_label(
    run: Run, past: tuple[SimulatedGitHub, App]
) -> None:
    replies(past[0], lambda number: None)
    _, out, _ = run("--harm", "50%", "--limit", "40")
    assert "bounce_at: " in out
    assert "the threshold is a label" in out


def test_what_was_judged_is_not_asked_again_and_failures_are(run: Run, past: tuple[SimulatedGitHub, App]) -> None:
    github, _ = past
    with github.world.lock:
        issues = github.world.repositories[NAME].issues.values()
        newest = max(item.number for item in issues if item.state_reason == "not_planned")
    replies(github, lambda number: 10, but=(newest,))
    report = json.loads(run("--json", "--limit", "30")[1])
    assert sum(report["triage"]["unjudged"].values()) == 1
    lines = len(Path("data/calibration/acme+rocket/judged.jsonl").read_text().splitlines())
    replies(github, lambda number: 10)
    again = json.loads(run("--json", "--limit", "30")[1])
    assert not again["triage"]["unjudged"]
    assert len(Path("data/calibration/acme+rocket/judged.jsonl").read_text().splitlines()) == lines + 1


def test_a_recent_export_is_used_unless_a_fresh_one_is_wanted(run: Run, past: tuple[SimulatedGitHub, App]) -> None:
    github, _ = past
    replies(github, lambda number: 10)
    run("--limit", "30")
    requests = len(github.requests)
    assert "using the export of" in run("--limit", "30")[2]
    assert len(github.requests) == requests
    assert "using the export of" not in run("--limit", "30", "--fresh")[2]
    assert len(github.requests) > requests


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--harm", "0.5%"), "'0.5%' is not between 1 and 50 %"),
        (("--harm", "0.51"), "'0.51' is not between 1 and 50 %"),
        (("--harm", "nan"), "'nan' is not between 1 and 50 %"),
        (("--harm", "few"), "is not a percentage such as 5%"),
        (("--from", "nowhere.json"), "nowhere.json: No such file"),
        (("--model", ""), "BOUNCER_MODEL is not set"),
    ],
)
def test_wrong_usage_is_one_line(run: Run, past: tuple[SimulatedGitHub, App], arguments: Any, why: str) -> None:
    replies(past[0], lambda number: 10)
    before = len(past[0].requests)
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert why in err
    assert len(past[0].requests) == before


def test_an_export_that_was_killed_goes_on_and_asks_nothing_twice(
    run: Run, past: tuple[SimulatedGitHub, App]
) -> None:
    github, _ = past
    replies(github, lambda number: 10)
    github.fail("too_many", path=r"/pulls/\d+", after=5, wait=600)
    before = len(github.requests)
    command = [sys.executable, "-m", "bot", "calibrate", NAME, "--model", "recorded:replies.jsonl#m"]
    command += ["--limit", "20"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as begun:
        assert begun.stderr is not None
        notice = next(line for line in begun.stderr if "Waiting" in line)
        begun.kill()
    assert "Waiting 600 s" in notice
    first = github.requests[before:]
    code, out, _ = run("--limit", "20")
    assert code == 0
    again = github.requests[before + len(first) :]
    diffs = {item.path for item in first if "/pulls/" in item.path and item.status == 200}
    assert len(diffs) == 5
    assert not [item for item in again if item.path == "/graphql" or item.path in diffs]
    # The request that was not answered is not counted, because the process was killed.
    assert f"{len(github.requests) - before - 1} requests to GitHub" in out


def test_a_token_reads_the_past_and_its_absence_is_reported(
    run: Run, past: tuple[SimulatedGitHub, App], monkeypatch: pytest.MonkeyPatch
) -> None:
    github, _ = past
    replies(github, lambda number: 10)
    monkeypatch.delenv("GITHUB_APP_ID")
    monkeypatch.delenv("GITHUB_APP_PRIVATE_KEY")
    code, _, err = run()
    assert code == 2
    assert "set GITHUB_TOKEN or the App's credentials" in err
    monkeypatch.setenv("GITHUB_TOKEN", github.token(NAME))
    assert run("--limit", "20")[0] == 0


def test_a_wrong_token_ends_the_command_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_wrong")
    monkeypatch.setattr(export.time, "sleep", lambda seconds: pytest.fail(f"waits {seconds} s"))
    code, _, err = run()
    assert (code, "401: Bad credentials" in err) == (2, True)


def indexed(pairs: int, right: int) -> None:
    """Index closed duplicates, and record what a model says of them: wrong of all but the first ``right``."""
    with migrated("sqlite:///bouncer.db") as database, Path("replies.jsonl").open("a") as out:
        index, roots = Issues(database), {}
        index.begin(NAME)
        issues = [earlier := issue(number=1000, title="Something else", state="closed")]
        for number in range(1001, 1001 + pairs):
            twin = number + 500
            titles = {number: f"Part{number} is slow", twin: f"Slow part{number}"}
            issues += [
                issue(number=number, title=title, body="", state="closed") for number, title in titles.items()
            ]
            roots[twin] = number
            rows = [{"number": number, "both": "are slow", "relation": "same cause", "p_same_cause": 92}]
            if number > 1000 + right:
                roots[twin] = earlier.number
            out.write(json.dumps({"model": "m", "subject": f"{NAME}#{twin}", "comparisons": rows}) + "\n")
            out.write(json.dumps({"model": "m", "subject": f"{NAME}#{number}", "comparisons": []}) + "\n")
        unnamed = issue(number=3000, title="Slow part1001", state="closed")
        index.add(NAME, [*issues, unnamed], {**roots, 3000: 3000}, FirstPass(complete=True))


def test_duplicates_get_a_threshold_if_the_history_bears_it(run: Run, past: tuple[SimulatedGitHub, App]) -> None:
    github, _ = past
    replies(github, lambda number: 10)
    # The limit counts duplicates, too: a short past is judged with all of them.
    _, out, errors = run("--limit", "5", "--export", "past.json")
    assert "duplicates:" not in out
    assert f"bouncer index {NAME} makes it" in errors
    indexed(80, right=79)
    report = json.loads(run("--json", "--from", "past.json")[1])["duplicates"]
    # With the very first two issues nothing earlier shares a word.
    assert (report["issues"], report["duplicates"]) == (159, 80)
    promise = report["promise"]
    assert (promise["suggest_above"], promise["suggestions"], promise["wrong"]) == (None, 80, 1)
    _, out, _ = run("--from", "past.json", "--harm", "10%", "--set", "duplicates.suggest_above=99")
    assert "Promise: at or above 90 %, at most 10 % of the suggestions are wrong (95 % sure" in out
    assert "79 of 80 duplicates are named." in out
    assert "\nduplicates:\n  mode: comment\n  suggest_above: 90\n" in out
    page = " ".join(Path("calibration.html").read_text().split())
    assert (
        "<td>#1580 Slow part1080</td><td>#1080</td><td>92 %</td> <td>closed as a duplicate of #1000</td>" in page
    )


def test_few_duplicates_stay_in_shadow_mode_and_the_command_says_so(
    run: Run, past: tuple[SimulatedGitHub, App]
) -> None:
    github, _ = past
    replies(github, lambda number: 10)
    indexed(12, right=12)
    _, out, _ = run("--limit", "30")
    assert "at most 5 % of the suggestions are wrong: there are 12, and it takes at least 72." in out
    assert "duplicates:\n  mode: shadow\n" in out
    _, out, _ = run("--limit", "30", "--set", "duplicates.mode=off")
    assert "duplicates:" not in out
