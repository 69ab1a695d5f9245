"""The tests that a pull request adds are run without and with its change: really executed, in the sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.code.change.diff import parse
from bot.core.actions import Decision
from bot.features.verify.runs import _targets
from bot.github.offline import Snapshot
from bot.github.protocol import IssueLink, PullDiff
from bot.reproduction.protocol import TestCommand
from bot.router import decide
from bot.sandbox.bubblewrap import Bubblewrap
from tests import builders
from tests.bot.features.conftest import Build, check_of
from tests.bot.features.test_verify_run import BAD, GOOD
from tests.builders import BASE, HEAD, NO_PLUGINS, diff_of, issue, pull
from tests.scripted import ScriptedModel

pytestmark = pytest.mark.usefixtures("remembered_runs")

CONFIG = "verify: {tests: true}\nreproduce: {command: 'python -m pytest -q {tests}'}"
Files = dict[str, str]

BEFORE = {"rocket.py": "def half(x):\n    return x // 2\n", "test_rocket.py": "import rocket\n"}
FIX = {"rocket.py": "def half(x):\n    return x / 2\n"}
ODD = "\n\ndef test_odd():\n    assert rocket.half(3) == 1.5\n"
#: The fix with a test that shows it.
SHOWN = {**FIX, "test_rocket.py": f"import rocket\n{ODD}"}
EVEN = "\n\ndef test_even():\n    assert rocket.half(4) == 2\n"
WRONG = "\n\nclass TestHalf:\n    def test_wrong(self):\n        assert rocket.half(4) == 3\n"
CASES = (
    "import pytest\n\nimport rocket\n\n\n@pytest.mark.parametrize('x', [2, 3])\n"
    "def test_cases(x):\n    assert rocket.half(x) * 2 == x\n"
)


def snapshot(changed: Files, links: tuple[int, ...] = (12,), base: Files = BEFORE, **values: Any) -> Snapshot:
    """A pull request that changes these files, for issue 12."""
    here = {path: text.encode() for path, text in {**BEFORE, **changed}.items() if text}
    return builders.snapshot(
        issues={12: issue(number=12)},
        pull_requests={20: pull(base_sha=BASE, **values)},
        diffs={20: PullDiff(text=diff_of(BEFORE, changed))},
        linked_issues={20: tuple(IssueLink(repository="acme/rocket", number=number) for number in links)},
        checkouts={
            BASE: NO_PLUGINS | {path: text.encode() for path, text in base.items()},
            HEAD: NO_PLUGINS | here,
        },
    )


def verify(services: Build, state: Snapshot, *answers: Any, config: str = CONFIG) -> Decision:
    built = services(ScriptedModel(answers or [GOOD]), state, config, sandbox=Bubblewrap())
    event = builders.event(builders.events.PullRequestOpened, state.pull_requests[20])
    (decision,) = decide(event, built, only="verify")
    return decision


@pytest.mark.debian("bubblewrap")
@pytest.mark.parametrize(
    ("added", "sentence", "lines"),
    [
        (
            ODD + EVEN,
            "1 of 2 new tests passes without the change: it does not show the fix",
            [
                "- `test_rocket.py::test_odd`: failed without the change, passed with it",
                "- `test_rocket.py::test_even`: passed without the change, passed with it",
            ],
        ),
        (
            ODD + WRONG,
            "1 of 2 new tests fails with the change",
            ["- `test_rocket.py::TestHalf::test_wrong`: failed without the change, failed with it"],
        ),
    ],
)
def test_new_tests_are_compared(services: Build, added: str, sentence: str, lines: list[str]) -> None:
    check = check_of(verify(services, snapshot({**FIX, "test_rocket.py": f"import rocket\n{added}"})))
    assert (check.conclusion, check.title) == ("success", f"Appears to solve #12; {sentence}")
    assert all(line in check.summary for line in lines)
    assert f"### Tests\n\n{sentence[0].upper()}{sentence[1:]}.\n" in check.summary


@pytest.mark.debian("bubblewrap")
def test_parameters_count_as_one_test_and_new_names_are_loaded_after(services: Build) -> None:
    changed = {
        **FIX,
        "test_rocket.py": CASES,
        "test_new.py": "import engine\n\n\ndef test_it():\n    engine.go()\n",
    }
    state = snapshot({**changed, "engine.py": "def go():\n    pass\n"})
    check = check_of(verify(services, state))
    assert check.title == "Appears to solve #12; the new tests fail before the change and pass after it"
    assert "- `test_rocket.py::test_cases`: failed without the change, passed with it" in check.summary
    assert "- `test_new.py::test_it`: cannot be loaded without the change, passed with it" in check.summary


@pytest.mark.debian("bubblewrap")
@pytest.mark.parametrize(
    ("path", "command", "text", "name"),
    [
        (
            "src/test/java/a/HalfTest.java",
            "mvn test",
            "package a;\nclass HalfTest {\n@Nested\nclass Odd {\n@Test\nvoid works() {}\n}\n}\n",
            "a.HalfTest$Odd::works",
        ),
        ("test_a.py", "pytest", "def test_outer():\n    def test_inner():\n        pass\n", "test_outer"),
    ],
)
def test_nested_tests_are_named_as_runners_take_them(
    tmp_path: Path, path: str, command: str, text: str, name: str
) -> None:
    place = tmp_path / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    targets = _targets(parse(diff_of({}, {path: text})).files, tmp_path, TestCommand.parse(command))
    assert [target.name for target in targets] == [name]


def test_changed_lines_outside_of_a_test_have_the_file_run(services: Build) -> None:
    data = f"import rocket\n\nX, HALF = 3, 1.5\n{ODD.replace('(3)', '(X)')}".replace("== 1.5", "== HALF")
    old = {**BEFORE, "test_rocket.py": data.replace("3, 1.5", "4, 2")}
    changed = {**FIX, "test_rocket.py": data}
    state = snapshot(changed).model_copy(update={"diffs": {20: PullDiff(text=diff_of(old, changed))}})
    assert (
        "- `test_rocket.py`: failed without the change, passed with it"
        in check_of(verify(services, state)).summary
    )


@pytest.mark.debian("bubblewrap")
def test_the_merge_base_is_run_and_not_the_base_branch(services: Build) -> None:
    moved_on = {**BEFORE, **FIX}  # the base branch has the fix by now
    state = snapshot(SHOWN, base=moved_on)
    assert "failed without the change, passed with it" in check_of(verify(services, state)).summary


SUBMODULE = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-Subproject commit {1}\n+Subproject commit {2}\n"
OF_LIBRARY = "import lib.core\n\n\ndef test_lib():\n    assert lib.core.X\n"


@pytest.mark.debian("bubblewrap")
@pytest.mark.parametrize(
    ("submodule", "changed", "text"),
    [
        ("lib", SHOWN, "The new test fails before the change and passes after it."),
        (
            "tests/lib",
            {**SHOWN, "test_lib.py": OF_LIBRARY},
            "Not run: a new test does not pass, and the submodule tests/lib, which changes, is not checked out.",
        ),
        (
            "lib",
            {"test_lib.py": OF_LIBRARY},
            "Not run: the code changes in submodules alone (lib), which are not checked out.",
        ),
    ],
)
def test_a_changed_submodule_matters_only_to_tests_that_need_it(
    services: Build, submodule: str, changed: Files, text: str
) -> None:
    state = snapshot(changed)
    diff = PullDiff(text=state.diffs[20].text + SUBMODULE.format(submodule, "a" * 40, "b" * 40))
    check = check_of(verify(services, state.model_copy(update={"diffs": {20: diff}})))
    assert f"### Tests\n\n{text}" in check.summary


@pytest.mark.debian("bubblewrap")
def test_tests_lift_no_verdict(services: Build) -> None:
    solving = verify(services, snapshot(SHOWN), BAD)
    assert check_of(solving).title.startswith("Probably doesn't solve #12; the new test fails before")
    assert (check_of(solving).conclusion, solving.record.bounced) == ("neutral", True)


@pytest.mark.debian("bubblewrap")
def test_without_an_issue_the_evidence_is_shown_and_no_model_asked(services: Build) -> None:
    decision = verify(services, snapshot(SHOWN, ()))
    assert (check_of(decision).conclusion, decision.abstained, decision.usage.calls) == ("skipped", "no-issue", 0)
    assert check_of(decision).title == (
        "Not judged: no linked issue; the new test fails before the change and passes after it"
    )


@pytest.mark.parametrize(
    ("changed", "values", "text"),
    [
        (FIX, {}, "No test was added."),
        ({**FIX, "test_rocket.py": ""}, {}, "No test was added."),
        ({**FIX, "tests/data.json": "{}\n", "tests/conftest.py": "A = 1\n"}, {}, "No test was added."),
        ({"test_rocket.py": f"import rocket\n{ODD}"}, {}, "Not run: the pull request changes nothing but tests."),
        (
            SHOWN,
            {"head_repository": "ann/rocket"},
            "Not run: this is a fork's code; a maintainer who has read it can comment "
            f"`/bouncer verify --run {HEAD}`.",
        ),
        (
            {**FIX, "web/app.test.ts": "it('runs', () => 1)\n"},
            {},
            "Not run: the test command does not run such files.",
        ),
        ({**FIX, "../test_up.py": "def test_up(): pass\n"}, {}, "Not run: "),
    ],
)
def test_what_is_not_run_is_said(services: Build, changed: Files, values: dict[str, Any], text: str) -> None:
    state = snapshot(changed, **values)
    head = {path: content for path, content in state.checkouts[HEAD].items() if ".." not in path}
    state = state.model_copy(update={"checkouts": {**state.checkouts, HEAD: head}})
    check = check_of(verify(services, state))
    assert f"### Tests\n\n{text}" in check.summary
    assert check.title.startswith("Appears to solve #12 (not executed)")


def test_nothing_is_run_unless_the_repository_says_so(services: Build) -> None:
    decision = verify(services, snapshot(SHOWN), config="")
    assert decision.record.new_tests is None
