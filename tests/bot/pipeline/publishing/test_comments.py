"""One sticky comment of a task on an issue: written once, edited in place, never taken from anybody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.actions import Decision, Minimize, React, SetDraft, SetIssueState, SetLabels, UpsertComment
from bot.core.config import RepoConfig
from bot.core.errors import ForgeError, TransientError
from bot.core.subjects import Subject
from bot.pipeline.publisher import OneWrite

ISSUE = "/repos/octo/demo/issues/1"


def says(body: str, **more) -> UpsertComment:
    return UpsertComment(task="triage", number=1, body=body, **more)


@pytest.fixture
def issue(desk):
    return desk.github.open_issue("octo/demo", "It is broken", "Somehow.")


def test_the_comment_is_written_once_and_then_edited(desk, issue):
    assert desk.publish(says("Which version?"), number=issue).outcome == "posted"
    assert desk.publish(says("Which version?"), number=issue).outcome == "posted"
    assert desk.publish(says("Thanks, this is clear now."), number=issue).outcome == "posted"
    assert desk.github.comments("octo/demo", 1) == ["Thanks, this is clear now.\n\n<!-- bouncer:triage:v1 -->"]
    assert [method for method, _ in desk.written()] == ["POST", "PATCH"]


def test_after_a_crash_before_the_record_the_marker_identifies_the_comment(desk, issue, tmp_path):
    desk.publish(says("Which version?"), number=issue)
    again = desk.forgetful(tmp_path)
    assert again.publish(says("Which version, please?"), number=issue).outcome == "posted"
    (body,) = desk.github.comments("octo/demo", 1)
    assert body.startswith("Which version, please?")


def test_a_marker_that_somebody_else_typed_is_not_ours(desk, issue):
    forged = "mine now\n\n<!-- bouncer:triage:v1 -->"
    desk.github.comment("octo/demo", 1, forged, author="mallory")
    desk.publish(says("Which version?"), number=issue)
    assert desk.github.comments("octo/demo", 1)[0] == forged
    assert len(desk.github.comments("octo/demo", 1, by="bouncer[bot]")) == 1


@pytest.fixture
def deleted(desk, issue):
    """The number of an issue on which a maintainer deleted the comment."""
    desk.publish(says("Which version?"), number=issue)
    desk.github.delete_comment("octo/demo", desk.forge.comments(1)[0].id, by="octo")
    return issue


@pytest.mark.parametrize("text", ["Which version, and which system?", "Which version?"])
def test_a_comment_that_a_person_deleted_is_written_again_on_request_only(desk, deleted, text):
    label = SetLabels(number=1, add=("needs-info",))
    for job in ("second:triage", "third:triage"):
        published = desk.publish(says("Which system?"), label, number=deleted, job=job)
        assert (published.outcome, published.notes) == (
            "refused",
            ("my comment was deleted, and is not written again",),
        )
    assert (desk.github.comments("octo/demo", 1), desk.github.labels("octo/demo", 1)) == ([], [])
    desk.publisher = replace(desk.publisher, on_request=True)
    for _ in range(2):
        assert desk.publish(says(text), label, number=deleted, job="fourth:triage").outcome == "posted"
    assert desk.github.comments("octo/demo", 1) == [f"{text}\n\n<!-- bouncer:triage:v1 -->"]


@pytest.mark.parametrize("on_request", [False, True])
def test_paced_writes_go_on_after_a_deleted_comment(desk, deleted, on_request):
    desk.writer.add_labels(1, ("needs-info",))
    actions = says("Clear now.", only_edit=True), SetLabels(number=1, remove=("needs-info",))
    desk.publisher = replace(desk.publisher, before_write=OneWrite(), on_request=on_request)
    assert desk.publish(*actions, number=deleted, job="second:triage").outcome == "posted"
    assert (desk.github.comments("octo/demo", 1), desk.github.labels("octo/demo", 1)) == ([], [])


def test_where_there_is_no_comment_an_edit_only_stays_silent(desk, issue):
    published = desk.publish(says("Thanks, this is clear now.", only_edit=True), number=issue)
    assert (published.outcome, published.notes) == ("posted", ("no comment to edit",))
    assert desk.written() == []


@pytest.mark.parametrize("kind", ["lost", "reset", "server_error", "bad_gateway", "too_many", "rate_limited"])
def test_a_write_that_may_have_been_applied_is_looked_for_before_a_retry(desk, issue, kind):
    desk.github.fail(kind, "POST", "/comments$")
    with pytest.raises(TransientError):
        desk.publish(says("Which version?"), number=issue)
    assert desk.publish(says("Which version?"), number=issue).outcome == "posted"
    assert len(desk.github.comments("octo/demo", 1)) == 1


def one_write(desk):
    """The same desk with the permission for one write, as a worker's attempt has it."""
    return replace(desk, publisher=replace(desk.publisher, before_write=OneWrite()))


def test_an_attempt_makes_one_write_and_the_next_one_goes_on(desk, issue):
    comment, label = says("Which version?"), SetLabels(number=1, add=("needs-info",))
    assert one_write(desk).publish(comment, label, number=issue).outcome == "paced"
    assert [path.rpartition("/")[2] for _, path in desk.written()] == ["comments"]
    assert one_write(desk).publish(comment, label, number=issue).outcome == "posted"
    assert [path.rpartition("/")[2] for _, path in desk.written()] == ["comments", "labels"]


@pytest.mark.parametrize("attempt", [lambda desk: desk, one_write], ids=["all at once", "one write"])
def test_a_refused_action_does_not_stop_the_other_actions(desk, issue, attempt):
    desk.github.fail("forbidden", "POST", "/comments$")
    with pytest.raises(ForgeError, match="not accessible"):
        attempt(desk).publish(says("Which version?"), SetLabels(number=1, add=("needs-info",)), number=issue)
    assert desk.github.labels("octo/demo", 1) == ["needs-info"]


def test_an_issue_that_is_edited_between_two_writes_gets_no_second_one(desk, issue):
    revision = desk.forge.issue(1).revision
    comment, label = says("Which version?"), SetLabels(number=1, add=("needs-info",))
    assert one_write(desk).publish(comment, label, number=1, revision=revision).outcome == "paced"
    desk.github.edit("octo/demo", 1, body="With 4.2.")
    assert one_write(desk).publish(comment, label, number=1, revision=revision).outcome == "moved"
    assert desk.github.labels("octo/demo", 1) == []


def test_what_people_asked_for_holds_whatever_became_of_the_text(desk, issue):
    revision = desk.forge.issue(1).revision
    desk.github.edit("octo/demo", 1, body="Changed.")
    help_text = UpsertComment(task="commands", number=1, body="- `/bouncer help`")
    assert desk.publish(help_text, number=1, revision=revision, kind="commands").outcome == "posted"
    assert desk.github.comments("octo/demo", 1)[0].startswith("- `/bouncer help`")


def test_only_labels_that_the_repository_named_are_touched(desk, issue):
    desk.github.label("octo/demo", 1, "release-blocker", by="octo")
    labels = SetLabels(number=1, add=("needs-info", "security"), remove=("release-blocker",))
    published = desk.publish(labels, number=issue)
    assert published.notes == (
        "label 'security' is not one of ours",
        "label 'release-blocker' is not one of ours",
    )
    assert set(desk.github.labels("octo/demo", 1)) == {"release-blocker", "needs-info"}


def test_labels_that_are_right_already_are_not_written(desk, issue):
    desk.publish(SetLabels(number=1, add=("needs-info",)), number=issue)
    before = desk.written()
    desk.publish(SetLabels(number=1, add=("needs-info",)), number=issue)
    desk.publish(SetLabels(number=1, remove=("reproduced",)), number=issue)
    assert desk.written() == before
    desk.publish(SetLabels(number=1, remove=("needs-info",)), number=issue)
    assert desk.github.labels("octo/demo", 1) == []


def test_a_decision_without_actions_writes_nothing(desk, issue):
    assert desk.publish(number=issue).outcome == "nothing"
    assert desk.written() == []


def test_a_body_beyond_githubs_limit_is_cut_and_still_found_again(desk, issue, tmp_path):
    desk.publish(says("```\n" + "0123456789\n" * 9000), number=issue)
    (posted,) = desk.github.comments("octo/demo", 1)
    assert len(posted) <= 65_536
    assert posted.endswith("…\n```\n\n<!-- bouncer:triage:v1 -->")
    desk.forgetful(tmp_path).publish(says("shorter"), number=issue)
    assert len(desk.github.comments("octo/demo", 1)) == 1


def test_a_comment_that_cannot_be_minimized_is_a_note(desk, issue):
    published = desk.publish(says("Thanks."), Minimize(node_id="PRRC_404", why="OUTDATED"), number=issue)
    assert published.outcome == "posted"
    assert [note.partition(":")[0] for note in published.notes] == ["a comment was not minimized"]


def test_a_deleted_command_gets_no_reaction_and_is_carried_out(desk, issue):
    desk.publish(says("Which version?"), number=issue)
    command = desk.github.comment("octo/demo", 1, "/bouncer accept", "octo")
    desk.github.delete_comment("octo/demo", command, by="octo")
    react = React(comment_id=command, content="+1")
    published = desk.publish(react, says("Accepted as is."), number=issue, kind="commands")
    assert published.outcome == "posted"
    assert desk.github.comments("octo/demo", 1)[0].startswith("Accepted as is.")


def test_an_archived_repository_is_left_as_it_is(desk, issue):
    desk.github.world.repositories["octo/demo"].archived = True
    label = SetLabels(number=1, add=("needs-info",))
    published = one_write(desk).publish(says("Which version?"), label, number=issue)
    assert published.outcome == "refused"
    assert ["Repository was archived so is read-only." in note for note in published.notes] == [True, True]


def test_a_command_in_an_archived_repository_is_recorded_as_refused(desk, issue):
    command = desk.github.comment("octo/demo", 1, "/bouncer accept", "octo")
    desk.github.world.repositories["octo/demo"].archived = True
    published = desk.publish(React(comment_id=command, content="+1"), number=issue, kind="commands")
    assert (published.outcome, [note[:12] for note in published.notes]) == ("refused", ["not written:"])


DAILY = {"mode": "comment", "watch": "daily"}


@pytest.mark.parametrize(
    ("kind", "verdict", "config"),
    [
        ("ready", "ready", {"triage": {"mode": "off", "brief": True}}),
        ("ready", "ready", {"triage": {"mode": "shadow", "brief": True}}),
        ("ready", "ready", {"triage": {"brief": False}}),
        ("closing", "warned", {"triage": {"mode": "off", "close_after_days": 30}}),
        ("closing", "warned", {"triage": {"mode": "label", "close_after_days": 30}}),
        ("closing", "warned", {}),
        ("watch", "passes", {"reproduce": {**DAILY, "watch": "off"}}),
        ("watch", "passes", {"reproduce": {**DAILY, "mode": "off"}}),
        ("watch", "bisected", {"reproduce": {**DAILY, "mode": "off"}}),
    ],
)
def test_a_write_that_waits_is_dropped_once_its_feature_is_off(desk, issue, kind, verdict, config):
    desk.services = replace(desk.services, config=RepoConfig.model_validate(config))
    subject = Subject(repository="octo/demo", number=1, revision=desk.forge.issue(1).revision)
    for action in (says("Close?"), SetIssueState(number=1, state="closed")):
        decision = Decision(kind=kind, subject=subject, verdict=verdict, actions=(action,))
        assert desk.publisher.publish(decision, "d", desk.services, desk.writer).outcome == "moved"
    assert desk.written() == []


@pytest.mark.parametrize(
    ("verdict", "watch"), [("passes", "daily"), ("bisected", "daily"), ("bisected", "off"), (None, "off")]
)
def test_the_watch_posts_while_it_is_on_and_a_bisection_whenever_tests_run(desk, issue, verdict, watch):
    config = RepoConfig.model_validate({"reproduce": {"mode": "comment", "watch": watch}})
    desk.services = replace(desk.services, config=config)
    subject = Subject(repository="octo/demo", number=1, revision="text:of another time")
    decision = Decision(kind="watch", subject=subject, verdict=verdict, actions=(says("Close?"),))
    assert desk.publisher.publish(decision, "d", desk.services, desk.writer).outcome == "posted"


@pytest.mark.parametrize("mode", ["off", "shadow", "check"])
def test_no_conversion_is_claimed_that_a_switched_off_gate_does_not_make(desk, mode):
    number = desk.github.open_pull("octo/demo", "Read two", files={"table.py": "x = 1\n"})
    config = RepoConfig.model_validate({"gate": {"mode": mode}})
    desk.services = replace(desk.services, config=config)
    convert = SetDraft(number=number, node_id=desk.forge.pull_facts(number).node_id, draft=True)
    claim = UpsertComment(task="gate", number=number, body="I made it a draft.")
    published = desk.publish(convert, claim, number=number, kind="gate", revision="sha:1")
    assert (published.outcome, desk.github.comments("octo/demo", number)) == ("moved", [])


def test_an_answer_withdraws_a_warning_although_closing_is_off(desk, issue):
    warning = UpsertComment(task="closing", number=1, body="I'll close this issue.", about="1")
    desk.publish(warning, number=issue, kind="commands")
    thanks = UpsertComment(task="closing", number=1, body="The issue stays open.", about="1", only_edit=True)
    subject = Subject(repository="octo/demo", number=1, revision=desk.forge.issue(1).revision)
    decision = Decision(kind="closing", subject=subject, verdict="answered", actions=(thanks,))
    assert desk.publisher.publish(decision, "d:closing", desk.services, desk.writer).outcome == "posted"
    assert desk.github.comments("octo/demo", 1)[0].startswith("The issue stays open.")
