"""Running tests in the sandbox: status, exception, message and place of the outcome."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bot.reproduction.execution import SandboxHarness
from bot.reproduction.protocol import Target, TestCommand, TestOutcome, combine
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits

pytestmark = pytest.mark.debian("bubblewrap")

PACKAGE = '''\
class OddError(Exception):
    """Raised for what is odd."""


def halve(number):
    if number % 2:
        raise OddError(f"{number} is odd\\nand stays so")
    return number // 2
'''
PYTEST_FILE = """\
import sys
import pytest
from package import halve

@pytest.fixture
def broken():
    raise KeyError("x")

@pytest.fixture
def messy():
    yield
    raise RuntimeError("while cleaning up")

def test_passes(): assert halve(4) == 2
def test_crashes(): halve(3)
def test_compares(): assert halve(4) == 3
def test_says(): assert halve(4) == 3, "Expected: 3"
def test_misses():
    with pytest.raises(ValueError): halve(4)
def test_fixture(broken): pass
def test_teardown(messy): pass
def test_skipped(): pytest.skip("not here")
@pytest.mark.xfail
def test_expected(): assert False
def test_exits(): sys.exit(3)
@pytest.mark.parametrize("number", [2, 3])
def test_many(number): assert halve(number) == 1
"""
#: Tests that end the run of the others.
ENDING_FILE = """\
import os, signal, time
def test_dies(): os.kill(os.getpid(), signal.SIGSEGV)
def test_kills(): os.kill(os.getpid(), signal.SIGKILL)
def test_hangs(): time.sleep(60)
def test_eats(): [b"x" * (1 << 20) for number in range(100_000)]
"""
UNITTEST_FILE = """\
import unittest
from package import halve

class HalveTest(unittest.TestCase):
    def test_passes(self): self.assertEqual(halve(4), 2)
    def test_compares(self): self.assertEqual(halve(4), 3)
    def test_crashes(self): halve(3)
    def test_skipped(self): self.skipTest("not here")

class BrokenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise KeyError("x")
    def test_never(self): pass
"""
#: The plugins around these tests would only make them slow.
ENV = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
Run = Callable[..., TestOutcome]


def filled(folder: Path) -> Path:
    (folder / "tests").mkdir()
    (folder / "package.py").write_text(PACKAGE)
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "test_pytest.py").write_text(PYTEST_FILE)
    (folder / "tests" / "test_ending.py").write_text(ENDING_FILE)
    (folder / "tests" / "test_unittest.py").write_text(UNITTEST_FILE)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return filled(tmp_path)


def harness(command: str, env: Mapping[str, str] = ENV, **limits: float) -> SandboxHarness:
    return SandboxHarness(
        Bubblewrap(),
        TestCommand.parse(command),
        env=env,
        limits=Limits.model_validate({"seconds": 30, "memory_bytes": 512 << 20, **limits}),
    )


@pytest.fixture
def run(checkout: Path) -> Run:
    def run_test(runner: str, path: str, name: str | None, **limits: float) -> TestOutcome:
        command = harness(f"{sys.executable} -m {runner} {{tests}}", **limits)
        return command.run(checkout, [Target(path=path, name=name)], {}).outcome

    return run_test


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, TestOutcome]:
    """Outcomes by the test's name, of one run of all tests that do not end it."""
    command = harness(f"{sys.executable} -m pytest {{tests}}")
    checkout = filled(tmp_path_factory.mktemp("checkout"))
    tests = command.run(checkout, [Target(path="tests/test_pytest.py")], {}).tests
    names = {test.name for test in tests}
    return {
        name.removeprefix("tests.test_pytest."): combine([test for test in tests if test.name == name])
        for name in names
    }


def summary(outcome: TestOutcome) -> tuple[object, ...]:
    return outcome.status, outcome.phase, outcome.exception_type, outcome.message, str(outcome.frame)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "test_crashes",
            ("failed", "call", "package.OddError", "3 is odd\nand stays so", "package.py:7 in halve"),
        ),
        (
            "test_compares",
            ("failed", "call", "AssertionError", "assert 2 == 3\n +  where 2 = halve(4)",
             "tests/test_pytest.py:16 in test_compares"),
        ),
        (
            "test_says",
            ("failed", "call", "AssertionError", "Expected: 3\nassert 2 == 3\n +  where 2 = halve(4)",
             "tests/test_pytest.py:17 in test_says"),
        ),
        ("test_exits", ("failed", "call", "SystemExit", "3", "tests/test_pytest.py:25 in test_exits")),
        ("test_fixture", ("error", "setup", "KeyError", "'x'", "tests/test_pytest.py:7 in broken")),
        ("test_teardown", ("error", "teardown", "RuntimeError", "while cleaning up",
         "tests/test_pytest.py:12 in messy")),
    ],
)  # fmt: skip
def test_an_outcome_has_exception_message_and_place(
    outcomes: Mapping[str, TestOutcome], name: str, expected: tuple[str, ...]
) -> None:
    outcome = outcomes[name]
    assert summary(outcome) == expected
    assert outcome.fails is (expected[1] != "teardown")
    assert outcome.kind == expected[2].removeprefix("package.")
    assert outcome.in_test == expected[4].startswith("tests/test_pytest.py")


def test_a_passing_or_skipped_test_has_none(outcomes: Mapping[str, TestOutcome]) -> None:
    outcome = outcomes["test_passes"]
    assert summary(outcome) == ("passed", None, None, "", "None")
    assert (outcome.name, outcome.path) == ("tests.test_pytest.test_passes", "tests/test_pytest.py")
    assert not outcome.fails
    assert outcomes["test_skipped"].status == outcomes["test_expected"].status == "skipped"


def test_a_missing_exception_names_the_exception(outcomes: Mapping[str, TestOutcome]) -> None:
    outcome = outcomes["test_misses"]
    assert (outcome.status, outcome.exception_type) == ("failed", "Failed")
    assert "ValueError" in outcome.message


def test_a_test_that_hangs_is_a_timeout(run: Run) -> None:
    outcome = run("pytest", "tests/test_ending.py", "test_hangs", seconds=4)
    assert (outcome.status, outcome.phase) == ("timeout", None)
    assert outcome.message.startswith("did not end: stopped after 4.")


def test_a_test_that_kills_the_interpreter_is_a_crash(run: Run) -> None:
    outcome = run("pytest", "tests/test_ending.py", "test_dies")
    assert summary(outcome)[:4] == ("error", "crash", None, "the test run died of signal 11")
    assert outcome.fails
    assert run("pytest", "tests/test_ending.py", "test_kills").phase == "crash"


def test_a_test_that_exhausts_memory_is_stopped_at_the_limit(run: Run) -> None:
    outcome = run("pytest", "tests/test_ending.py", "test_eats")
    assert (outcome.status, outcome.phase) == ("error", "limit")
    assert outcome.message.endswith("at the limit on memory")


def test_one_failing_test_fails_the_run_and_all_are_reported(checkout: Path) -> None:
    report = harness(f"{sys.executable} -m pytest {{tests}}").run(
        checkout, [Target(path="tests/test_pytest.py", name="test_many[3]")], {}
    )
    assert [(test.name, test.status) for test in report.tests] == [
        ("tests.test_pytest.test_many[2]", "passed"),
        ("tests.test_pytest.test_many[3]", "failed"),
    ]
    assert (report.outcome.status, report.outcome.exception_type) == ("failed", "package.OddError")


#: Text of a file, and the exception and message of loading it.
BROKEN_FILES = [
    ("import nothing_of_that_name\n", "ModuleNotFoundError", "No module named 'nothing_of_that_name'"),
    ("from package import quarter\n", "ImportError", "cannot import name 'quarter' from 'package'"),
    ("def test_x(:\n    pass\n", "SyntaxError", "invalid syntax"),
    ("raise ValueError('at once')\n", "ValueError", "at once"),
]


@pytest.mark.parametrize(
    ("runner", "numbers"),
    # Other exceptions than ImportError end the whole run of unittest.
    [("pytest", [0, 1, 2, 3]), ("unittest", [0, 1]), ("unittest", [2]), ("unittest", [3])],
)
def test_a_file_that_cannot_be_loaded_is_no_failing_test(checkout: Path, runner: str, numbers: list[int]) -> None:
    files = {f"tests/test_new_{number}.py": BROKEN_FILES[number][0] for number in numbers}
    command = harness(f"{sys.executable} -m {runner} {{tests}}")
    report = command.run(checkout, [Target(path=path) for path in files], files)
    for number, outcome in zip(numbers, report.tests, strict=True):
        _, exception, message = BROKEN_FILES[number]
        assert (outcome.status, outcome.phase, outcome.exception_type) == ("error", "load", exception)
        assert outcome.message.startswith(message)
        assert not outcome.fails
    assert report.outcome == report.tests[0]


def test_a_test_that_does_not_exist_is_no_failing_test(run: Run) -> None:
    by_pytest = run("pytest", "tests/test_pytest.py", "test_nowhere")
    by_unittest = run("unittest", "tests/test_unittest.py", "HalveTest::test_nowhere")
    for outcome in (by_pytest, by_unittest, run("pytest", "no.py", None)):
        assert (outcome.status, outcome.phase) == ("error", "load")
    assert "not found" in by_pytest.message


def test_a_broken_conftest_is_no_failing_test(checkout: Path, run: Run) -> None:
    (checkout / "conftest.py").write_text("import nothing_of_that_name\n")
    outcome = run("pytest", "tests/test_ending.py", "test_dies")
    assert (outcome.status, outcome.phase, outcome.exception_type) == ("error", "load", "ModuleNotFoundError")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("HalveTest::test_passes", ("passed", None, None, "", "None")),
        ("HalveTest::test_skipped", ("skipped", None, None, "", "None")),
        (
            "HalveTest::test_compares",
            ("failed", "call", "AssertionError", "2 != 3", "tests/test_unittest.py:6 in test_compares"),
        ),
        (
            "HalveTest::test_crashes",
            ("failed", "call", "package.OddError", "3 is odd\nand stays so", "package.py:7 in halve"),
        ),
        ("BrokenTest", ("error", "setup", "KeyError", "'x'", "tests/test_unittest.py:12 in setUpClass")),
    ],
)
def test_unittest_is_read_from_its_output(run: Run, name: str, expected: tuple[str, ...]) -> None:
    assert summary(run("unittest", "tests/test_unittest.py", name)) == expected


def test_a_script_is_read_by_exit_code_and_traceback(checkout: Path) -> None:
    script = "from package import halve\nassert halve(4) == {}, 'wrong'\n"
    run = harness(f"{sys.executable} {{tests}}", {"PYTHONPATH": "."})
    good = run.run(checkout, [Target(path="check.py")], {"check.py": script.format(2)})
    bad = run.run(checkout, [Target(path="check.py")], {"check.py": script.format(3)})
    assert good.outcome.status == "passed"
    assert summary(bad.outcome) == ("failed", "call", "AssertionError", "wrong", "check.py:2 in <module>")


def test_a_forged_or_malicious_report_is_ignored(checkout: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><testsuites>&b;</testsuites>'
    files = {
        "tests/test_new.py": "import atexit, pathlib\n"
        f"def forge(): pathlib.Path('.bouncer-junit.xml').write_text({bomb!r})\n"
        "atexit.register(forge)\n"
        "def test_fails(): assert False\n"
    }
    report = harness(f"{sys.executable} -m pytest {{tests}}").run(
        checkout, [Target(path="tests/test_new.py")], files
    )
    assert report.outcome.status != "passed"


def test_a_report_file_of_the_repository_is_ignored(checkout: Path) -> None:
    passed = '<testsuites><testsuite><testcase classname="t" name="test_x" file="t.py"/></testsuite></testsuites>'
    (checkout / ".bouncer-junit.xml").write_text(passed)
    report = harness("sh -c false").run(checkout, [Target(path="tests/test_pytest.py")], {})
    assert report.outcome.status == "error"
