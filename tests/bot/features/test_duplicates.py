"""The drafted tests of two issues on each other's commit, really executed."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core import events
from bot.core.actions import Decision, Task, UpsertComment
from bot.core.subjects import Subject
from bot.features.commands.record import CommandsRecord
from bot.features.duplicates.record import DuplicatesRecord
from bot.features.services import Services
from bot.router import decide
from bot.sandbox.bubblewrap import Bubblewrap
from tests import builders
from tests.bot.features.conftest import Build, Remembered, reproduced_by
from tests.builders import MIA, NO_PLUGINS, REPOSITORY, issue
from tests.scripted import ScriptedModel

pytestmark = pytest.mark.debian("bubblewrap")

OLD, NEW = "a" * 40, "b" * 40
ROOT, NEWER = 5, 9
SENTENCE = "This may be the same as #5: both fail."
#: The same failure on both commits, unless ``data`` says otherwise.
CODE = b"def load():\n    raise ValueError('no data')\n"


class WithNewest(Remembered):
    """A history that also knows the newest decision on each subject."""

    def newest(self, repository: str, kind: Task) -> Any:
        return tuple({item.subject.number: item for item in self.past if item.kind == kind}.values())


@pytest.fixture
def history() -> WithNewest:
    history = WithNewest()
    comment = UpsertComment(task="triage", number=NEWER, body=f"Which version?\n\n{SENTENCE}\n\nI'm a bot.")
    history.past.append(
        decision(NEWER, "duplicates", DuplicatesRecord(root=ROOT, suggestion=SENTENCE), actions=(comment,))
    )
    return history


def decision(number: int, kind: str, record: Any, **values: Any) -> Decision:
    subject = Subject(repository=REPOSITORY.full_name, number=number, revision="text:1")
    return Decision(kind=kind, subject=subject, record=record, **values)


def draft(history: WithNewest, number: int, sha: str, message: str = "no data") -> None:
    """Store a drafted test."""
    content = f"from app import load\n\n\ndef test_issue_{number}():\n    load()\n"
    history.past.append(reproduced_by(number, content, sha, ("ValueError", message)))


def label(services: Services, number: int, name: str = "reproduced") -> tuple[Decision, ...]:
    event = events.IssueLabeled(sender=MIA, repository=REPOSITORY, issue=issue(number=number), label=name)
    return tuple(item for item in decide(event, services) if item.kind == "duplicates")


def snapshot(old: bytes = CODE, new: bytes = CODE) -> Any:
    checkouts = {OLD: {**NO_PLUGINS, "app.py": old}, NEW: {**NO_PLUGINS, "app.py": new}}
    return builders.snapshot(
        issues={number: issue(number=number) for number in (ROOT, NEWER)}, checkouts=checkouts
    )


ON = "duplicates: {mode: comment, suggest_above: 90}\nreproduce: {mode: comment}"


def test_whichever_test_comes_last_the_newer_issue_gets_the_evidence(history: WithNewest, services: Build) -> None:
    ready = services(ScriptedModel(), snapshot(), ON, sandbox=Bubblewrap())
    draft(history, NEWER, NEW)
    assert label(ready, NEWER) == (), "the other issue has no test yet"
    draft(history, ROOT, OLD)
    (compared,) = label(ready, ROOT)
    assert (compared.subject.number, compared.verdict) == (NEWER, "same failure")
    (comment,) = compared.actions
    assert (comment.task, comment.number, comment.only_edit) == ("triage", NEWER, True)
    evidence = (
        "The drafted tests of both issues fail in the same way, on bbbbbbb and on aaaaaaa: `ValueError: no data`."
    )
    assert comment.body == f"Which version?\n\n{SENTENCE} {evidence}\n\nI'm a bot."
    assert [(run.issue, run.sha, run.state) for run in compared.record.runs] == [
        (NEWER, OLD, "fails"),
        (ROOT, NEW, "fails"),
    ]
    history.past.append(compared)
    assert label(ready, ROOT) == (), "the same tests are not run again"


@pytest.mark.parametrize(
    ("old", "message"),
    [(b"def load():\n    pass\n", "no data"), (CODE, "another message")],
    ids=["passes on the other commit", "fails in another way"],
)
def test_another_failure_is_recorded_and_not_shown(
    history: WithNewest, services: Build, old: bytes, message: str
) -> None:
    draft(history, NEWER, NEW)
    draft(history, ROOT, OLD, message=message)
    (compared,) = label(services(ScriptedModel(), snapshot(old), ON, sandbox=Bubblewrap()), NEWER)
    assert (compared.verdict, compared.actions) == ("other failure", ())
    assert (compared.record.same_failure, compared.record.suggestion) == ("", SENTENCE)


@pytest.mark.parametrize(
    ("config", "name", "sandbox"),
    [
        (ON, "reproduced", None),
        (ON, "bug", Bubblewrap()),
        (ON.replace("reproduce: {mode: comment}", ""), "reproduced", Bubblewrap()),
        ("duplicates: {mode: 'off'}\nreproduce: {mode: comment}", "reproduced", Bubblewrap()),
    ],
    ids=["no sandbox", "another label", "no consent", "off"],
)
def test_nothing_is_run_without_consent(
    history: WithNewest, services: Build, config: str, name: str, sandbox: Bubblewrap | None
) -> None:
    draft(history, NEWER, NEW)
    draft(history, ROOT, OLD)
    assert label(services(ScriptedModel(), snapshot(), config, sandbox=sandbox), NEWER, name) == ()


def test_a_paused_issue_is_left_alone(history: WithNewest, services: Build) -> None:
    draft(history, NEWER, NEW)
    draft(history, ROOT, OLD)
    history.past.append(decision(NEWER, "commands", CommandsRecord(done=("pause",), by="mia", at=1.0)))
    assert label(services(ScriptedModel(), snapshot(), ON, sandbox=Bubblewrap()), NEWER) == ()


def test_a_sandbox_that_fails_leaves_the_suggestion_alone(history: WithNewest, services: Build) -> None:
    draft(history, NEWER, NEW)
    draft(history, ROOT, "c" * 40)
    without_old = builders.snapshot(missing=(f"checkouts {'c' * 40}",), checkouts={NEW: NO_PLUGINS})
    (compared,) = label(services(ScriptedModel(), without_old, ON, sandbox=Bubblewrap()), NEWER)
    assert (compared.abstained, compared.actions) == ("sandbox", ())
    assert compared.record.root == ROOT
