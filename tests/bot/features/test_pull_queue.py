"""The order of open pull requests, and the facts that it rests on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.core.actions import Decision
from bot.core.subjects import Subject
from bot.features.verify.pull_queue import QueuedPull, in_order
from bot.features.verify.record import ExecutedTest, NewTest, NewTests, TestState, VerifyRecord
from bot.github.protocol import OpenPull

START = datetime(2026, 3, 4, tzinfo=UTC)
HEAD = "a" * 40
#: The outcomes of a new test without the change and with it.
Outcome = tuple[TestState, TestState]
TELLING: Outcome = ("failed", "passed")
IDLE: Outcome = ("passed", "passed")
FAILING: Outcome = ("failed", "failed")
STORED_TEST = ExecutedTest(issue=1, test="t", command="c", base="failed", head="passed", solved=True)


def pull(number: int = 1, **values: object) -> OpenPull:
    at = START + timedelta(days=number)
    facts = {"title": "T", "author": "ann", "head_sha": HEAD, "created_at": at, "author_at": at}
    return OpenPull.model_validate({"number": number, **facts, **values})


def verdict(*outcomes: Outcome, bounced: bool = False, head: str = HEAD, **values: Any) -> Decision:
    tests = tuple(NewTest(test="t", before=before, after=after) for before, after in outcomes)
    return Decision(
        kind="verify",
        subject=Subject(repository="acme/rocket", number=1, revision=f"sha:{head}"),
        record=VerifyRecord(bounced=bounced, new_tests=NewTests(tests=tests), **values),
        verdict="INCORRECT" if bounced else "CORRECT_AND_PRECISE",
    )


def without_verdict(*outcomes: Outcome) -> Decision:
    return verdict(*outcomes).model_copy(update={"verdict": None, "abstained": "no-issue"})


def queued(open_pull: OpenPull, *decisions: Decision) -> QueuedPull:
    (row,) = in_order("acme/rocket", [open_pull], lambda subject, task: decisions)
    return row


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ((), ("not judged", "none")),
        ((verdict(),), ("verified", "none")),
        ((verdict(IDLE),), ("verified", "none")),
        ((verdict(TELLING, IDLE),), ("verified", "shown")),
        ((verdict(TELLING, FAILING),), ("verified", "failing")),
        ((verdict(("cannot be loaded", "passed")),), ("verified", "shown")),
        ((verdict(runs=(STORED_TEST,)),), ("verified", "none")),
        ((verdict(bounced=True),), ("may fall short", "none")),
        ((verdict(bounced=True), verdict(TELLING)), ("verified", "shown")),
        ((verdict(TELLING, head="b" * 40),), ("not judged", "none")),
        ((without_verdict(TELLING),), ("not judged", "shown")),
    ],
)
def test_only_verdicts_about_the_present_code_count(
    decisions: tuple[Decision, ...], expected: tuple[str, str]
) -> None:
    row = queued(pull(), *decisions)
    assert (row.verdict, row.tests) == expected


def test_it_is_the_turn_of_the_one_who_did_not_speak_last() -> None:
    later = START + timedelta(days=9)
    assert queued(pull()).turn == "maintainers"
    assert queued(pull(member_at=later)).turn == "author"
    assert queued(pull(member_at=later, author_at=later)).turn == "maintainers"
    assert queued(pull(draft=True)).turn == "author"
    assert queued(pull(), verdict(bounced=True)).turn == "author"


def test_verdict_goes_before_tests_turn_and_age() -> None:
    later = START + timedelta(days=99)
    pulls = [pull(1), pull(2, member_at=later), pull(3), pull(4), pull(5), pull(6)]
    past = {
        "acme/rocket#2": [verdict(TELLING)],
        "acme/rocket#3": [verdict(bounced=True)],
        "acme/rocket#5": [verdict()],
        "acme/rocket#6": [verdict()],
    }
    rows = in_order("acme/rocket", pulls, lambda subject, task: past.get(subject, []))
    assert [row.pull.number for row in rows] == [2, 5, 6, 1, 4, 3]
    assert rows[0].days(START + timedelta(days=7, hours=1)) == 5
