"""``bouncer-eval replay brt --candidates``: which tests reproduce the bug, judged by running them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import OperatorError, SandboxError
from bot.reproduction.protocol import TestOutcome, TestReport
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits, ProgramResult, ProgramRun
from evaluation.brt.cases import Candidate, Case, read_candidates, read_cases
from evaluation.brt.judge import Judge, Judgement, added_in, verdict
from tests.evaluation.checkouts import CASE, UNITTEST_CASE, checkouts
from tests.evaluation.running import command, write

pytestmark = pytest.mark.usefixtures("remembered_runs")
debian = pytest.mark.debian("bubblewrap")
BUGGY = "def mean(numbers):\n    return sum(numbers) / len(numbers)\n"
FIXED = "def mean(numbers):\n    return sum(numbers) / len(numbers) if numbers else 0\n"
TESTS = """\
from package import mean

CASES = [([1], 1)]


def test_means():
    for given, wanted in CASES:
        assert mean(given) == wanted


def test_broken_anyway():
    assert mean([1]) == 2
"""
FIXTURE = """\
import pytest
from package import mean


@pytest.fixture
def zero():
    return mean([])


def test_x(zero):
    assert zero == 0
"""
UNITTEST = """\
import unittest
from package import mean


class MeanTest(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(mean([]), 0)
"""
DATA_PATCH = """\
--- a/tests/test_package.py
+++ b/tests/test_package.py
@@ -3 +3 @@
-CASES = [([1], 1)]
+CASES = [([1], 1), ([], 0)]
"""
HEAD = "from package import mean\n\n\n"


@pytest.fixture
def case(tmp_path: Path) -> Case:
    tests = {"tests/test_package.py": TESTS}
    return Case(
        instance_id="mean-1",
        problem_statement="mean([]) divides by zero",
        **checkouts(tmp_path, {"package.py": BUGGY, **tests}, {"package.py": FIXED, **tests}),
        command=tuple(CASE["command"]),
        env=CASE["env"],
    )


@pytest.fixture
def quick(case: Case) -> Case:
    """The case with unittest, which starts in a third of pytest's time."""
    for checkout in (case.base, case.fixed):
        (checkout / "tests" / "__init__.py").touch()
    return case.model_copy(update={"command": tuple(UNITTEST_CASE["command"]), "env": {}})


def judgement_of(case: Case, test: str | None = None, patch: str | None = None) -> Judgement:
    path = None if test is None else "tests/test_new.py"
    candidate = Candidate(instance_id=case.instance_id, candidate_id="c", patch=patch, path=path, content=test)
    return Judge(Bubblewrap(), Limits(seconds=10)).judge(case, candidate)


@debian
def test_a_test_that_fails_before_and_passes_after_reproduces_the_bug(case: Case) -> None:
    judgement = judgement_of(case, HEAD + "def test_empty():\n    assert mean([]) == 0\n")
    assert (judgement.applied, judgement.brt, judgement.tests) == (True, True, ("tests/test_new.py",))
    assert judgement.base is not None
    assert (judgement.base.exception_type, judgement.base.message) == ("ZeroDivisionError", "division by zero")
    assert judgement.reason == (
        "it fails with ZeroDivisionError: division by zero on the buggy version and passes on the fixed one"
    )


@debian
@pytest.mark.parametrize(
    ("test", "base", "fixed", "reason"),
    [
        (
            "def test_x():\n    assert mean([]) == 1\n", "failed", "failed",
            "it fails on the fixed version too: AssertionError: assert 0 == 1",
        ),
        ("def test_x():\n    assert mean([1]) == 1\n", "passed", "passed", "it passes on the buggy version"),
        (
            "import pytest\n\n\ndef test_x():\n    pytest.skip('no')\n", "skipped", "skipped",
            "it is skipped on the buggy version",
        ),
        (
            "import pytest\n\n\ndef test_x():\n    try:\n        mean([])\n    except ZeroDivisionError:\n"
            "        raise\n    pytest.skip('no')\n",
            "failed", "skipped", "it fails on the buggy version but is skipped on the fixed one: no",
        ),
        (
            "from package import median\n\n\ndef test_x():\n    assert median\n", "error", "error",
            "it cannot be loaded on the buggy version: ImportError: cannot import name 'median' from 'package'",
        ),
        (
            "def test_x(:\n", "error", "error",
            "it cannot be loaded on the buggy version: SyntaxError: invalid syntax",
        ),
        (
            "def test_a():\n    assert mean([]) == 0\n\n\ndef test_b():\n    assert mean([1]) == 2\n",
            "failed", "failed",
            "it fails on the fixed version too: AssertionError: assert 1.0 == 2",
        ),
    ],
)  # fmt: skip
def test_what_is_no_reproduction_is_rejected_with_a_reason(
    case: Case, test: str, base: str, fixed: str, reason: str
) -> None:
    judgement = judgement_of(case, HEAD + test)
    assert judgement.base is not None
    assert judgement.fixed is not None
    assert (judgement.applied, judgement.brt) == (True, False)
    assert (judgement.base.status, judgement.fixed.status) == (base, fixed)
    assert judgement.reason.startswith(reason)


@debian
def test_a_name_that_only_the_fix_brings_reproduces_nothing_when_imported(case: Case) -> None:
    (case.fixed / "package.py").write_text(FIXED + "\n\ndef median(numbers):\n    return 0\n")
    imported = judgement_of(case, "from package import median\n\n\ndef test_x():\n    assert median([]) == 0\n")
    assert (imported.brt, imported.base and imported.base.phase) == (False, "load")
    assert imported.fixed is not None
    assert imported.fixed.status == "passed"


@debian
def test_a_fixture_that_runs_into_the_bug_reproduces_it(case: Case) -> None:
    judgement = judgement_of(case, FIXTURE)
    assert judgement.base is not None
    assert (judgement.base.status, judgement.base.phase, judgement.brt) == ("error", "setup", True)


@debian
def test_of_a_changed_file_only_the_added_test_is_run(case: Case) -> None:
    patch = (
        "--- a/tests/test_package.py\n+++ b/tests/test_package.py\n@@ -8,5 +8,9 @@\n"
        "         assert mean(given) == wanted\n \n \n+def test_empty():\n+    assert mean([]) == 0\n+\n+\n"
        " def test_broken_anyway():\n     assert mean([1]) == 2\n"
    )
    judgement = judgement_of(case, patch=patch)
    assert (judgement.brt, judgement.tests) == (True, ("tests/test_package.py::test_empty",))


@debian
def test_where_only_data_is_added_one_test_that_turns_is_enough(case: Case) -> None:
    judgement = judgement_of(case, patch=DATA_PATCH)
    assert (judgement.brt, judgement.tests) == (True, ("tests/test_package.py",))
    assert judgement.reason.startswith("tests.test_package.test_means fails with ZeroDivisionError")
    assert not judgement_of(case, patch=DATA_PATCH.replace("([], 0)", "([2], 3)")).brt


def test_a_file_without_an_added_test_is_not_run_beside_one_that_has_some(case: Case) -> None:
    changed = {"tests/test_package.py": TESTS.replace("1)]", "1), ([], 0)]"), "tests/test_new.py": UNITTEST}
    assert [target.path for target in added_in(case, changed).targets] == ["tests/test_new.py"]


class ForgetfulSandbox(Bubblewrap):
    """Runs everything; from the third run on, each result is the opposite version's."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[ProgramResult] = []

    def run(self, request: ProgramRun) -> ProgramResult:
        self.results.append(super().run(request))
        return self.results[-1] if len(self.results) < 3 else self.results[len(self.results) % 2]


@debian
def test_a_test_that_differs_in_a_second_pair_of_runs_is_flaky(quick: Case) -> None:
    new = {"path": "tests/test_new.py", "content": UNITTEST}
    candidate = Candidate(instance_id=quick.instance_id, candidate_id="c", **new)
    sandbox = ForgetfulSandbox()

    judgement = Judge(sandbox, Limits(seconds=10)).judge(quick, candidate)

    assert len(sandbox.results) == 4
    assert (judgement.applied, judgement.flaky, judgement.brt) == (True, True, False)
    assert judgement.reason == "flaky: a second run came out differently"


@debian
def test_neither_checkout_is_changed_and_nothing_is_written_outside(quick: Case, tmp_path: Path) -> None:
    before = sorted((str(path), path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    overwriting = "        open('/repo/package.py', 'w').write('')\n        self."
    judgement_of(quick, UNITTEST.replace("        self.", overwriting))
    for path in ("../outside.py", "/etc/test_x.py", ".git/hooks/test_x.py", "tests/../../x.py"):
        candidate = Candidate(instance_id="mean-1", candidate_id="c", path=path, content="def test_x(): pass\n")
        judgement = Judge(Bubblewrap(), Limits()).judge(quick, candidate)
        assert (judgement.applied, judgement.brt, judgement.base) == (False, False, None)
    assert sorted((str(path), path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


@debian
def test_unittest_commands_are_judged_too(quick: Case) -> None:
    assert judgement_of(quick, UNITTEST).brt
    assert not judgement_of(quick, UNITTEST.replace(", 0)", ", 1)")).brt


def report(status: str, phase: str | None = None, **more: Any) -> TestReport:
    outcome = TestOutcome.model_validate({"status": status, "phase": phase, **more})
    return TestReport(outcome=outcome, tests=(outcome,))


@pytest.mark.parametrize(
    ("base", "fixed", "brt"),
    [
        (report("timeout"), report("passed"), True),
        (report("error", "crash"), report("passed"), True),
        (report("error", "limit"), report("passed"), True),
        (report("error", "teardown"), report("passed"), False),
        (report("error", "load"), report("passed"), False),
        (report("failed", "call"), report("skipped"), False),
        (report("failed", "call"), report("timeout"), False),
        (report("failed", "call"), report("error", "load"), False),
    ],
)
def test_hanging_and_crashing_count_as_failing_and_only_passing_as_passing(
    base: TestReport, fixed: TestReport, brt: bool
) -> None:
    assert verdict(base, fixed, alone=True)[0] == brt


def line(case: Case) -> dict[str, Any]:
    return {**UNITTEST_CASE, "instance_id": "mean-1"}


def test_a_case_takes_its_command_as_one_line_too(case: Case) -> None:
    row = {**line(case), "command": "python3 -m pytest 'a b' {tests}"}
    (read,) = read_cases(str(write("cases.jsonl", [row]))).values()
    assert read.command == ("python3", "-m", "pytest", "a b", "{tests}")


@debian
def test_a_run_has_one_line_per_candidate_and_resumes(case: Case, tmp_path: Path) -> None:
    cases = write("cases.jsonl", [line(case)])
    test = {"instance_id": "mean-1", "path": "tests/test_new.py"}
    rows = [
        {**test, "candidate_id": "good", "content": UNITTEST},
        {**test, "candidate_id": "bad", "content": UNITTEST.replace(", 0)", ", 1)")},
    ]
    candidates = write("candidates.jsonl", rows)
    arguments = ["--cases", cases, "--candidates", candidates, "--out", "run", "--json"]
    assert command("replay", "brt", *arguments).json["finished"] == 2
    lines = (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    records = {record["task_id"]: record for record in map(json.loads, lines)}
    assert {key: record["brt"] for key, record in records.items()} == {"mean-1/good": True, "mean-1/bad": False}
    good = records["mean-1/good"]
    assert (good["candidate_id"], good["applied"], good["error"]) == ("good", True, None)
    assert (good["base"]["status"], good["base"]["exception_type"], good["fixed"]["status"]) == (
        "failed", "ZeroDivisionError", "passed",
    )  # fmt: skip
    (tmp_path / "run" / "records.jsonl").write_text(lines[0] + "\n")
    assert command("replay", "brt", *arguments).json["skipped"] == 1
    assert len((tmp_path / "run" / "records.jsonl").read_text().splitlines()) == 2
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (facts["benchmark"], facts["model"], facts["config"]["sandbox"]) == (
        "brt",
        "given candidates",
        "bubblewrap",
    )


def test_a_sandbox_that_fails_is_an_error_and_no_verdict(case: Case) -> None:
    candidate = Candidate(instance_id="mean-1", candidate_id="c", path="test_x.py", content="def test_x(): pass\n")
    with pytest.raises(SandboxError):
        Judge(Bubblewrap(program="no-such-bwrap"), Limits()).judge(case, candidate)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": "nowhere"}, r"cases\.jsonl:1: base: no folder nowhere"),
        ({"command": []}, r"cases\.jsonl:1: command: "),
        ({"command": " "}, r"cases\.jsonl:1: command: .*it is empty"),
        ({"command": "python3 'a"}, r"cases\.jsonl:1: command: .*No closing quotation"),
        ({"instance_id": ""}, r"cases\.jsonl:1: instance_id: "),
        ({"env": {"A": 1}}, r"cases\.jsonl:1: env\.A: "),
        ({"command": ["a\0b"]}, r"cases\.jsonl:1: command: .*a NUL character"),
        ({"command": ["a\ud800"]}, r"cases\.jsonl:1: command: .*half of a surrogate pair"),
        ({"env": {"A": "\0"}}, r"cases\.jsonl:1: env: .*a NUL character"),
        ({"env": {"A=B": "c"}}, r"cases\.jsonl:1: env: .*no variable can have this name"),
    ],
)
def test_a_case_that_cannot_be_used_is_named_by_file_and_line(
    case: Case, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(OperatorError, match=message):
        read_cases(str(write("cases.jsonl", [{**line(case), **change}])))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"candidate_id": "c"}, "either patch, or path and content"),
        ({"candidate_id": "c", "patch": "x", "path": "y", "content": "z"}, "either patch, or path and content"),
        ({"candidate_id": "c", "path": "y"}, "either patch, or path and content"),
        ({"patch": "x"}, "candidate_id: "),
        ({"candidate_id": "c", "patch": "x", "instance_id": "other"}, "instance_id: no case other"),
    ],
)
def test_a_candidate_that_cannot_be_used_is_named_by_file_and_line(
    case: Case, row: dict[str, Any], message: str
) -> None:
    cases = read_cases(str(write("cases.jsonl", [line(case)])))
    candidates = write("candidates.jsonl", [{"instance_id": "mean-1", **row}])
    with pytest.raises(OperatorError, match=rf"candidates\.jsonl:1: .*{message}"):
        list(read_candidates(str(candidates), cases))


def test_a_candidate_is_given_once(case: Case) -> None:
    cases = read_cases(str(write("cases.jsonl", [line(case)])))
    row = {"instance_id": "mean-1", "candidate_id": "c", "patch": "x"}
    with pytest.raises(OperatorError, match=r"candidates\.jsonl:2: .*given before"):
        list(read_candidates(str(write("candidates.jsonl", [row, row])), cases))
