"""``bouncer triage``, ``verify`` and ``review`` on addresses: they read over the API, print, and write nothing."""

from __future__ import annotations

import json

import pytest

from tests.bot.cli.github_commands import DEFECT, SOLVES, VAGUE, Desk
from tests.conformance.checking import violations

READ = {"contents": "read", "issues": "read", "pull_requests": "read"}


@pytest.mark.parametrize("how", ["token", "public", "app"])
def test_an_issue_is_judged_where_it_stands_and_nothing_is_written(desk: Desk, how: str) -> None:
    desk.replies["It crashes"] = VAGUE
    number = desk.github.open_issue("acme/rocket", "It crashes", "Sometimes.")
    desk.github.comment("acme/rocket", number, "It is the CSV import.")
    token, environment = "", {}
    if how == "token":
        token = desk.github.token("acme/rocket", READ)
    elif how == "app":
        app = desk.github.create_app(owner="acme")
        desk.github.install(app)
        environment = {"GITHUB_APP_ID": str(app.id), "GITHUB_APP_PRIVATE_KEY": app.private_key}
    run = desk.process if how == "token" else desk.run
    ran = run("triage", desk.url("issues", number), "--json", token=token, **environment)
    report = json.loads(ran.out)
    assert (ran.code, report["label"], report["questions"]) == (0, "VAGUE", ["Which file?"])
    assert "It is the CSV import." in desk.questions[0]
    assert [write for write in desk.writes() if "access_tokens" not in write] == []
    assert violations(desk.github.requests) == []


def test_a_pull_request_is_verified_against_its_issues_and_reviewed(desk: Desk) -> None:
    desk.replies |= {"findings": DEFECT, "Mean of nothing": SOLVES}
    issue = desk.github.open_issue("acme/rocket", "Mean of nothing", "It should be 0.")
    files = {"app.py": "count = 0\nshare = total / count\n"}
    pull = desk.github.open_pull("acme/rocket", "Mean", f"Fixes #{issue}", files=files, closes=[issue], draft=True)
    address, token = desk.url("pull", pull), desk.github.token("acme/rocket", READ)
    verified = desk.run("verify", address, token=token)
    assert verified.out.startswith("CORRECT_AND_PRECISE: passes (falls short: 5% likely)")
    # Without a token, the words of the pull request name its issues.
    assert desk.run("verify", f"{address}/files", "--json").out.count("CORRECT_AND_PRECISE")
    reviewed = desk.run("review", f"{address}#discussion", "--fail-on", "high", token=token)
    assert (reviewed.code, reviewed.out.split(":")[:2]) == (1, ["app.py", "2"])
    assert desk.writes() == []


def test_the_repository_s_own_configuration_counts_and_options_lie_on_top(desk: Desk) -> None:
    desk.replies["It crashes"] = VAGUE
    desk.github.commit("acme/rocket", {".github/bouncer.yml": "triage: {bounce_at: IMPOSSIBLE_TO_SOLVE}\n"})
    address = desk.url("issues", desk.github.open_issue("acme/rocket", "It crashes", "Sometimes."))
    assert desk.run("triage", address).out.startswith("VAGUE: passes (too vague: 80% likely)")
    assert desk.run("triage", address, "--set", "triage.bounce_at=VAGUE").out.startswith(
        "VAGUE: bounced (too vague: 80% likely)"
    )


def test_each_thing_that_is_missing_is_named_in_one_line(desk: Desk) -> None:
    desk.github.create_repository("acme/secret", private=True)
    issue = desk.github.open_issue("acme/rocket", "It crashes", "Sometimes.")
    pull = desk.github.open_pull("acme/rocket", "Mend", files={"app.py": "count = 1\n"})
    web = desk.github.web_url
    for arguments, environment, why in (
        (["triage", desk.url("pull", pull)], {}, "is a pull request, not an issue: ask `bouncer verify`"),
        (["review", desk.url("issues", issue)], {}, "is an issue, not a pull request: ask `bouncer triage`"),
        (["triage", desk.url("issues", 99)], {}, "Check the spelling; a private repository needs GITHUB_TOKEN"),
        (["triage", f"{web}/acme/secret/issues/1"], {}, "a private repository needs GITHUB_TOKEN"),
        (
            ["triage", "https://github.com/acme/rocket/issues/1"],
            {},
            f"not the address of an issue or pull request on {web};",
        ),
        (["triage", desk.url("issues", issue)], {"BOUNCER_MODEL": ""}, "BOUNCER_MODEL is not set"),
        (["triage", desk.url("issues", issue)], {"token": "ghp_wrong"}, "401: Bad credentials"),
        (["verify", "fix.diff"], {}, "give the URL of a pull request, or --issue and --patch"),
    ):
        ran = desk.run(*arguments, **environment)
        assert ran.code in (1, 2), ran
        assert (ran.out, ran.err.count("\n")) == ("", 1), ran
        assert why in ran.err
    assert desk.questions == []


def test_without_graphql_a_command_does_what_it_does_without_a_token(desk: Desk) -> None:
    desk.replies |= {"It crashes": VAGUE, "Mean of nothing": SOLVES}
    number = desk.github.open_issue("acme/rocket", "It crashes", "Sometimes.")
    issue = desk.github.open_issue("acme/rocket", "Mean of nothing", "It should be 0.")
    files = {"app.py": "count = 1\n"}
    pull = desk.github.open_pull("acme/rocket", "Mean", f"Fixes #{issue}", files=files, closes=[issue])
    desk.github.fail("forbidden", path="/graphql", times=99)
    token = desk.github.token("acme/rocket", READ)
    ran = desk.run("triage", desk.url("issues", number), token=token)
    assert (ran.code, ran.out[:14]) == (0, "VAGUE: bounced"), ran.err
    ran = desk.run("verify", desk.url("pull", pull), token=token)
    assert (ran.code, ran.out[:19]) == (0, "CORRECT_AND_PRECISE"), ran.err


def test_unreachable_github_is_no_failed_gate(desk: Desk) -> None:
    issue = desk.github.open_issue("acme/rocket", "It crashes", "Sometimes.")
    ran = desk.run("triage", desk.url("issues", issue), "--fail-on", "bounce", GITHUB_API_URL="http://127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert "no answer from GitHub" in ran.err
