"""``bouncer backlog``: the open issues of a repository in one table, read over the API."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.bot.cli.github_commands import VAGUE, Desk
from tests.bot.web.conftest import chromium as chromium
from tests.conformance.checking import violations

READ = {"contents": "read", "issues": "read", "pull_requests": "read"}


def _fill(desk: Desk) -> None:
    desk.replies["It crashes"] = VAGUE
    desk.github.open_issue("acme/rocket", "It crashes <script>alert(1)</script>", "Sometimes.")
    desk.github.open_issue("acme/rocket", "Mean of nothing", "It should be 0.")
    desk.github.open_pull("acme/rocket", "Mend", files={"app.py": "count = 1\n"})
    desk.github.close("acme/rocket", desk.github.open_issue("acme/rocket", "Done", "Long ago."))


def test_table_is_sorted_and_nothing_is_written_or_paid_twice(desk: Desk) -> None:
    _fill(desk)
    ran = desk.process("backlog", "acme/rocket", "--yes", "--out", "page.html", "--out", "table.csv")
    assert ran.code == 0, ran.err
    assert ran.err.startswith("2 open issues; about 0.0")
    lines = ran.out.splitlines()
    assert lines[0].startswith(
        "acme/rocket, 2 open issues: 1 bounce, 1 pass, 0 not judged. 2 calls of openai:gpt-5-mini"
    )
    assert lines[2].split() == ["80", "%", "bounce", "#1", "It", "crashes", "<script>alert(1)</script>"]
    assert lines[3].strip() == "Which file?"
    assert lines[4].split()[:4] == ["5", "%", "pass", "#2"]
    page = (desk.folder / "page.html").read_text()
    assert page.index("Which file?") < page.index("Mean of nothing")
    assert f'href="{desk.github.web_url}/acme/rocket/issues/1"' in page
    assert "bounce (1)" in page
    assert "<script>" not in page
    with (desk.folder / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["number"], row["result"], row["p_bounce"]) for row in rows] == [
        ("1", "bounce", "80"),
        ("2", "pass", "5"),
    ]
    assert stat.S_IMODE((desk.folder / "bouncer-data").stat().st_mode) == 0o700
    again = json.loads(desk.run("backlog", "acme/rocket", "--yes", "--json").out)
    assert [issue["result"] for issue in again["issues"]] == ["bounce", "pass"]
    assert len(desk.questions) == 2
    assert desk.writes() == []
    assert violations(desk.github.requests) == []


def test_estimate_counts_what_is_sent(desk: Desk) -> None:
    _fill(desk)
    desk.github.comment("acme/rocket", 2, "No, it should be an error. " * 50)
    (desk.folder / "prices.yml").write_text("models: {'openai:gpt-5-mini': {input: 1000000, output: 0}}")
    arguments = ("backlog", "acme/rocket", "--yes", "--set", "triage.authors=all")
    ran = desk.run(*arguments, BOUNCER_PRICES_FILE="prices.yml")
    size = sum(len(message["content"]) for request in desk.requests for message in request["messages"]) + sum(
        len(json.dumps(request["response_format"]["json_schema"]["schema"])) for request in desk.requests
    )
    assert len(desk.requests) == 2
    assert any("it should be an error" in question for question in desk.questions)
    estimate = float(ran.err.split("about ")[1].split()[0])
    assert size / 4 == pytest.approx(estimate, rel=0.05), "a token for every four characters, at 1 USD"
    reads = [name.path for name in desk.github.requests if name.path.endswith("/comments")]
    assert len(reads) == 2, "comments are read once"
    ran = desk.run(*arguments, BOUNCER_PRICES_FILE="prices.yml")
    assert ran.err.startswith("2 open issues; about 0.00 USD"), "stored answers cost nothing"


def test_estimate_counts_samples_and_no_fallbacks(desk: Desk) -> None:
    _fill(desk)
    names = ("gpt-5-mini", "gpt-5", "gpt-4.1")
    prices = ", ".join(f"'openai:{name}': {{input: 1000000, output: 0}}" for name in names)
    (desk.folder / "prices.yml").write_text(f"models: {{{prices}}}")

    def estimate(model: str) -> float:
        ran = desk.run("backlog", "acme/rocket", BOUNCER_MODEL=model, BOUNCER_PRICES_FILE="prices.yml")
        return float(ran.err.split("about ")[1].split()[0])

    single = estimate("openai:gpt-5-mini")
    assert estimate("openai:gpt-5-mini,openai:gpt-5") == single
    assert estimate("mean(openai:gpt-5-mini,openai:gpt-5,samples=3),openai:gpt-4.1") == 6 * single
    assert estimate("cascade(openai:gpt-5-mini@20-60,mean(openai:gpt-5,samples=2))") == 3 * single


def test_limit_names_the_total(desk: Desk) -> None:
    _fill(desk)
    token = desk.github.token("acme/rocket")
    ran = desk.run("backlog", "acme/rocket", "--yes", "--limit", "1", token=token)
    assert "acme/rocket, 1 of 2 open issues (--limit): 0 bounce, 1 pass" in ran.out
    assert violations(desk.github.requests) == []


def test_labels_are_set_on_request_and_never_a_comment(desk: Desk) -> None:
    _fill(desk)
    token = desk.github.token("acme/rocket")
    ran = desk.run("backlog", "acme/rocket", "--yes", "--apply", "labels", token=token)
    assert "Labelled needs-info: #1\n" in ran.out
    ran = desk.run("backlog", "acme/rocket", "--yes", "--apply", "labels", token=token)
    assert "Labelled needs-info: none\nLabelled before: 1\n" in ran.out
    assert desk.writes() == ["POST /repos/acme/rocket/issues/1/labels 200"]
    assert desk.github.labels("acme/rocket", 2) == []


def test_limit_actions_bounds_the_labels(desk: Desk) -> None:
    desk.replies["It crashes"] = VAGUE
    for number in range(3):
        desk.github.open_issue("acme/rocket", f"It crashes {number}", "Sometimes.")
    arguments = ("backlog", "acme/rocket", "--yes", "--apply", "labels", "--limit-actions", "2")
    ran = desk.run(*arguments, token=desk.github.token("acme/rocket"))
    assert "Labelled needs-info: #3, #2\nNot labelled: 1 (--limit-actions)\n" in ran.out
    assert len(desk.writes()) == 2


def test_missing_confirmation_and_permission_are_reported(desk: Desk) -> None:
    _fill(desk)
    ran = desk.run("backlog", "acme/rocket")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot ask for confirmation (not a terminal): add --yes" in ran.err
    assert desk.questions == []
    token = desk.github.token("acme/rocket", READ)
    ran = desk.run("backlog", "acme/rocket", "--yes", "--apply", "labels", token=token)
    assert ran.code == 2
    assert "Labelled needs-info: none" in ran.out
    assert "GITHUB_TOKEN needs `issues: write`" in ran.err
    assert "'rocket' is not of the form OWNER/REPO" in desk.run("backlog", "rocket", "--yes").err


def test_an_earlier_page_outlives_a_command_that_fails(desk: Desk) -> None:
    page = desk.folder / "page.html"
    page.write_text("earlier")
    assert desk.run("backlog", "acme/nowhere", "--yes", "--out", str(page)).code == 2
    assert page.read_text() == "earlier"
    assert "No such file" in desk.run("backlog", "acme/rocket", "--yes", "--out", "none/page.html").err


def test_wrong_configuration_is_a_warning(desk: Desk) -> None:
    files = {".github/bouncer.yml": "triage:\n  label: [1]\n"}
    desk.github.create_repository("acme/wrong", files)
    desk.github.open_issue("acme/wrong", "Mean of nothing", "It should be 0.")
    ran = desk.run("backlog", "acme/wrong", "--yes")
    assert ran.code == 0
    assert "warning: acme/wrong: .github/bouncer.yml: line 2, triage.label: " in ran.err
    assert "1 pass" in ran.out


def test_cost_has_a_limit(desk: Desk) -> None:
    _fill(desk)
    ran = desk.run("backlog", "acme/rocket", "--yes", "--max-cost", "0.000001")
    assert "2 not judged" in ran.out
    assert desk.questions == []


def test_equal_errors_stop_it_and_one_is_reported_at_the_end(desk: Desk) -> None:
    for number in range(20):
        desk.github.open_issue("acme/rocket", f"It crashes {number}", "Sometimes.")
    desk.refused = 99
    ran = desk.run("backlog", "acme/rocket", "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert "stopped after 3 equal errors: openai refused the key (401): check OPENAI_API_KEY" in ran.err
    assert len(desk.questions) < 12, "waiting questions are not asked"
    desk.refused = 1
    ran = desk.run("backlog", "acme/rocket", "--yes", "--limit", "5")
    assert ran.code == 2
    assert "4 pass, 1 not judged" in ran.out
    assert "acme/rocket: 1 of 5 issues could not be judged: openai refused the key" in ran.err


@pytest.mark.debian("chromium")
def test_page_filters_and_fits(desk: Desk, tmp_path: Path, chromium: Browser) -> None:
    _fill(desk)
    assert desk.run("backlog", "acme/rocket", "--yes", "--out", "page.html").code == 0
    for width in (1200, 500):
        page = chromium.new_page(viewport={"width": width, "height": 800})
        page.goto((tmp_path / "page.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_label("pass (1)").check()
        assert not page.get_by_text("It crashes").is_visible()
        assert page.get_by_text("Mean of nothing").is_visible()
        with page.expect_download() as download:
            page.get_by_text("Download as CSV").click()
        assert Path(download.value.path()).read_text().startswith("number,title,url,result")
