"""A stored reproducing test speaks about a patch: really executed, in the sandbox."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core import events
from bot.core.actions import Decision, UpsertComment
from bot.core.subjects import Subject
from bot.features.commands.record import CommandsRecord
from bot.features.services import Services
from bot.features.verify.record import ExecutedTest, PullContent, VerifyRecord
from bot.features.verify.texts import CHECK
from bot.github.offline import Snapshot
from bot.github.protocol import IssueLink, PullDiff
from bot.reproduction.setup import SandboxHarnesses
from bot.router import decide
from bot.sandbox.bubblewrap import Bubblewrap
from tests import builders
from tests.attacks.corpus import cases
from tests.attacks.test_changes import RUNS
from tests.bot.features.conftest import NO_ENVIRONMENTS, Build, Remembered, check_of, reproduced_by
from tests.builders import BASE, HEAD, MIA, NO_PLUGINS, REPOSITORY, comment_on_pull, issue, pull, pull_opened
from tests.scripted import ScriptedModel

pytestmark = [pytest.mark.debian("bubblewrap"), pytest.mark.usefixtures("remembered_runs")]

GOOD: dict[str, Any] = {"explanation": "Reads well.", "p_bounce": 4, "label": "CORRECT_AND_PRECISE"}
BAD: dict[str, Any] = {"explanation": "Looks wrong.", "p_bounce": 90, "label": "INCORRECT"}
TEST = "from rocket import half\n\n\ndef test_issue_12():\n    assert half(3) == 1.5\n"
BROKEN, FIXED = b"def half(x):\n    return x // 2\n", b"def half(x):\n    return x / 2\n"


def snapshot(head: bytes, **values: Any) -> Snapshot:
    """The pull request (``values`` are its fields), its issue, and the code before and after it."""
    return builders.snapshot(
        issues={12: issue(number=12)},
        pull_requests={20: pull(base_sha=BASE, **values)},
        diffs={20: PullDiff(text="--- a/rocket.py\n+++ b/rocket.py\n@@ -2 +2 @@\n-    return 1\n+    return 2\n")},
        linked_issues={20: (IssueLink(repository="acme/rocket", number=12),)},
        pulls_for_issue={12: (20,)},
        checkouts={BASE: NO_PLUGINS | {"rocket.py": BROKEN}, HEAD: NO_PLUGINS | {"rocket.py": head}},
    )


@pytest.fixture
def reproduced(history: Remembered) -> Remembered:
    """The issue has a test that reproduced it."""
    history.past.append(reproduced_by(12, TEST, BASE))
    return history


def verify(services: Services, event: events.Event | None = None) -> Decision:
    (decision,) = decide(
        event or pull_opened(base_sha=BASE),
        replace(services, harnesses=SandboxHarnesses(Bubblewrap(), NO_ENVIRONMENTS)),
        only="verify",
    )
    return decision


EXECUTE = "verify: {execute: true}"


@pytest.mark.usefixtures("reproduced")
def test_a_pass_is_shown_beside_the_verdict(services: Build) -> None:
    check = check_of(verify(services(ScriptedModel([GOOD]), snapshot(FIXED), EXECUTE)))
    assert (check.conclusion, check.title) == (
        "success",
        "Appears to solve #12; its reproducing test passes here",
    )
    assert (
        "Test `test_issue.py::test_issue_12`: failed on base, passed on head.\nThe pass proves nothing by itself"
        in check.summary
    )
    assert "assert 1 == 1.5" in check.summary


FORGED = """\
import os

with open(".bouncer-junit.xml", "w") as report:
    report.write('<testsuite><testcase classname="test_issue" name="test_issue_12"/></testsuite>')
print("1 passed in 0.01s", flush=True)
os._exit(0)
"""


@pytest.mark.usefixtures("reproduced")
@pytest.mark.parametrize("files", [{"rocket.py": FIXED}, {"rocket.py": BROKEN, "conftest.py": FORGED.encode()}])
def test_no_pass_lifts_a_verdict_or_opens_the_gate(services: Build, files: dict[str, bytes]) -> None:
    state = snapshot(BROKEN)
    state = state.model_copy(update={"checkouts": {**state.checkouts, HEAD: NO_PLUGINS | files}})
    decision = verify(services(ScriptedModel([BAD]), state, "verify: {execute: true, gate: true}"))
    check = check_of(decision)
    assert (check.conclusion, check.title) == ("failure", "Probably doesn't solve #12")
    assert decision.record.bounced
    assert decision.record.as_json()["runs"][0]["head"] == "passed"  # the forgery did its worst
    assert "The pass proves nothing by itself" in check.summary


def rival(history: Remembered, head: str, number: int = 21) -> None:
    """Add the decision about another pull request for the issue, on whose head the test has this outcome."""
    run = ExecutedTest(
        issue=12, test="test_issue.py::test_issue_12", command="pytest", base="failed", head=head, solved=None
    )
    subject = Subject(repository="acme/rocket", number=number, revision=f"sha:{BASE}")
    history.past.append(Decision(kind="verify", subject=subject, record=VerifyRecord(runs=(run,))))


def competing(head: bytes, *pulls: int) -> Snapshot:
    recorded = {"pulls_for_issue": {12: (20, *pulls)}, "check_runs": {f"{HEAD}:{CHECK}": ()}}
    return snapshot(head).model_copy(update=recorded)


def test_other_pull_requests_for_the_issue_are_compared(services: Build, reproduced: Remembered) -> None:
    rival(reproduced, "failed")
    decision = verify(services(ScriptedModel([GOOD]), competing(FIXED, 21, 22), EXECUTE))
    check = check_of(decision)
    assert check.title == "Appears to solve #12; its reproducing test: passes here, still fails on #21"
    assert (
        "Open pull requests for #12: the test passes here, still fails on #21, was not run on #22."
        in check.summary
    )
    assert decision.affects == (21, 22)


def test_a_check_is_renewed_when_another_pull_request_was_run(services: Build, reproduced: Remembered) -> None:
    built = services(ScriptedModel([GOOD]), competing(FIXED, 21), EXECUTE)
    first = verify(built)
    reproduced.past.append(first)
    changed = events.LinkedIssueChanged(sender=MIA, repository=REPOSITORY, pull=20, task="verify")
    assert decide(changed, built) == (), "nothing is new"
    rival(reproduced, "passed")
    (renewed,) = decide(changed, built)
    check = check_of(renewed)
    assert check.title == "Appears to solve #12; its reproducing test: passes here, passes on #21"
    assert (renewed.verdict, renewed.affects, renewed.usage.calls) == (None, (), 0)
    assert check.summary.partition("Open pull")[0] == check_of(first).summary.partition("Open pull")[0]
    reproduced.past.append(renewed)
    assert decide(changed, built) == ()
    # A push has a verdict of its own to come.
    rival(reproduced, "failed")
    pushed = competing(FIXED, 21).model_copy(
        update={"pull_requests": {20: pull(base_sha=BASE, head_sha="c" * 40)}}
    )
    assert decide(changed, services(ScriptedModel(), pushed, EXECUTE)) == ()


def test_a_skipped_pull_request_keeps_its_outcome_and_rivals(services: Build, reproduced: Remembered) -> None:
    built = services(ScriptedModel([GOOD, GOOD]), competing(FIXED, 21), EXECUTE)
    rival(reproduced, "failed")
    first = verify(built)
    compared = first.record.model_copy(update={"content": PullContent(closes=(12,))})
    reproduced.past.append(first.model_copy(update={"record": compared}))
    pause = CommandsRecord(done=("pause",))
    subject = Subject(repository="acme/rocket", number=20, revision=f"sha:{HEAD}")
    reproduced.past.append(Decision(kind="commands", subject=subject, record=pause))
    skipped = verify(built, builders.event(events.PullRequestEdited, pull(base_sha=BASE, title="Halve")))
    assert (skipped.abstained, check_of(skipped).conclusion) == ("skipped:paused", "skipped")
    reproduced.past.append(skipped)

    # The other one is compared with what was seen here, and is told if this one is closed.
    other = competing(FIXED, 21).model_copy(
        update={
            "pull_requests": {21: pull(number=21, base_sha=BASE)},
            "diffs": {21: built.forge.diff(20)},
            "linked_issues": {21: (IssueLink(repository="acme/rocket", number=12),)},
        }
    )
    event = builders.event(events.PullRequestOpened, pull(number=21, base_sha=BASE))
    title = check_of(verify(services(ScriptedModel([GOOD]), other, EXECUTE), event)).title
    assert title == "Appears to solve #12; its reproducing test: passes here, passes on #20"
    assert verify(built, builders.event(events.PullRequestClosed, pull(state="closed"))).affects == (21,)
    # The check of the paused one stays as it is.
    rival(reproduced, "passed")
    changed = events.LinkedIssueChanged(sender=MIA, repository=REPOSITORY, pull=20, task="verify")
    assert decide(changed, built) == ()


@pytest.mark.usefixtures("reproduced")
def test_fails_on_both_is_evidence_against(services: Build) -> None:
    decision = verify(services(ScriptedModel([GOOD]), snapshot(BROKEN), EXECUTE))
    check = check_of(decision)
    assert check.title == "Probably doesn't solve #12"
    assert "failed on base, failed on head" in check.summary
    assert "proves nothing" not in check.summary
    assert (check.conclusion, decision.record.bounced) == ("neutral", True)


@pytest.mark.usefixtures("reproduced")
def test_a_test_that_cannot_be_run_on_head_says_nothing(services: Build) -> None:
    check = check_of(verify(services(ScriptedModel([GOOD]), snapshot(b"import nothing_here\n"), EXECUTE)))
    assert (check.conclusion, check.title) == (
        "success",
        "Appears to solve #12; its reproducing test is inconclusive",
    )


@pytest.mark.usefixtures("reproduced")
def test_nothing_is_executed_unless_the_repository_says_so(services: Build) -> None:
    assert verify(services(ScriptedModel([GOOD]), snapshot(BROKEN))).record.as_json()["runs"] == []


def test_without_a_stored_test_reading_decides(services: Build) -> None:
    decision = verify(services(ScriptedModel([GOOD]), snapshot(BROKEN), EXECUTE))
    assert decision.record.as_json()["runs"] == []
    assert not decision.record.bounced


@pytest.mark.usefixtures("reproduced")
def test_a_fork_s_code_runs_where_a_maintainer_names_its_commit(services: Build) -> None:
    fork = snapshot(FIXED, head_repository="ann/rocket")
    body = f"/bouncer recheck\n/bouncer verify\n/bouncer verify --run {HEAD.upper()}"
    decision = verify(services(ScriptedModel([GOOD]), fork, EXECUTE), comment_on_pull(body))
    assert decision.record.as_json()["runs"]


@pytest.mark.usefixtures("reproduced")
@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        *((body, True) for _, _, body in cases(RUNS)),
        ("/bouncer recheck\n/bouncer verify --run", True),
        ("/bouncer verify", False),
    ],
)
def test_other_commit_of_a_fork_does_not_run_and_gets_the_command(
    services: Build, body: str, is_told: bool
) -> None:
    fork = snapshot(FIXED, head_repository="ann/rocket")
    decision = verify(services(ScriptedModel([GOOD]), fork, EXECUTE), comment_on_pull(body))
    assert decision.record.as_json()["runs"] == []
    line = (
        f"Not executed, this is a fork's code: read commit aaaaaaa, then comment `/bouncer verify --run {HEAD}`."
    )
    assert (check_of(decision).summary.split("\n")[0] == line) is is_told


@pytest.mark.usefixtures("reproduced")
def test_a_fork_of_a_sha256_repository_runs_by_its_64_digits(services: Build) -> None:
    head = "c" * 64
    fork = snapshot(FIXED, head_repository="ann/rocket", head_sha=head)
    fork = fork.model_copy(update={"checkouts": {**fork.checkouts, head: {"rocket.py": FIXED}}})
    requests = [comment_on_pull(f"/bouncer verify --run {run}") for run in (head, "c" * 40)]
    runs = [
        verify(services(ScriptedModel([GOOD]), fork, EXECUTE), comment).record.as_json()["runs"]
        for comment in requests
    ]
    assert (bool(runs[0]), runs[1]) == (True, [])


@pytest.mark.parametrize(
    ("run", "has_answer"), [("aaaaaaa", True), ("a" * 39, True), (HEAD, False), ("b" * 40, False), ("", False)]
)
def test_a_short_commit_id_is_answered_with_what_to_copy(services: Build, run: str, has_answer: bool) -> None:
    fork = snapshot(FIXED, head_repository="ann/rocket")
    event = comment_on_pull(f"/bouncer verify --run {run}".rstrip())
    (decision,) = decide(event, services(ScriptedModel(), fork), only="commands")
    bodies = [action.body for action in decision.actions if isinstance(action, UpsertComment)]
    expected = (
        "mia: `--run` needs the whole id of a commit. Not executed, this is a fork's code: read commit aaaaaaa, "
        f"then comment `/bouncer verify --run {HEAD}`."
    )
    assert bodies == [expected] * has_answer


@pytest.mark.usefixtures("reproduced")
def test_a_fork_s_code_is_never_executed_by_itself(services: Build) -> None:
    event = pull_opened(base_sha=BASE, head_repository="ann/rocket")
    decision = verify(services(ScriptedModel([GOOD]), snapshot(FIXED), EXECUTE), event)
    assert decision.record.as_json()["runs"] == []
