"""Reactions to posts are recorded and never answered."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core import events
from bot.core.actions import Decision, SubmitReview
from bot.core.subjects import Actor, ReviewComment, Subject
from bot.features.commands.record import CommandsRecord
from bot.features.feedback.record import Outcome, Signal
from bot.features.feedback.signals import Row, outcomes, rates, signals
from bot.features.review.record import ReviewRecord
from bot.features.services import Services
from bot.features.shared.findings import Category, Finding
from bot.features.triage.record import TriageRecord
from bot.github.offline import Snapshot
from bot.github.protocol import IssueLink, Reactions
from bot.router import decide
from tests import builders
from tests.bot.features.conftest import Build, Remembered
from tests.builders import ANN, BOUNCER, HELPER, MIA, issue, placed_finding, pull
from tests.scripted import ScriptedModel

PULL = pull(state="closed", merged=True)


def finding(name: str) -> Finding:
    category = next(iter(Category))
    return placed_finding(path="x.py", fingerprint=f"print-{name}", comment=f"{name} breaks.", category=category)


def comment(number: int, name: str, author: Actor = BOUNCER) -> ReviewComment:
    return ReviewComment(id=number, author=author, path="x.py", line=3, body=f"{name} breaks. print-{name}")


@pytest.fixture
def reviewed(history: Remembered) -> Remembered:
    history.past.append(
        Decision(
            kind="review",
            subject=Subject(repository="acme/rocket", number=20, revision=PULL.revision),
            verdict="defects",
            actions=(SubmitReview(number=20, commit_id="a" * 40, comments=()),),
            record=ReviewRecord(posted=tuple(map(finding, ("one", "two", "three", "four")))),
        )
    )
    return history


def verdict_of(kind: Any, number: int, chance: int, harm: int | None = None) -> Decision:
    """Build a verdict; from 50 percent on it bounced."""
    return Decision(
        kind=kind,
        subject=Subject(repository="acme/rocket", number=number, revision=""),
        verdict="VAGUE",
        record=TriageRecord(p_bounce=chance, bounced=chance >= 50, harm=harm),
    )


BOUNCED, CLEARED = verdict_of("triage", 5, 80), verdict_of("triage", 5, 10)


def snapshot(**values: Any) -> Snapshot:
    defaults: dict[str, Any] = {
        "review_comments": {
            20: (
                *(comment(number, name) for number, name in enumerate(("one", "two", "three", "four"), 1)),
                comment(5, "one", ANN),
            )
        },
        "resolved_threads": {20: (3,)},
        "linked_issues": {20: ()},
        "reactions": {
            "review:1": Reactions(down=(MIA,)),
            "review:2": Reactions(up=(ANN,), down=(ANN,)),
            "review:3": Reactions(),
            "review:4": Reactions(),
        },
    }
    return builders.snapshot(**{**defaults, **values})


def signals_of(event: events.Event, services: Services) -> dict[str, tuple[str, str]]:
    decisions = decide(event, services, only="feedback")
    assert all(decision.actions == () for decision in decisions)
    return {sign.key.rpartition(":")[2]: (sign.outcome, sign.source) for sign in signals(decisions)}


@pytest.mark.usefixtures("reviewed")
def test_at_the_end_every_finding_has_an_outcome(services: Build) -> None:
    event = builders.event(events.PullRequestClosed, PULL)
    assert signals_of(event, services(ScriptedModel(), snapshot())) == {
        "print-one": ("dismissed", "reaction"),
        "print-two": ("addressed", "reaction"),
        "print-three": ("addressed", "resolved"),
        "print-four": ("ignored", "closed"),
    }


@pytest.mark.usefixtures("reviewed")
def test_resolving_a_thread_of_ours_is_a_sign(services: Build) -> None:
    event = builders.event(events.ReviewThreadResolved, PULL, comment_ids=(2, 5, 99))
    assert signals_of(event, services(ScriptedModel(), snapshot())) == {"print-two": ("addressed", "resolved")}


@pytest.mark.usefixtures("reviewed")
@pytest.mark.parametrize(("by", "outcome"), [(MIA, {"print-one": ("dismissed", "deleted")}), (BOUNCER, {})])
def test_deleting_a_comment_of_ours_is_a_no(services: Build, by: Actor, outcome: dict[str, Any]) -> None:
    event = builders.event(events.ReviewCommentDeleted, PULL, by, comment=comment(1, "one"))
    assert signals_of(event, services(ScriptedModel(), snapshot())) == outcome


@pytest.mark.parametrize(
    ("reason", "outcome"), [("not_planned", ("addressed", "not_planned")), ("completed", ("ignored", "closed"))]
)
def test_how_a_bounced_issue_ends(
    services: Build, history: Remembered, reason: str, outcome: tuple[str, str]
) -> None:
    event = builders.event(events.IssueClosed, issue(state_reason=reason), MIA)
    assert signals_of(event, services(ScriptedModel(), snapshot())) == {}
    history.past.append(BOUNCED)
    assert signals_of(event, services(ScriptedModel(), snapshot())) == {"acme/rocket#5": outcome}


@pytest.mark.parametrize(
    ("labels", "reason", "expected"),
    [
        (("Status: Needs Info",), "not_planned", ["closed with Status: Needs Info, and no answer"]),
        (("bug",), "not_planned", []),  # swept up by age alone: that says nothing about the issue
        (("needs-info",), "completed", []),
    ],
)
def test_stale_bounced_issue_was_probably_bounced_rightly(
    services: Build, history: Remembered, labels: tuple[str, ...], reason: str, expected: list[str]
) -> None:
    event = builders.event(events.IssueClosed, issue(state_reason=reason, labels=labels), HELPER)
    history.past.append(BOUNCED)
    decisions = decide(event, services(ScriptedModel(), snapshot()), only="feedback")
    fates = [fate for decision in decisions for fate in decision.record.fates]
    assert [fate.why for fate in fates] == expected
    assert not any(fate.good for fate in fates)
    assert signals(decisions) == (), "a bot has no opinion"


def test_other_decisions_imply_signs(reviewed: Remembered) -> None:
    changed = ReviewRecord(outdated=("print-one",), dismissed=("print-two", "?"))
    accept = Decision(
        kind="commands",
        subject=BOUNCED.subject,
        record=CommandsRecord(done=("accept",), by="mia"),
    )
    later = [
        Decision(kind="review", subject=reviewed.past[0].subject, record=changed),
        BOUNCED,
        CLEARED,
        accept,
        BOUNCED,
        accept,
    ]
    category = str(next(iter(Category)))
    assert signals([*reviewed.past, *later]) == (
        Signal(key="acme/rocket#20:print-one", category=category, outcome="addressed", source="changed"),
        Signal(key="acme/rocket#20:print-two", category=category, outcome="dismissed", source="command"),
        Signal(key="acme/rocket#5", category="bounce", outcome="addressed", source="edited"),
        Signal(key="acme/rocket#5", category="bounce", outcome="dismissed", source="command", by="mia"),
    )


def fates(event: events.Event, services: Services) -> dict[str, tuple[bool, int | None, bool, str]]:
    fates = [fate for decision in decide(event, services, only="feedback") for fate in decision.record.fates]
    return {f"{fate.bouncer} {fate.subject}": (fate.good, fate.p_bounce, fate.bounced, fate.why) for fate in fates}


def test_a_merge_tells_what_became_of_its_issues_and_of_itself(services: Build, history: Remembered) -> None:
    """Of the issue what was said first counts: later answers may have made it clear."""
    history.past += [verdict_of("triage", 5, 70, 5), verdict_of("triage", 5, 10), verdict_of("verify", 20, 30)]
    event = builders.event(events.PullRequestClosed, PULL)
    links = {20: (IssueLink(repository="acme/rocket", number=5), IssueLink(repository="acme/rocket", number=6))}
    assert fates(event, services(ScriptedModel(), snapshot(linked_issues=links))) == {
        "triage acme/rocket#5": (True, 70, True, "closed by the merged pull request #20"),
        "verify acme/rocket#20": (True, 30, False, "merged"),
    }


def test_a_revert_tells_on_what_it_reverts_and_shadow_mode_learns_too(
    services: Build, history: Remembered
) -> None:
    history.past += [verdict_of("verify", 8, 20), verdict_of("triage", 5, 20)]
    revert = pull(state="closed", merged=True, title='Revert "Read"', body="Reverts acme/rocket#8")
    event = builders.event(events.PullRequestClosed, revert)
    assert fates(event, services(ScriptedModel(), snapshot(), "verify: {mode: shadow}")) == {
        "verify acme/rocket#8": (False, 20, False, "reverted or repaired by #20")
    }
    event_of_issue = builders.event(events.IssueClosed, issue(state_reason="not_planned"), MIA)
    assert fates(event_of_issue, services(ScriptedModel(), snapshot())) == {
        "triage acme/rocket#5": (False, 20, False, "closed as not planned")
    }


def sign(key: str, outcome: Outcome, category: str = "Security") -> Signal:
    return Signal(key=key, category=category, outcome=outcome, source="reaction")


def test_nothing_counted_is_no_rate() -> None:
    assert rates({}) == ()
    (row,) = rates({"Security": {}})
    assert (row.total, row.share, row.muted) == (0, 0.0, False)


def test_a_word_against_a_finding_outweighs_a_later_change() -> None:
    final = outcomes(
        [sign("a", "ignored"), sign("a", "dismissed"), sign("a", "addressed"), sign("b", "addressed")]
    )
    assert {key: signal.outcome for key, signal in final.items()} == {"a": "dismissed", "b": "addressed"}


def row(category: str = "Security", *, addressed: int = 0, dismissed: int = 0) -> Row:
    (row,) = rates({category: {"addressed": addressed, "dismissed": dismissed, "ignored": 0}})
    return row


def test_a_category_is_muted_only_on_enough_evidence() -> None:
    assert not row(dismissed=7).muted
    assert row(dismissed=8).muted
    assert not row(dismissed=50, addressed=50).muted
    assert not row("bounce", dismissed=50).muted, "maintainers have a threshold for bounces"
