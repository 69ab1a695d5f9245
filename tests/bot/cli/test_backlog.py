"""``bouncer backlog``: the open issues of a repository in one table, read over the API."""

from __future__ import annotations

import json

from tests.bot.cli.github_commands import VAGUE, Desk
from tests.conformance.checking import violations

READ = {"contents": "read", "issues": "read", "pull_requests": "read"}


def _filled(desk: Desk) -> None:
    desk.replies["It crashes"] = VAGUE
    desk.github.open_issue("acme/rocket", "It crashes <script>alert(1)</script>", "Sometimes.")
    desk.github.open_issue("acme/rocket", "Mean of nothing", "It should be 0.")
    desk.github.open_pull("acme/rocket", "Mend", files={"app.py": "count = 1\n"})
    desk.github.close("acme/rocket", desk.github.open_issue("acme/rocket", "Done", "Long ago."))


def test_every_open_issue_is_in_the_table_and_nothing_is_written_or_paid_for_twice(desk: Desk) -> None:
    _filled(desk)
    ran = desk.process("backlog", "acme/rocket", "--yes", "--out", "page.html")
    assert ran.code == 0, ran.err
    assert ran.err.startswith("2 open issues, openai:gpt-5-mini: about 0.0")
    assert "#1  bounce" in ran.out
    assert "- Which file?" in ran.out
    assert "#2  pass" in ran.out
    page = (desk.folder / "page.html").read_text()
    assert "Which file?" in page
    assert "<script>" not in page
    again = json.loads(desk.run("backlog", "acme/rocket", "--yes", "--json").out)
    assert [each["result"] for each in again["issues"]] == ["pass", "bounce"]
    assert len(desk.questions) == 2
    assert desk.writes() == []
    assert violations(desk.github.requests) == []


def test_labels_are_set_where_that_is_asked_for_and_never_a_comment(desk: Desk) -> None:
    _filled(desk)
    token = desk.github.token("acme/rocket")
    for _ in range(2):
        assert desk.run("backlog", "acme/rocket", "--yes", "--apply", "labels", token=token).code == 0
    assert desk.writes() == ["POST /repos/acme/rocket/issues/1/labels 200"]
    assert desk.github.labels("acme/rocket", 2) == []


def test_what_is_missing_is_said(desk: Desk) -> None:
    _filled(desk)
    ran = desk.run("backlog", "acme/rocket")
    assert (ran.code, ran.out) == (2, "")
    assert "add --yes" in ran.err
    assert desk.questions == []
    token = desk.github.token("acme/rocket", READ)
    ran = desk.run("backlog", "acme/rocket", "--yes", "--apply", "labels", token=token)
    assert ran.code == 2
    assert "#1  bounce" in ran.out
    assert "GITHUB_TOKEN needs `issues: write`" in ran.err
    assert "'rocket' is not of the form OWNER/REPO" in desk.run("backlog", "rocket", "--yes").err


def test_the_cost_has_a_limit(desk: Desk) -> None:
    _filled(desk)
    ran = desk.run("backlog", "acme/rocket", "--yes", "--max-cost", "0.000001")
    assert "2 not judged" in ran.out
    assert desk.questions == []


def test_equal_errors_stop_it_and_one_is_told_at_the_end(desk: Desk) -> None:
    for number in range(20):
        desk.github.open_issue("acme/rocket", f"It crashes {number}", "Sometimes.")
    desk.refused = 99
    ran = desk.run("backlog", "acme/rocket", "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert "stopped after 3 equal errors: openai refused the key (401): check OPENAI_API_KEY" in ran.err
    assert len(desk.questions) < 12, "what waits is not asked"
    desk.refused = 1
    ran = desk.run("backlog", "acme/rocket", "--yes", "--limit", "5")
    assert ran.code == 2
    assert "4 pass, 1 not judged" in ran.out
    assert "acme/rocket: 1 of 5 issues could not be judged: openai refused the key" in ran.err
