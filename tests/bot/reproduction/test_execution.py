"""Running tests in the sandbox: status, exception, message and place of the outcome."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bot.reproduction.execution import SandboxHarness
from bot.reproduction.protocol import Target, TestCommand, TestOutcome
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
import os, signal, sys
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
def test_dies(): os.kill(os.getpid(), signal.SIGSEGV)
def test_kills(): os.kill(os.getpid(), signal.SIGKILL)
def test_hangs():
    while True: pass
def test_eats(): [b"x" * (1 << 20) for number in range(100_000)]
@pytest.mark.parametrize("number", [2, 3])
def test_many(number): assert halve(number) == 1
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


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "tests").mkdir(parents=True)
    (folder / "package.py").write_text(PACKAGE)
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "test_pytest.py").write_text(PYTEST_FILE)
    (folder / "tests" / "test_unittest.py").write_text(UNITTEST_FILE)
    return folder


def harness(command: str, env: Mapping[str, str] = ENV, **limits: float) -> SandboxHarness:
    return SandboxHarness(
        Bubblewrap(),
        TestCommand.parse(command),
        env=env,
        limits=Limits.model_validate({"seconds": 30, "memory_bytes": 512 << 20, **limits}),
    )


@pytest.fixture
def pytest_run(checkout: Path) -> Run:
    def run(name: str | None, path: str = "tests/test_pytest.py", **limits: float) -> TestOutcome:
        command = f"{sys.executable} -m pytest {{tests}}"
        return harness(command, **limits).run(checkout, [Target(path=path, name=name)], {}).outcome

    return run


@pytest.fixture
def unittest_run(checkout: Path) -> Run:
    def run(name: str | None, path: str = "tests/test_unittest.py") -> TestOutcome:
        command = f"{sys.executable} -m unittest {{tests}}"
        return harness(command).run(checkout, [Target(path=path, name=name)], {}).outcome

    return run


def summary(outcome: TestOutcome) -> tuple[object, ...]:
    return outcome.status, outcome.phase, outcome.exception_type, outcome.message, str(outcome.frame)


def test_a_passing_test(pytest_run: Run) -> None:
    outcome = pytest_run("test_passes")
    assert summary(outcome) == ("passed", None, None, "", "None")
    assert (outcome.name, outcome.path) == ("tests.test_pytest.test_passes", "tests/test_pytest.py")
    assert not outcome.fails


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
    ],
)  # fmt: skip
def test_a_failing_test_has_exception_message_and_place(
    pytest_run: Run, name: str, expected: tuple[str, ...]
) -> None:
    outcome = pytest_run(name)
    assert summary(outcome) == expected
    assert outcome.fails
    assert outcome.kind == expected[2].removeprefix("package.")
    assert outcome.in_test == expected[4].startswith("tests/test_pytest.py")


def test_a_missing_exception_names_the_exception(pytest_run: Run) -> None:
    outcome = pytest_run("test_misses")
    assert (outcome.status, outcome.exception_type) == ("failed", "Failed")
    assert "ValueError" in outcome.message


def test_an_error_in_teardown_is_not_a_failing_test(pytest_run: Run) -> None:
    outcome = pytest_run("test_teardown")
    assert (outcome.status, outcome.phase, outcome.exception_type) == ("error", "teardown", "RuntimeError")
    assert not outcome.fails


@pytest.mark.parametrize("name", ["test_skipped", "test_expected"])
def test_a_skipped_or_expected_failure_is_skipped(pytest_run: Run, name: str) -> None:
    assert pytest_run(name).status == "skipped"


def test_a_test_that_hangs_is_a_timeout(pytest_run: Run) -> None:
    outcome = pytest_run("test_hangs", seconds=4)
    assert (outcome.status, outcome.phase) == ("timeout", None)
    assert outcome.message.startswith("did not end: stopped after 4.")


def test_a_test_that_kills_the_interpreter_is_a_crash(pytest_run: Run) -> None:
    outcome = pytest_run("test_dies")
    assert summary(outcome)[:4] == ("error", "crash", None, "the test run died of signal 11")
    assert outcome.fails
    assert pytest_run("test_kills").phase == "crash"


def test_a_test_that_exhausts_memory_is_stopped_at_the_limit(pytest_run: Run) -> None:
    outcome = pytest_run("test_eats")
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


@pytest.mark.parametrize(
    ("text", "exception", "message"),
    [
        ("import nothing_of_that_name\n", "ModuleNotFoundError", "No module named 'nothing_of_that_name'"),
        ("from package import quarter\n", "ImportError", "cannot import name 'quarter' from 'package'"),
        ("def test_x(:\n    pass\n", "SyntaxError", "invalid syntax"),
        ("raise ValueError('at once')\n", "ValueError", "at once"),
    ],
)
@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_file_that_cannot_be_loaded_is_no_failing_test(
    checkout: Path, runner: str, text: str, exception: str, message: str
) -> None:
    files = {"tests/test_new.py": text}
    report = harness(f"{sys.executable} -m {runner} {{tests}}").run(
        checkout, [Target(path="tests/test_new.py")], files
    )
    outcome = report.outcome
    assert (outcome.status, outcome.phase, outcome.exception_type) == ("error", "load", exception)
    assert outcome.message.startswith(message)
    assert not outcome.fails


def test_a_test_that_does_not_exist_is_no_failing_test(pytest_run: Run, unittest_run: Run) -> None:
    by_pytest = pytest_run("test_nowhere")
    for outcome in (by_pytest, unittest_run("HalveTest::test_nowhere"), pytest_run(None, "no.py")):
        assert (outcome.status, outcome.phase) == ("error", "load")
    assert "not found" in by_pytest.message


def test_a_broken_conftest_is_no_failing_test(checkout: Path, pytest_run: Run) -> None:
    (checkout / "conftest.py").write_text("import nothing_of_that_name\n")
    outcome = pytest_run("test_passes")
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
def test_unittest_is_read_from_its_output(unittest_run: Run, name: str, expected: tuple[str, ...]) -> None:
    assert summary(unittest_run(name)) == expected


def test_a_script_is_read_by_exit_code_and_traceback(checkout: Path) -> None:
    script = "from package import halve\nassert halve(4) == {}, 'wrong'\n"
    run = harness(f"{sys.executable} {{tests}}", {"PYTHONPATH": "."})
    good = run.run(checkout, [Target(path="check.py")], {"check.py": script.format(2)})
    bad = run.run(checkout, [Target(path="check.py")], {"check.py": script.format(3)})
    assert good.outcome.status == "passed"
    assert summary(bad.outcome) == ("failed", "call", "AssertionError", "wrong", "check.py:2 in <module>")


def test_a_command_that_does_not_exist_is_no_failing_test(checkout: Path) -> None:
    outcome = harness("no-such-runner {tests}").run(checkout, [Target(path="tests")], {}).outcome
    assert (outcome.status, outcome.phase) == ("error", "load")
    assert "no-such-runner" in outcome.message


def test_a_test_with_two_different_results_is_flaky(checkout: Path) -> None:
    files = {"tests/test_new.py": "import os\ndef test_coin(): assert os.urandom(1)[0] % 2\n"}
    command = harness(f"{sys.executable} -m pytest {{tests}}")
    targets = [Target(path="tests/test_new.py")]
    assert any(command.run_twice(checkout, targets, files).flaky for _ in range(20))
    steady = command.run_twice(checkout, [Target(path="tests/test_pytest.py", name="test_crashes")], {})
    assert not steady.flaky
    assert steady.outcome.exception_type == "package.OddError"


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
