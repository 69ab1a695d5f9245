"""Reproducing reports with scripted drafts that are run in a real sandbox."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bot.core.errors import BudgetExceeded, ModelError
from bot.models.prompts import Prompts
from bot.models.protocol import Prompt
from bot.reproduction.execution import SandboxHarness
from bot.reproduction.protocol import Author, Options, Reproduction, TestCommand
from bot.reproduction.report import parse_report
from bot.sandbox.protocol import ProgramResult, ProgramRun, Sandbox
from evaluation.brt.drafting import PRESETS
from tests.scripted import Line, ScriptedModel

from .conftest import REPORT

pytestmark = [pytest.mark.debian("bubblewrap"), pytest.mark.usefixtures("remembered_runs")]

RIGHT = "from shapes.lists import split\n\ndef test_rest():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
SHORTER = "from shapes.lists import split\n\ndef test_r():\n    assert split([1], 2) == [[1]]\n"
WRONG_CALL = "from shapes.lists import split\n\ndef test_rest():\n    assert split([1, 2, 3]) == [[1, 2], [3]]\n"
PASSING = "from shapes.area import area\n\ndef test_area_again():\n    assert area(2, 2) == 4\n"
SHOWS_THE_BUG = "from shapes.lists import split\n\ndef test_rest():\n    assert split([1, 2, 3], 2) == [[1, 2]]\n"
BROKEN = "from shapes.lists import split\n\ndef test_rest(:\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
NO_SUCH_MODULE = "from shapes.pieces import split\n\ndef test_rest():\n    assert split([1, 2, 3], 2)\n"
EVERY_OTHER_TIME = """\
import os
from shapes.lists import split

def test_rest():
    assert int(os.environ["RUN"]) % 2 or split([1, 2, 3], 2) == [[1, 2], [3]]
"""


Edits = Sequence[dict[str, str]]


def unittest_of(draft: str) -> str:
    """Return a test of one assertion as one for unittest, which starts in a third of pytest's time."""
    imports, _, test = draft.partition("\n\ndef ")
    name, _, assertion = test.partition("():\n    assert ")
    left, _, right = assertion.strip().partition(" == ")
    return (
        f"import unittest\n{imports}\n\nclass TestRest(unittest.TestCase):\n"
        f"    def {name}(self):\n        self.assertEqual({left}, {right or True})\n"
    )


@pytest.fixture
def quick(project: Path, harness: SandboxHarness) -> SandboxHarness:
    """Return a harness that runs the project's tests with unittest."""
    existing = project / "tests/test_lists.py"
    existing.write_text(unittest_of(existing.read_text().replace("\n\n\n", "\n\n")))
    return replace(harness, command=TestCommand(argv=(sys.executable, "-m", "unittest", "-q", "{tests}")))


class CountingSandbox:
    """The real sandbox; passes the number of the run in the environment."""

    name = "watched"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.host_programs = sandbox.host_programs
        self.runs = 0

    def run(self, program: ProgramRun) -> ProgramResult:
        env = {**program.env, "RUN": str(self.runs)}
        self.runs += 1
        return self._sandbox.run(replace(program, env=env))


def scripted(
    drafts: Sequence[Line], repairs: Sequence[Line] = (), pick: int | None = None, edits: Sequence[Edits] = ()
) -> ScriptedModel:
    """Return a model that gives draft n to sample n, repairs in order, patch n, and chooses ``pick``."""
    mended = iter(repairs)

    def line(prompt: Prompt) -> Line:
        if prompt.purpose == "reproduce-patch":
            return {"plan": "", "edits": edits[prompt.sample] if prompt.sample < len(edits) else []}
        if prompt.purpose == "reproduce-pick":
            return {"reasons": "", "choice": pick}
        reply = drafts[prompt.sample] if prompt.purpose == "reproduce" else next(mended)
        return {"plan": "", "code": reply} if isinstance(reply, str) else reply

    return ScriptedModel(line)


def run(project: Path, harness: SandboxHarness, model: ScriptedModel, **options: object) -> Reproduction:
    report = parse_report(REPORT).model_copy(update={"number": 12})
    all_options = Options.model_validate({"samples": 1, "probe": False, **options})
    before = contents(project)
    result = harness.reproduce(project, report, Author(model, Prompts(), "acme/shapes#12"), all_options)
    assert contents(project) == before, "the project is not changed"
    return result


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_drafts_that_fail_as_reported_are_shown(project: Path, harness: SandboxHarness) -> None:
    drafts = [RIGHT, WRONG_CALL, RIGHT.replace("test_rest", "test_x"), PASSING, SHORTER]

    result = run(project, harness, scripted(drafts, repairs=[WRONG_CALL]), samples=5)

    assert result.state == "reproduced"
    best = result.best
    assert best is not None
    assert best.candidate.path == "tests/test_lists.py"
    assert best.candidate.name == "test_issue_12"
    assert best.candidate.content.endswith(
        "\n\n\ndef test_issue_12():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
    )
    assert best.agreeing == 2
    assert best.outcome.exception_type == "AssertionError"
    assert best.command.endswith("tests/test_lists.py::test_issue_12")
    assert [test.candidate.number for test in result.tests] == [0, 4]
    why = {attempt.number: (attempt.fate, attempt.why) for attempt in result.attempts}
    assert why[1] == ("failed", "fails with TypeError, which is not what the report tells of")
    assert why[3] == ("passed", "passes on the present code")
    assert result.usage.calls == 8, "5 drafts, a repair that changes nothing, and 2 drafted repairs of the bug"
    assert result.sandbox == "bubblewrap"


def test_a_draft_is_repaired_three_times_with_its_output(project: Path, harness: SandboxHarness) -> None:
    model = scripted([BROKEN], repairs=[NO_SUCH_MODULE, WRONG_CALL, RIGHT])

    result = run(project, harness, model)

    repairs = [prompt.user for prompt in model.asked if prompt.purpose == "reproduce-repair"]
    assert "it does not parse: line 3" in repairs[0]
    assert "No module named 'shapes.pieces'" in repairs[1]
    assert "it fails with TypeError, not for the reason that is reported" in repairs[2]
    assert "missing 1 required positional argument" in repairs[2]
    assert result.state == "reproduced"
    assert [(attempt.fate, attempt.repaired) for attempt in result.attempts] == [("failed", True)]
    given_up = scripted([BROKEN], repairs=[NO_SUCH_MODULE, BROKEN.replace("rest", "x"), BROKEN, RIGHT])
    result = run(project, harness, given_up)
    assert result.state == "not reproduced"
    assert [(attempt.fate, attempt.repaired) for attempt in result.attempts] == [("unusable", True)]


def test_drafts_see_the_report_its_example_and_the_expected_result(project: Path, harness: SandboxHarness) -> None:
    model = scripted([RIGHT] * 4)

    run(project, harness, model, samples=4)

    prompts = sorted(model.asked, key=lambda prompt: prompt.sample)
    whole, example, expected, again = (prompt.user.partition("Now the report")[2] for prompt in prompts)
    assert whole == again
    assert all("split drops the rest" in part for part in (whole, example, expected))
    assert "from `shapes.lists` returns" in example
    assert "I expect" not in example
    assert "I expect" in expected
    assert "returns" not in expected.partition("folders")[0]


#: A repair of the bug, one of a test, one that fits nowhere, and one that changes nothing that matters.
REPAIR = {"path": "shapes/lists.py", "old": "range(len(items) // size)", "new": "range(-(-len(items) // size))"}
OF_A_TEST = {"path": "tests/test_lists.py", "old": "def test_split_even():", "new": "def test_x():"}
ELSEWHERE = {"path": "../shapes.py", "old": "x", "new": "y"}
GREEDY = RIGHT.replace("[3]]", "[3, None]]")


@pytest.mark.parametrize(
    ("edits", "order", "repairs"),
    [
        ([[REPAIR, OF_A_TEST], [REPAIR], [REPAIR]], [2, 0], [2, 0]),
        ([[OF_A_TEST], [ELSEWHERE], []], [0, 2], [0, 0]),
    ],
)
def test_a_test_that_passes_with_a_drafted_repair_ranks_first(
    project: Path, quick: SandboxHarness, edits: list[Edits], order: list[int], repairs: list[int]
) -> None:
    drafts = [unittest_of(draft) for draft in (GREEDY, GREEDY, RIGHT)]
    result = run(project, quick, scripted(drafts, edits=edits), samples=3, patches=3)

    assert [test.candidate.number for test in result.tests] == order
    assert [test.repairs for test in result.tests] == repairs


def test_libro_asks_for_drafts_and_nothing_else(project: Path, quick: SandboxHarness) -> None:
    model = scripted([BROKEN, *(unittest_of(draft) for draft in (GREEDY, RIGHT, WRONG_CALL, PASSING))])
    options = {**PRESETS["libro"].model_dump(), "samples": 5, "threshold": 1}

    run(project, quick, model, **options)

    assert [prompt.purpose for prompt in model.asked] == ["reproduce"] * 5
    assert len({(prompt.system, prompt.user) for prompt in model.asked}) == 1


def test_the_prompt_shows_the_code_and_how_its_tests_are_run(project: Path, harness: SandboxHarness) -> None:
    conftest = "import pytest\n\n\n@pytest.fixture\ndef pair():\n    return [1, 2]\n"
    (project / "tests/conftest.py").write_text(conftest)
    model = scripted([BROKEN], repairs=[RIGHT])
    run(project, harness, model)
    for question in (prompt.user for prompt in model.asked):
        assert "The test is added to the test file `tests/test_lists.py`" in question
        assert question.count("def test_split_even():\n    assert split([1, 2, 3, 4], 2) == [[1, 2], [3, 4]]") == 1
        assert "@pytest.fixture\ndef pair():\n    return [1, 2]" in question
        assert "-m pytest -q -p no:cacheprovider" in question
        assert f"Python {platform.python_version()} on Linux" in question
        assert "pytest" in question.partition("can be imported: ")[2].split(".")[0]
    draft = model.asked[0]
    assert draft.temperature == 0.7
    assert "split drops the rest" in draft.user
    assert "tests/ (3 files)" in draft.user
    assert "return [items[i * size : (i + 1) * size]" in draft.user
    assert "def area" not in draft.user
    assert draft.user.count("The test that reproduced it") == 2


@pytest.mark.parametrize(
    ("at_fault", "word", "message"),
    [
        (
            "the environment",
            "environment",
            "the environment that tests run in is at fault, not the report: No db.",
        ),
        (
            "the interface",
            "interface",
            "the report does not determine the interface that a test would have to call",
        ),
    ],
)
def test_a_model_can_report_that_no_test_can_be_written(
    project: Path, quick: SandboxHarness, at_fault: str, word: str, message: str
) -> None:
    given_up: Line = {"plan": "No db.", "at_fault": at_fault, "code": ""}
    model = scripted([unittest_of(NO_SUCH_MODULE), BROKEN], repairs=[given_up, given_up])
    result = run(project, quick, model, samples=2)
    assert (result.state, result.abstained) == ("not run", word)
    assert result.reason.startswith(message)


def test_a_fault_counts_for_drafts_that_fail_for_another_reason(project: Path, quick: SandboxHarness) -> None:
    given_up: Line = {"plan": "No db.", "at_fault": "the environment", "code": ""}
    fails = "import unittest\n\nclass T(unittest.TestCase):\n    def test(self):\n        raise ConnectionError\n"
    result = run(project, quick, scripted([fails] * 2, repairs=[given_up] * 2), samples=2)
    assert (result.state, result.abstained) == ("not run", "environment")
    assert {attempt.why for attempt in result.attempts} == {result.reason}


def test_an_empty_repair_is_none(project: Path, quick: SandboxHarness) -> None:
    model = scripted([unittest_of(NO_SUCH_MODULE)], repairs=[{"plan": "", "at_fault": "the test", "code": " "}])
    result = run(project, quick, model)
    assert [prompt.purpose for prompt in model.asked] == ["reproduce", "reproduce-repair"]
    assert "No module named 'shapes.pieces'" in result.attempts[0].why


def test_one_of_two_refusals_is_no_majority(project: Path, quick: SandboxHarness) -> None:
    given_up: Line = {"plan": "No db.", "at_fault": "the environment", "code": ""}
    model = scripted([unittest_of(NO_SUCH_MODULE), BROKEN], repairs=[given_up, unittest_of(RIGHT)])
    result = run(project, quick, model, samples=2)
    assert (result.state, result.abstained) == ("reproduced", "")


def test_a_passing_draft_that_shows_the_bug_is_inverted(project: Path, harness: SandboxHarness) -> None:
    result = run(project, harness, scripted([SHOWS_THE_BUG]))

    assert result.best is not None
    assert next(attempt for attempt in result.attempts if attempt.candidate == result.best.candidate).inverted
    assert "assert split([1, 2, 3], 2) != [[1, 2]]" in result.best.candidate.code


def test_garbage_leads_to_an_abstention(project: Path, harness: SandboxHarness) -> None:
    garbage = ["I am sorry.", "", "def test_x():", "\x00", "class Test:\n    pass\n"]

    result = run(project, harness, scripted(garbage, repairs=3 * garbage), samples=5)

    assert result.state == "not reproduced"
    assert result.reason == "no draft became a test that can be run"
    assert {attempt.fate for attempt in result.attempts} == {"unusable"}


def test_the_state_says_that_no_test_can_be_run(project: Path, harness: SandboxHarness) -> None:
    broken = replace(harness, command=TestCommand.parse("no-such-runner {tests}"))

    result = run(project, broken, scripted([RIGHT], repairs=[RIGHT]), probe=True)

    assert result.state == "not run"
    assert result.reason.startswith("tests cannot be run here")
    assert "no-such-runner" in result.reason


def test_a_flaky_test_is_not_shown(project: Path, harness: SandboxHarness) -> None:
    sandbox = CountingSandbox(harness.sandbox)

    result = run(
        project, replace(harness, sandbox=sandbox), scripted([EVERY_OTHER_TIME] * 3), samples=3, probe=True
    )

    # The machine is described, an existing test is run, and equal drafts are run twice in all.
    assert sandbox.runs == 4
    assert result.attempts[0].flaky
    assert result.attempts[0].why == "flaky: it failed in one of two runs only"
    assert result.state == "not reproduced"


def test_the_model_chooses_among_the_tests_if_configured(project: Path, quick: SandboxHarness) -> None:
    drafts = [unittest_of(draft) for draft in (RIGHT, SHORTER)]
    result = run(project, quick, scripted(drafts, pick=2), samples=2, pick=True)
    refused = run(project, quick, scripted(drafts, pick=0), samples=2, pick=True)

    assert [test.candidate.number for test in result.tests] == [1, 0]
    assert refused.state == "not reproduced"
    assert "found every one wrong" in refused.reason


def test_a_spent_budget_without_a_test_raises_an_error(project: Path, quick: SandboxHarness) -> None:
    with pytest.raises(BudgetExceeded) as raised:
        run(project, quick, scripted([unittest_of(PASSING), BudgetExceeded("spent")]), samples=2)
    drafts = [ModelError("refused", reason="refused"), unittest_of(RIGHT), BudgetExceeded("spent")]
    result = run(project, quick, scripted(drafts), samples=3)

    assert raised.value.usage is not None
    assert raised.value.usage.calls == 1
    assert result.state == "reproduced"
    assert [attempt.number for attempt in result.attempts] == [1]
    assert (result.drafts, result.failures) == (1, ("refused", "budget"))
