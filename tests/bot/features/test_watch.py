"""Stored tests on the default branch: the search for a commit, and flaky tests, really executed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from bot.core import events
from bot.core.actions import Decision, UpsertComment
from bot.core.errors import NotFound
from bot.features.reproduce.record import BuildState
from bot.features.services import Services
from bot.features.shared.builds import find_change
from bot.github.offline import Snapshot
from bot.router import decide
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import ProgramResult, ProgramRun
from tests import builders
from tests.bot.features.conftest import Build, Remembered, reproduced_by
from tests.builders import MIA, NO_PLUGINS, REPOSITORY, comment_created, issue
from tests.scripted import ScriptedModel

NAMES = {"p": "passes", "f": "fails", "x": "not run", "?": "flaky"}


@pytest.mark.parametrize(
    ("outcomes", "steps", "commits"),
    [
        ("f", 12, "0"),
        ("pppfffff", 12, "3"),
        ("pppxffff", 12, "34"),  # either of the two
        ("xxxxxxxf", 12, "01234567"),
        ("ppfxffff", 12, "2"),
        ("pppppppf", 1, "4567"),  # the builds are used up
        ("pppfffff", 0, "01234567"),
    ],
)
def test_the_first_bad_commit_is_among_the_answer(outcomes: str, steps: int, commits: str) -> None:
    built: list[str] = []

    def state(commit: str) -> BuildState:
        built.append(commit)
        return NAMES[outcomes[int(commit)]]

    names = [str(number) for number in range(len(outcomes))]
    change = find_change(names, state, after="fails", builds=lambda: len(built) < steps)
    assert "".join(change.commits) == commits
    assert len(built) == len(set(built)) <= steps


def test_a_search_ends_where_the_test_is_flaky() -> None:
    states: dict[str, BuildState] = {"a": "passes", "b": "flaky", "c": "fails"}
    change = find_change(["a", "b", "c"], states.__getitem__, after="fails", builds=lambda: True)
    assert (change.commits, change.flaky) == ((), "b")


TEST = "from pathlib import Path\n\n\ndef test_issue_5():\n    assert int(Path('turn').read_text()) % 2 == 0\n"
OLD, NEW = "a" * 40, "b" * 40


@dataclass
class Turning:
    """A real sandbox in which the code under test can read how many runs there were before."""

    sandbox: Bubblewrap = field(default_factory=Bubblewrap)
    turns: int = 0
    host_programs = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sandbox, name)

    def run(self, program: ProgramRun) -> ProgramResult:
        program = replace(program, files={**program.files, "turn": str(self.turns)})
        self.turns += 1
        return self.sandbox.run(program)


def snapshot(**values: Any) -> Snapshot:
    return builders.snapshot(
        **{
            "issues": {5: issue()},
            "heads": {"main": NEW},
            "commits": {NEW: (NEW, OLD)},
            "tags": {"v1": OLD},
            "checkouts": {OLD: NO_PLUGINS, NEW: NO_PLUGINS},
            **values,
        }
    )


@pytest.fixture
def reproduced(history: Remembered) -> Remembered:
    """The issue has a test that failed a day ago."""
    history.past.append(reproduced_by(5, TEST, OLD, again_days=1))
    return history


DAILY = "reproduce: {mode: comment, watch: daily}"


def next_day(services: Services, since: float = 1.0) -> tuple[Decision, ...]:
    event = events.IssueUnanswered(
        sender=MIA, repository=REPOSITORY, issue=issue(), since=since, days=1, task="reproduce"
    )
    return decide(event, services)


@pytest.mark.debian("bubblewrap")
@pytest.mark.usefixtures("reproduced")
def test_a_flaky_test_is_recognised_and_left_alone(services: Build) -> None:
    (decision,) = next_day(services(ScriptedModel(), snapshot(), DAILY, sandbox=Turning()))
    assert (decision.abstained, decision.actions, decision.again_days) == ("skipped:flaky", (), None)


@pytest.mark.debian("bubblewrap")
@pytest.mark.usefixtures("reproduced")
def test_a_flaky_test_is_not_bisected(services: Build) -> None:
    event = comment_created("/bouncer bisect", MIA)
    (decision,) = decide(event, services(ScriptedModel(), snapshot(), DAILY, sandbox=Turning()), only="watch")
    (comment,) = decision.actions
    assert comment.body == (
        "mia: `test_issue.py::test_issue_5` is flaky: its runs on bbbbbbb differ, so a bisection would name a "
        "wrong commit."
    )


@pytest.mark.usefixtures("reproduced")
@pytest.mark.parametrize(
    ("config", "values", "since", "abstained"),
    [
        ("reproduce: {mode: comment}", {}, 1.0, None),
        ("reproduce: {watch: daily}", {}, 1.0, None),
        ("reproduce: {mode: coment, watch: daily}", {}, 1.0, "skipped:config"),
        ("reproduce: {mode: comment, watch: dayly}", {}, 1.0, "skipped:config"),
        ("reproduce: {mode: comment", {}, 1.0, "skipped:config"),
        ("reproduce: {mode: comment}\ntriage: {mode: coment}", {}, 1.0, None),
        ("reproduce: {mode: coment, watch: daily}", {}, 2.0, None),
        (DAILY, {}, 2.0, None),
        (DAILY, {"issues": {5: issue(state="closed")}}, 1.0, "skipped:closed"),
        (DAILY, {"issues": {5: issue(locked=True)}}, 1.0, "skipped:locked"),
        (DAILY, {"heads": {"main": OLD}}, 1.0, "skipped:unchanged"),
    ],
)
def test_nothing_is_run_unless_it_is_wanted_and_the_branch_moved(
    services: Build, config: str, values: dict[str, Any], since: float, abstained: str | None
) -> None:
    sandbox = Turning()
    decisions = next_day(services(ScriptedModel(), snapshot(**values), config, sandbox=sandbox), since)
    assert [decision.abstained for decision in decisions] == ([abstained] if abstained else [])
    assert sandbox.turns == 0
    if abstained == "skipped:config":
        assert decisions[0].again_days == 1, "the watch goes on when the file is repaired"


@dataclass
class WithoutBranch:
    """A repository whose default branch has another name since the event."""

    forge: Any

    def head(self, ref: str) -> str:
        raise NotFound(f"{ref} was not found", 404)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.forge, name)


@pytest.mark.usefixtures("reproduced")
def test_a_renamed_branch_does_not_end_the_watch(services: Build) -> None:
    tools = services(ScriptedModel(), snapshot(), DAILY, sandbox=Turning())
    (decision,) = next_day(replace(tools, forge=WithoutBranch(tools.forge)), 1.0)
    assert (decision.abstained, decision.again_days) == ("sandbox", 1)
    assert decision.reason == "nothing could be run: main was not found"


@pytest.mark.parametrize(
    ("config", "sandbox", "answer"),
    [
        ("", Turning(), "running tests is switched off here (`reproduce.mode`)."),
        (DAILY, None, "the operator of this bot has switched the sandbox off."),
        (DAILY, Turning(), "there is no drafted test for this issue. `/bouncer reproduce` drafts one."),
    ],
)
def test_a_bisection_that_cannot_be_made_says_why(services: Build, config: str, sandbox: Any, answer: str) -> None:
    event = comment_created("/bouncer bisect", MIA)
    (decision,) = decide(event, services(ScriptedModel(), snapshot(), config, sandbox=sandbox), only="watch")
    assert [action.body for action in decision.actions if isinstance(action, UpsertComment)] == [f"mia: {answer}"]
