"""Configuration files of a repository and of its owner, and their effect on GitHub."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bot.pipeline.rig import wait
from tests.e2e.site import APP, BASE, BOUNCER, BROKEN, CLEAR, FIXED, VAGUE, Repository, Site

FILE = ".github/bouncer.yml"


def test_a_typo_in_a_mode_posts_nothing_and_is_reported_on_the_commit(shop: Site, repository: Repository) -> None:
    home = repository()
    sha = shop.github.commit(home, {FILE: "triage:\n  mode: shadwo\n"})
    number = shop.slowly.open_issue(home, *VAGUE)
    assert (shop.comments_on(home, number), shop.github.labels(home, number)) == ([], [])
    (decision,) = shop.decided(home, number)
    assert (decision.verdict, len(decision.withheld)) == ("VAGUE", 2)
    assert "shadow mode because of .github/bouncer.yml (line 2, triage.mode" in decision.reason
    (check,) = shop.checks(home, sha)
    assert (check.name, check.conclusion) == ("bouncer / config", "failure")
    assert check.output["title"] == ".github/bouncer.yml has 1 problem"
    assert "not 'shadwo'; shadow mode for triage until this is fixed" in check.output["summary"]
    notice = f"{home}: <a href="
    assert notice in shop.browser().get("/")
    sha = shop.github.commit(home, {FILE: "triage:\n  mode: label\n"})
    plain = shop.slowly.commit(home, {APP: FIXED})
    (check,) = shop.checks(home, sha)
    assert (check.conclusion, check.output["title"]) == ("success", ".github/bouncer.yml is valid")
    assert shop.checks(home, plain) == []
    assert notice not in shop.browser().get("/")


def test_a_pull_request_s_copy_of_the_file_is_validated_and_not_used(shop: Site, repository: Repository) -> None:
    home = repository(**{FILE: "verify:\n  mode: 'off'\nreview:\n  mode: 'off'\n"})
    proposed = shop.github.open_pull(home, "Settings", "", files={FILE: "review:\n  max_findings: 900\n"})
    other = shop.slowly.open_pull(home, "Read values", "", files={APP: BROKEN})
    (check,) = shop.checks(home, shop.head(home, proposed))
    assert (check.name, check.conclusion) == ("bouncer / config", "failure")
    assert "line 2, review.max\\_findings" in check.output["summary"].replace("review.max_f", "review.max\\_f")
    assert "only validated" in check.output["summary"]
    assert shop.checks(home, shop.head(home, other)) == []
    for number in (proposed, other):
        assert (shop.comments_on(home, number), shop.inline(home, number)) == ([], [])
    assert f"{home}: <a href=" not in shop.browser().get("/"), "only the default branch's file counts"


def test_in_a_monorepo_only_the_paths_that_count_are_judged_and_reviewed(
    shop: Site, repository: Repository
) -> None:
    home = repository(**{FILE: "pulls:\n  paths: [/services/api/, '*.sql']\n", "services/api/app.py": BASE})
    shop.github.open_issue(home, *CLEAR)

    def opened(**files: str) -> int:
        return shop.slowly.open_pull(home, "Read values", "Fixes #1", files=dict(files), closes=[1])

    elsewhere = opened(**{APP: BROKEN})
    (check,) = shop.checks(home, shop.head(home, elsewhere))
    assert check.output["title"] == "Not judged: it changes no file in pulls.paths"
    assert shop.inline(home, elsewhere) == []
    both = opened(**{APP: BROKEN, "services/api/app.py": BROKEN})
    assert [comment.path for comment in shop.inline(home, both)] == ["services/api/app.py"]
    (review,) = shop.reviews(home, both)
    assert f"Not reviewed: `{APP}` (pulls.paths)." in review.body
    (check,) = shop.checks(home, shop.head(home, both))
    assert check.output["title"] == "Probably doesn't solve #1"
    shop.slowly.comment(home, elsewhere, "/bouncer verify", "mia")
    (check,) = shop.checks(home, shop.head(home, elsewhere))
    assert check.output["title"] == "Probably doesn't solve #1", "who asks for it is answered"


def test_what_was_decided_before_a_feature_was_switched_off_is_not_posted(
    shop: Site, repository: Repository
) -> None:
    for mode, withheld in (("'off'", 0), ("shadow", 2)):
        home = repository()
        shop.github.fail("server_error", "POST", f"/repos/{home}/issues/1/comments$")
        number = shop.github.open_issue(home, *VAGUE)
        wait(lambda: any("500" in error for error in shop.troubles().values()), 20, "the write failed")
        shop.slowly.commit(home, {FILE: f"triage:\n  mode: {mode}\n"})
        assert (shop.comments_on(home, number), shop.github.labels(home, number)) == ([], [])
        assert sum(len(decision.withheld) for decision in shop.decided(home, number)) == withheld


def test_in_label_mode_a_comment_from_before_is_cleared_too(shop: Site, repository: Repository) -> None:
    home = repository()
    number = shop.slowly.open_issue(home, *VAGUE)
    shop.github.commit(home, {FILE: "triage:\n  mode: label\n"})
    shop.slowly.comment(home, number, "It is version 4.2, on an empty file.")
    assert shop.github.labels(home, number) == []
    (comment,) = shop.comments_on(home, number)
    assert comment.startswith("Thanks, that answers my questions.")


def test_a_label_that_a_person_set_in_other_letters_is_removed(shop: Site, repository: Repository) -> None:
    home = repository(**{FILE: "triage:\n  label: Needs-Info\n"})
    number = shop.slowly.open_issue(home, *VAGUE, labels=["needs-info"])
    assert shop.github.labels(home, number) == ["needs-info"]
    shop.slowly.comment(home, number, "It is version 4.2, on an empty file.")
    assert shop.github.labels(home, number) == []


FORM = "### Version\n\n_No response_\n\n### What happens?\n\nIt does not work."


@pytest.mark.parametrize(
    ("title", "body", "labels", "wording"),
    [
        ("How do I read a table?", "I cannot find it.", ["question"], "This issue is a question"),
        ("Release 5", "- [ ] #1\n- [ ] #2\n- [x] #3", [], "This issue tracks other work"),
        ("Reading fails", FORM, [], "This text was filled into a form"),
    ],
)
def test_the_model_is_told_what_kind_of_issue_it_judges(
    shop: Site, repository: Repository, title: str, body: str, labels: list[str], wording: str
) -> None:
    home = repository(**{FILE: "triage:\n  ignore_kinds: []\n  prompt: careful\n"})
    number = shop.slowly.open_issue(home, title, body, labels=labels)
    assert len(shop.comments_on(home, number)) == 1
    (question,) = shop.model.about(title)
    assert wording in question.text


def test_a_merge_queue_s_commit_passes_its_required_check(shop: Site, repository: Repository) -> None:
    home = repository()
    sha = shop.github.commit(home, {APP: FIXED}, branch="main")
    payload = merge_group(shop, home, sha)
    assert shop.deliver("merge_group", {**payload, "action": "destroyed", "reason": "merged"}) == 204
    assert shop.deliver("merge_group", payload) == 202
    shop.quiet()
    (check,) = shop.checks(home, sha)
    assert (check.name, check.status, check.conclusion) == ("bouncer / verify", "completed", "skipped")
    assert check.app.bot.login == BOUNCER
    assert check.output["title"].startswith("Not judged: this is a merge queue's commit")


def merge_group(shop: Site, home: str, sha: str) -> dict[str, Any]:
    """``merge_group.checks_requested`` with GitHub's fields."""
    with shop.github.world.lock:
        where = shop.github.world.repositories[home]
        render = shop.github._operations.render
        commit = {
            "id": sha,
            "tree_id": "f" * 40,
            "message": "Merge pull request #2 from acme/patch\n\nRead values",
            "timestamp": "2026-03-04T12:00:00Z",
            "author": {"name": "alice", "email": "alice@example.org"},
            "committer": {"name": "GitHub", "email": "noreply@example.org"},
        }
        return {
            "action": "checks_requested",
            "merge_group": {
                "head_sha": sha,
                "head_ref": f"refs/heads/gh-readonly-queue/main/pr-2-{'b' * 40}",
                "base_sha": "b" * 40,
                "base_ref": "refs/heads/main",
                "head_commit": commit,
            },
            "repository": render.repository(where),
            "organization": {"login": where.owner.login, "id": where.owner.id},
            "installation": {"id": shop.installed(home), "node_id": "MDIzOk"},
            "sender": render.user(shop.github.world.user("github-merge-queue[bot]")),
        }


@pytest.mark.parametrize(("way", "mode"), [("by the change", "off"), ("by re-run", "shadow")])
def test_checks_end_after_their_features_were_switched_off(
    shop: Site, repository: Repository, way: str, mode: str
) -> None:
    on = "verify: {gate: true}\ngate: {mode: check, exempt_lines: 0}\n"
    off = f"verify: {{mode: '{mode}'}}\ngate: {{mode: '{mode}'}}\nreview: {{mode: '{mode}'}}\n"
    home = repository(**{FILE: on}) if way == "by the change" else shop.repository(f"{mode}-hooli/rocket")
    file_at = home
    if way == "by re-run":
        file_at = f"{mode}-hooli/.github"
        shop.github.create_repository(file_at, {FILE: on})
        shop.github.install(shop.app, file_at)
    shop.github.open_issue(home, *CLEAR)
    number = shop.github.open_pull(home, "Read values", files={APP: BROKEN}, closes=[1], fork=True)

    def conclusions() -> dict[str, str | None]:
        shop.quiet()
        head = shop.head(home, number)
        return {run.name[10:]: run.conclusion for run in shop.github.checks(home) if run.head_sha == head}

    before = {"verify": "failure", "ready": "failure", "review": "neutral"}
    assert conclusions() == before
    question_count = len(shop.model.asked)
    shop.github.commit(file_at, {FILE: off})
    if way == "by the change":
        assert conclusions() == {"verify": "skipped", "ready": "skipped", "review": "neutral"}
    else:
        assert conclusions() == before
        for run in shop.github.checks(home):
            shop.github.rerequest(home, run.id, by="mia")
        assert conclusions() == {"verify": "skipped", "ready": "skipped", "review": "skipped"}
    titles = {run.output["title"] for run in shop.checks(home, shop.head(home, number))}
    why = "switched off" if mode == "off" else "in shadow mode"
    assert titles == {f"Not judged: verify is {why}", f"Not checked: the gate is {why}"}
    assert len(shop.model.asked) == question_count
    shop.github.commit(file_at, {FILE: on})
    shop.github.comment(home, number, "/bouncer recheck", "mia")
    assert conclusions()["verify"] == conclusions()["ready"] == "failure"


def test_a_label_from_before_its_name_changed_is_taken_off(shop: Site, repository: Repository) -> None:
    home = repository()
    first, second, third = (shop.github.open_issue(home, *VAGUE) for _ in range(3))
    shop.quiet()
    shop.github.commit(home, {FILE: "triage:\n  label: unclear\n"})
    shop.github.comment(home, first, "It is version 4.2, on an empty file.")
    shop.github.edit(home, second, body="It still does not work.")
    shop.slowly.comment(home, third, "/bouncer accept", "mia")
    assert [shop.github.labels(home, number) for number in (first, second, third)] == [[], ["unclear"], []]
