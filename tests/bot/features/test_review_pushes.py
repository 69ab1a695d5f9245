"""The reviewer over several pushes: only what is new is said, and what was rejected stays away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core import events
from bot.core.actions import Decision, Minimize, React, UpsertComment
from bot.core.subjects import Actor, ReviewComment
from bot.features.feedback.record import FeedbackRecord
from bot.github.protocol import Reactions
from tests.bot.features import reviews
from tests.bot.features.conftest import Build, Remembered
from tests.bot.features.reviews import CLEAN, reply, review, snapshot
from tests.builders import ANN, BOUNCER, MIA, comment_on_pull, event, finding, pull
from tests.builders import pull_opened as opened
from tests.builders import pull_pushed as pushed
from tests.scripted import ScriptedModel

# The same defect, thirty lines further down and indented differently, and a second one.
MOVED = """diff --git a/src/app.py b/src/app.py
index 1..3 100644
--- a/src/app.py
+++ b/src/app.py
@@ -40,3 +40,5 @@ def load(path):
     with open(path) as file:
-        return parse(file)
+        data = parse(file)
+        cache[path] = data
+            return data.value
     raise Missing(path)
"""
FIXED = MOVED.replace("return data.value", "return data.value if data else None")
WIDER = MOVED.replace("-40,3 +40,5", "-40,3 +40,6").replace(
    "+        data = parse", "+        # Now.\n+        data = parse"
)
SECOND = finding(quote="cache[path] = data", comment="Grows without end.", category="memory", symbol="cache")


def posted(decision: Decision) -> list[str]:
    return [comment.body.split("\n")[0] for comment in reviews.inline(decision)]


def summaries(decision: Decision) -> list[UpsertComment]:
    return [action for action in decision.actions if isinstance(action, UpsertComment)]


def on_github(*decisions: Decision, author: Actor = BOUNCER) -> tuple[ReviewComment, ...]:
    """The inline comments of these decisions, as GitHub lists them."""
    comments = [comment for decision in decisions for comment in reviews.inline(decision)]
    return tuple(
        ReviewComment(id=n, node_id=f"PRRC_{n}", body=comment.body, author=author, path=comment.path)
        for n, comment in enumerate(comments, start=100)
    )


def first_push(services: Build, history: Remembered, *findings: dict[str, Any]) -> Decision:
    decision = review(opened(), services(ScriptedModel([reply(*(findings or (finding(),)))]), snapshot()))
    history.past.append(decision)
    return decision


def push(
    services: Build,
    diff: str,
    answer: dict[str, Any] | ScriptedModel,
    comments: tuple[ReviewComment, ...],
    head: str = "b",
    **recorded: Any,
) -> Decision:
    model = answer if isinstance(answer, ScriptedModel) else ScriptedModel([answer])
    values = {"head_sha": head * 40}
    answers = {"review_comments": {20: comments}, **_thumbs(comments), **recorded}
    return review(pushed(**values), services(model, snapshot(diff=diff, recorded=answers, **values)))


def _thumbs(comments: tuple[ReviewComment, ...], *down: Actor) -> dict[str, Any]:
    return {"reactions": {f"review:{comment.id}": Reactions(down=down) for comment in comments}}


def test_a_new_push_gets_only_what_is_new(services: Build, history: Remembered) -> None:
    first = first_push(services, history)
    model = ScriptedModel([reply(finding(comment="The same in other words.", line=43), SECOND)])
    decision = push(services, MOVED, model, on_github(first))
    assert "src/app.py: Fails for an empty file." in model.asked[0].user
    assert posted(decision) == ["Grows without end."]
    assert decision.record.counts["suppressed:already_posted"] == 1
    assert summaries(decision) == []
    quiet = push(services, MOVED, reply(finding(line=43)), on_github(first))
    assert reviews.comments(quiet) == ()
    assert reviews.check(quiet).title == "Nothing new; 1 earlier finding open"


#: A file that moved, and another one that took its name.
REPLACED = """diff --git a/src/store.py b/src/app.py
similarity index 90%
rename from src/store.py
rename to src/app.py
--- a/src/store.py
+++ b/src/app.py
@@ -1,2 +1,3 @@
 a = 1
+b = compute(a)
 c = 3
diff --git a/src/store.py b/src/store.py
new file mode 100644
--- /dev/null
+++ b/src/store.py
@@ -0,0 +1,3 @@
+a = 1
+b = compute(a)
+from app import c
"""


def test_a_file_is_not_taken_for_one_that_had_its_name(services: Build, history: Remembered) -> None:
    defect = finding(path="src/store.py", quote="b = compute(a)", symbol="compute", line=None)
    first = review(opened(), services(ScriptedModel([reply(defect)]), snapshot(diff=REPLACED)))
    assert [comment.path for comment in reviews.inline(first)] == ["src/store.py"]
    history.past.append(first)
    unread = ScriptedModel([CLEAN])
    assert push(services, REPLACED, unread, on_github(first)).verdict == "clean"
    assert unread.asked == []


#: Two functions with the same short line, which the change adds to both.
GUARDS = """diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -10,3 +10,5 @@
 def load(path):
+    if not path:
+        return None
     with open(path) as file:
         return parse(file)
@@ -30,3 +32,5 @@
 def save(path, data):
+    if not data:
+        return None
     with open(path, "w") as file:
         file.write(data)
"""
LOAD, SAVE = (
    finding(quote="return None", line=line, symbol=name, comment=f"`{name}` hides the error.", confidence=chance)
    for name, line, chance in (("load", 12, 90), ("save", 34, 60))
)


def test_equal_short_lines_are_doubted_and_posted_for_themselves(services: Build, history: Remembered) -> None:
    doubts = (
        {"trace": "It is wanted.", "breaks_when": "", "quote": "", "instead": "", "verdict": "refuted"},
        {
            "trace": "It is lost.",
            "breaks_when": "no data",
            "quote": "return None",
            "instead": "nothing is written",
            "verdict": "upheld",
        },
    )
    model = ScriptedModel([reply(LOAD, SAVE), *doubts])
    decision = review(opened(), services(model, snapshot(GUARDS), "review: {doubt: true, max_findings: 1}"))
    assert posted(decision) == ["`save` hides the error."]
    assert [doubt.outcome for doubt in decision.record.doubts] == ["refuted", "stands"]


@pytest.mark.parametrize("symbol", ["", "path"])
def test_a_short_line_is_the_same_when_the_lines_around_it_change(
    services: Build, history: Remembered, symbol: str
) -> None:
    first = review(opened(), services(ScriptedModel([reply(LOAD)]), snapshot(GUARDS)))
    history.past.append(first)
    changed = GUARDS.replace("+    if not path:", "+    if not path.exists():")
    decision = push(services, changed, reply({**LOAD, "symbol": symbol}), on_github(first))
    assert posted(decision) == []
    assert decision.record.counts["suppressed:already_posted"] == 1


def test_a_dismissed_short_line_stays_away_and_its_twin_does_not(services: Build, history: Remembered) -> None:
    without_save = GUARDS.partition("@@ -30")[0]
    first = review(opened(), services(ScriptedModel([reply(LOAD)]), snapshot(without_save)))
    history.past.append(first)
    moved = GUARDS.replace("@@ -10,3 +10,5 @@", "@@ -15,3 +15,5 @@")
    thumbs = _thumbs(on_github(first), MIA)
    unnamed = {**LOAD, "symbol": "", "line": 17}
    decision = push(services, moved, reply(unnamed, SAVE), on_github(first), **thumbs)
    assert posted(decision) == ["`save` hides the error."]
    assert decision.record.counts["suppressed:dismissed"] == 1


def test_a_short_line_that_went_away_is_outdated_while_its_twin_stands(
    services: Build, history: Remembered
) -> None:
    first = review(opened(), services(ScriptedModel([reply(LOAD, SAVE)]), snapshot(GUARDS)))
    history.past.append(first)
    assert len(posted(first)) == 2
    without_load = GUARDS.partition("@@ -10")[0] + "@@ -30" + GUARDS.partition("@@ -30")[2]
    second = push(services, without_load, CLEAN, on_github(first))
    assert second.record.outdated == (first.record.posted[0].fingerprint,)
    history.past.append(second)
    moved = without_load.replace("@@ -30,3 +32,5 @@", "@@ -40,3 +42,5 @@")
    third = push(services, moved, CLEAN, on_github(first), "c")
    assert "No longer in the change:\n- `src/app.py`: `load` hides the error" in summaries(third)[0].body


def test_what_went_away_is_named_and_the_summary_is_edited_in_place(services: Build, history: Remembered) -> None:
    first = first_push(services, history)
    second = push(services, FIXED, CLEAN, on_github(first))
    assert [action.body for action in summaries(second)] == [
        "**AI review of bbbbbbb**\n\nNo longer in the change:\n- `src/app.py`: Fails for an empty file"
    ]
    assert second.record.as_json()["outdated"] == [
        item["fingerprint"] for item in first.record.as_json()["posted"]
    ]
    history.past.append(second)
    # Code that comes back is no news, in whatever words.
    again = finding(comment="`value` is read of None.", category="coding", quote="data.value")
    third = push(services, MOVED, reply(again), on_github(first), "c")
    assert third.record.counts["suppressed:already_posted"] == 1
    assert [(action.only_edit, action.body) for action in summaries(third)] == [
        (True, "**AI review of ccccccc**: nothing to add.")
    ]


@pytest.mark.parametrize("author", [None, ANN])
def test_finding_without_a_comment_of_ours_is_posted_by_the_next_push(
    services: Build, history: Remembered, author: Actor | None
) -> None:
    first = first_push(services, history)
    comments = on_github(first, author=author) if author else ()
    assert len(posted(push(services, MOVED, reply(finding()), comments))) == 1


def dismissal(comments: tuple[ReviewComment, ...]) -> events.Event:
    answer = ReviewComment(
        id=900, body="/bouncer dismiss", author=MIA, path="src/app.py", in_reply_to=comments[0].id
    )
    return event(events.ReviewCommentCreated, pull(), MIA, comment=answer)


def test_a_finding_dismissed_in_its_thread_never_comes_back(services: Build, history: Remembered) -> None:
    other = finding(quote="data = parse(file)", comment="Leaks.")
    first = first_push(services, history, finding(), other)
    comments = on_github(first)
    shot = snapshot(recorded={"review_comments": {20: comments}})
    decision = review(dismissal(comments), services(ScriptedModel(), shot))
    assert decision.verdict == "dismissed"
    thumb, note, minimized = decision.actions
    assert minimized == Minimize(node_id="PRRC_100", why="RESOLVED")
    assert thumb == React(comment_id=900, on="review", content="+1")
    assert (note.thread, note.body) == (comments[0].id, "Dismissed by mia. I won't post it here again.")
    assert decision.reason == "mia dismissed 1 of 2 findings"
    history.past.append(decision)
    again = push(services, MOVED, reply(finding(), other), comments)
    assert reviews.comments(again) == ()
    assert again.record.counts["suppressed:dismissed"] == 1
    assert again.record.counts["suppressed:already_posted"] == 1


def test_dismiss_below_the_pull_request_means_the_only_open_finding(services: Build, history: Remembered) -> None:
    comments = on_github(first_push(services, history))
    shot = snapshot(recorded={"review_comments": {20: comments}})
    decision = review(comment_on_pull("/bouncer dismiss, checked by the caller"), services(ScriptedModel(), shot))
    assert len(decision.record.as_json()["dismissed"]) == 1
    thumb, note, _ = decision.actions
    assert thumb == React(comment_id=900, content="+1")
    assert note.body == "Dismissed by mia: checked by the caller. I won't post it here again."
    assert note.thread == comments[0].id, "it stands below the finding"
    history.past.append(decision)
    again = review(comment_on_pull("/bouncer dismiss"), services(ScriptedModel(), shot))
    assert again.abstained == "skipped:no-finding"
    assert [action.type for action in again.actions] == ["react", "upsert_comment"]
    assert again.actions[1].body == "mia: I have no open finding here to dismiss."


def test_dismiss_below_a_pull_request_with_several_findings_asks_which(
    services: Build, history: Remembered
) -> None:
    first = first_push(services, history, finding(), finding(quote="data = parse(file)", comment="Leaks."))
    shot = snapshot(recorded={"review_comments": {20: on_github(first)}})
    decision = review(comment_on_pull("/bouncer dismiss"), services(ScriptedModel(), shot))
    assert (decision.verdict, decision.record) == (None, None)
    confused, text = decision.actions
    assert confused == React(comment_id=900, content="confused")
    assert text.body == "mia: I have 2 open findings here. Reply below the finding that you mean."
    resolved = {
        "key": f"acme/rocket#20:{first.record.posted[0].fingerprint}",
        "category": "coding",
        "outcome": "addressed",
        "source": "resolved",
    }
    record = FeedbackRecord.model_validate({"signals": [resolved]})
    history.past.append(Decision(kind="feedback", subject=first.subject, record=record, verdict="addressed"))
    decision = review(comment_on_pull("/bouncer dismiss"), services(ScriptedModel(), shot))
    assert decision.record.as_json()["dismissed"] == [first.record.as_json()["posted"][1]["fingerprint"]], (
        "the other is resolved"
    )


def test_a_dismissal_in_somebody_else_s_thread_is_about_nothing_of_ours(
    services: Build, history: Remembered
) -> None:
    comments = on_github(first_push(services, history), author=ANN)
    shot = snapshot(recorded={"review_comments": {20: comments}})
    decision = review(dismissal(comments), services(ScriptedModel(), shot))
    assert (decision.verdict, decision.abstained) == (None, "skipped:no-finding")
    assert decision.actions[1].body == "mia: This thread is not about an open finding of mine."


def test_a_maintainer_s_thumbs_down_is_a_dismissal_and_a_stranger_s_is_not(
    services: Build, history: Remembered
) -> None:
    comments = on_github(first_push(services, history))
    by_maintainer = push(services, MOVED, reply(finding()), comments, **_thumbs(comments, MIA))
    assert by_maintainer.record.counts["suppressed:dismissed"] == 1
    by_stranger = push(services, MOVED, reply(finding()), comments, **_thumbs(comments, ANN))
    assert by_stranger.record.counts["suppressed:already_posted"] == 1
    history.past.append(by_maintainer)
    # Taking the thumb away later does not bring it back.
    later = push(services, WIDER, reply(finding()), comments, "c")
    assert later.record.counts["suppressed:dismissed"] == 1


def test_a_muted_category_is_recorded_and_not_posted(services: Build, history: Remembered) -> None:
    class Muting(Remembered):
        def muted(self, repository: str) -> frozenset[str]:
            return frozenset({"data"})

    built = services(ScriptedModel([reply(finding())]), snapshot())
    decision = review(opened(), replace(built, history=Muting()))
    assert reviews.comments(decision) == ()
    assert decision.record.as_json()["suppressed"][0]["reason"] == "muted"


def test_findings_in_the_summary_stay_there_while_they_stand(services: Build, history: Remembered) -> None:
    unplaced = finding(quote="def load(path):", comment="Callers break.", symbol="")
    first = first_push(services, history, unplaced)
    second = push(services, MOVED, reply(unplaced), ())
    assert "Callers break." in summaries(first)[0].body
    assert "Callers break." in summaries(second)[0].body
    assert second.record.counts["suppressed:already_posted"] == 1


def retarget(services: Build, diff: str, model: ScriptedModel, comments: tuple[ReviewComment, ...]) -> Any:
    """Let the base branch become 1.x, which changes the diff."""
    answers = {"review_comments": {20: comments}, **_thumbs(comments)}
    built = services(model, snapshot(diff=diff, recorded=answers, base_ref="1.x"))
    return review(event(events.PullRequestEdited, pull(base_ref="1.x"), MIA), built)


def test_a_head_is_reviewed_once_per_base(services: Build, history: Remembered) -> None:
    first = first_push(services, history)
    comments = on_github(first)
    second = retarget(services, MOVED, ScriptedModel([reply(finding(line=43), SECOND)]), comments)
    assert posted(second) == ["Grows without end."]
    assert [decision.actions[0].about for decision in (first, second)] == ["", "2"]
    history.past.append(second)
    unread = ScriptedModel([])
    assert retarget(services, MOVED, unread, (*comments, *on_github(second))) is None
    assert review(opened(), services(unread, snapshot())) is None
    assert unread.asked == []


def test_another_base_with_the_same_diff_asks_no_model(services: Build, history: Remembered) -> None:
    comments = on_github(first_push(services, history))
    unread = ScriptedModel([])
    decision = retarget(services, reviews.DIFF, unread, comments)
    assert (unread.asked, reviews.comments(decision)) == ([], ())
