"""Every write is applied once. A refusal of GitHub is an error, a write without effect is none."""

from __future__ import annotations

import pytest

from bot.core.actions import InlineComment
from bot.core.errors import ForgeError, NotFound
from tests.bot.github.conftest import NAME, Site

TABLE = "src/table.py"
FIXED = "def read(path):\n    with open(path) as file:\n        return file.read()\n"


@pytest.fixture
def issue(site: Site) -> int:
    return site.github.open_issue(NAME, "Reading fails")


@pytest.fixture
def pull(site: Site) -> int:
    return site.github.open_pull(NAME, "Close the file", files={TABLE: FIXED}, fork=True)


def head(site: Site, pull: int) -> str:
    return site.forge.pull_request(pull).head_sha


def test_a_comment_is_written_by_our_bot_and_edited_in_place(site: Site, issue: int) -> None:
    comment_id = site.writer.create_comment(issue, "Which version?")
    site.writer.edit_comment(comment_id, "Thanks, this is clear now.")
    [comment] = site.forge.comments(issue)
    assert (comment.id, comment.body, comment.author) == (
        comment_id,
        "Thanks, this is clear now.",
        site.forge.identity(),
    )
    assert comment.by_app == site.registered.id


def test_missing_labels_are_created_and_removing_twice_is_no_error(site: Site, issue: int) -> None:
    site.writer.add_labels(issue, ("needs-info", "status/é wait"))
    assert site.github.labels(NAME, issue) == ["needs-info", "status/é wait"]
    for _ in range(2):
        site.writer.remove_label(issue, "status/é wait")
    assert site.github.labels(NAME, issue) == ["needs-info"]
    with pytest.raises(NotFound):
        site.writer.remove_label(999, "needs-info")


def test_an_issue_is_closed_as_not_planned_by_our_bot_and_opened_again(site: Site, issue: int) -> None:
    for _ in range(2):
        site.writer.set_issue_state(issue, "closed")
    closed_issue = site.forge.issue(issue)
    assert (closed_issue.state, closed_issue.state_reason) == ("closed", "not_planned")
    assert closed_issue.closed_by == site.forge.identity().id
    site.writer.set_issue_state(issue, "open")
    open_issue = site.forge.issue(issue)
    assert (open_issue.state, open_issue.closed_by) == ("open", None)


def test_a_reply_is_posted_in_the_thread_of_a_line_comment(site: Site, pull: int) -> None:
    site.writer.create_review(pull, head(site, pull), "", (InlineComment(path=TABLE, line=2, body="x"),))
    (first,) = site.forge.review_comments(pull)
    answer = site.writer.reply(pull, first.id, "Because.")
    (_, reply) = site.forge.review_comments(pull)
    assert (reply.id, reply.in_reply_to, reply.body) == (answer, first.id, "Because.")
    with pytest.raises(NotFound):
        site.writer.reply(pull, 999, "No such comment.")


def test_a_review_is_one_comment_event_pinned_to_its_commit(site: Site, pull: int) -> None:
    sha = head(site, pull)
    comments = (
        InlineComment(path=TABLE, line=3, start_line=2, body="A range."),
        InlineComment(path=TABLE, line=2, side="LEFT", body="The line that goes."),
        InlineComment(path=TABLE, line=1, body="Context."),
    )
    review_id = site.writer.create_review(pull, sha, "Two things.", comments)
    [review] = site.forge.reviews(pull)
    assert (review.id, review.body, review.commit_id) == (review_id, "Two things.", sha)
    assert [(comment.line, comment.side) for comment in site.forge.review_comments(pull)] == [
        (3, "RIGHT"),
        (2, "LEFT"),
        (1, "RIGHT"),
    ]
    [body] = [
        request.body for request in site.github.requests if request.path.endswith("/reviews") and request.body
    ]
    assert body["event"] == "COMMENT"


def test_one_comment_that_cannot_be_anchored_refuses_the_whole_review(site: Site, pull: int) -> None:
    right = InlineComment(path=TABLE, line=2, body="Fine.")
    for wrong in (
        InlineComment(path=TABLE, line=4, body="Behind the end."),
        InlineComment(path=TABLE, line=3, side="LEFT", body="Not in the old file."),
        InlineComment(path="README.md", line=1, body="Not in the diff."),
        InlineComment(path=TABLE, line=3, start_line=9, body="A range that goes backwards."),
        InlineComment(path=TABLE, line=3, body=" "),
    ):
        with pytest.raises(ForgeError) as caught:
            site.writer.create_review(pull, head(site, pull), "", (right, wrong))
        assert caught.value.status == 422, wrong.body
    assert site.forge.review_comments(pull) == ()


def test_a_check_is_made_and_then_edited(site: Site, pull: int) -> None:
    sha = head(site, pull)
    check = site.writer.create_check("bouncer / verify", sha, "key", "neutral", "Not judged", "", "")
    site.writer.edit_check(check, "success", "Solves #1", "All of it.", "$ pytest")
    [check_run] = site.forge.check_runs(sha, "bouncer / verify")
    assert (check_run.id, check_run.conclusion, check_run.external_id) == (check, "success", "key")
    assert site.forge.check_runs(sha, "another") == ()
    output = site.github.checks(NAME)[0].output
    assert output == {"title": "Solves #1", "summary": "All of it.", "text": "$ pytest"}


def test_a_test_pull_request_is_a_draft_with_one_file_and_is_found_again(site: Site, issue: int) -> None:
    base, branch = site.forge.head("main"), f"bouncer/issue-{issue}"
    writer = site.writer
    for _ in range(2):
        writer.create_branch(branch, base)
        writer.put_file(branch, "tests/test_table.py", "def test_it():\n    assert False\n", "Reproduce #1")
    assert writer.find_pull(branch) is None
    number = writer.create_draft_pull(branch, "main", "Reproduce #1", "It fails.")
    assert writer.find_pull(branch) == number
    pull = site.forge.pull_request(number)
    assert (pull.draft, pull.from_fork, pull.head_ref) == (True, False, branch)
    assert site.forge.diff(number).text.count("diff --git") == 1
    assert sum(request.method == "PUT" for request in site.github.requests) == 1


def test_a_file_that_changed_is_replaced(site: Site) -> None:
    site.writer.create_branch("draft", site.forge.head("main"))
    site.writer.put_file("draft", TABLE, FIXED, "Replace")
    assert site.forge.file(TABLE, "draft").decode() == FIXED


def test_a_file_outside_of_the_repository_is_never_written(site: Site) -> None:
    site.writer.create_branch("draft", site.forge.head("main"))
    for path in ("../outside.py", "/etc/passwd", "tests//x.py", ""):
        with pytest.raises(NotFound):
            site.writer.put_file("draft", path, "x", "Escape")
    assert not [request for request in site.github.requests if request.method == "PUT"]


def test_a_reaction_is_added_to_comments_of_both_types(site: Site, issue: int, pull: int) -> None:
    comment = site.github.comment(NAME, issue, "/bouncer help")
    site.writer.create_review(pull, head(site, pull), "", (InlineComment(path=TABLE, line=2, body="x"),))
    finding = site.forge.review_comments(pull)[0].id
    for _ in range(2):
        site.writer.react(comment, "+1")
        site.writer.react(finding, "-1", review=True)
    ours = site.forge.identity()
    assert site.forge.reactions(comment).up == (ours,)
    assert site.forge.reactions(finding, review=True).down == (ours,)
