"""Reading reports and output of the program under test, which may contain anything."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reproduction import console, junit
from bot.reproduction.console import last_frame, raised, split_exception
from bot.reproduction.execution import REPORT, operator_program, report
from bot.reproduction.notation import arguments
from bot.reproduction.protocol import Target, TestCommand
from bot.sandbox.protocol import ProgramResult

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>'
    "<testsuites>&lol2;</testsuites>"
)


def outcome(output: str = "", exit_code: int = 1, text: str | None = None) -> ProgramResult:
    files = {} if text is None else {REPORT: text}
    return ProgramResult(ending="exited", exit_code=exit_code, output=output, seconds=1, files=files)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "document type"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuites/>', "document type"),
        ("<testsuites>" + "<a>" * 100, "nested too deeply"),
        ("<testsuites>" + "<testcase/>" * 30_000 + "</testsuites>", "too many tests"),
        ("<testsuites>", "no element found"),
        ("not XML at all", "syntax error"),
        ("<testsuites>&undefined;</testsuites>", "undefined entity"),
        ("x" * (junit.MAX_LENGTH + 1), "over"),
        ("", "no element found"),
        ('<?xml version="1.0" encoding="utf-7"?><testsuites/>', "encodings are not supported"),
    ],
)
def test_a_malicious_or_broken_report_is_refused(text: str, reason: str) -> None:
    started = time.monotonic()
    with pytest.raises(junit.MalformedReport, match=reason):
        junit.parse(text)
    assert time.monotonic() - started < 5


def test_a_test_inside_a_failure_is_a_test_of_its_own() -> None:
    inside = "<failure message='ValueError: x'><testcase name='b'/></failure>"
    (test,) = junit.parse(f"<testsuites><testcase name='a'>{inside}</testcase></testsuites>")
    assert (test.name, test.status) == ("b", "passed")


def test_a_refused_report_leaves_the_output() -> None:
    total = report(outcome("Traceback (most recent call last):\nValueError: real\n", text=BOMB)).outcome
    assert (total.status, total.exception_type, total.message) == ("failed", "ValueError", "real")


def test_a_report_without_tests_leaves_the_output() -> None:
    total = report(
        outcome("ERROR: not found: /repo/tests/x.py\n\nno tests ran in 0.1s\n", 4, "<testsuites/>")
    ).outcome
    assert (total.status, total.phase) == ("error", "load")
    assert "not found: /repo/tests/x.py" in total.message


@pytest.mark.parametrize(
    "end", ["===== 1 passed in 0.01s =====", "== 1 passed, 2 warnings in 71.21s (0:01:11) =="]
)
def test_a_test_run_that_says_so_has_passed(end: str) -> None:
    printed = f"===== test session starts =====\ncollected 1 item\n\ntests/test_x.py .  [100%]\n\n{end}\n"
    assert report(outcome(printed, 0)).outcome.status == "passed"


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_test_that_ends_the_run_has_crashed(exit_code: int) -> None:
    printed = "===== test session starts =====\ncollected 1 item\n\ntests/test_x.py"
    total = report(outcome(printed, exit_code)).outcome
    assert (total.status, total.phase) == ("error", "crash")
    assert total.message == "the test run ended before its tests did"


def test_an_asynchronous_test_that_pytest_cannot_run_was_not_run() -> None:
    message = "Failed: async def functions are not natively supported.&#10;You need to install a suitable plugin"
    text = f'<testsuites><testcase name="a"><failure message="{message}"/></testcase></testsuites>'
    total = report(outcome(text=text)).outcome
    assert (total.status, total.phase, total.fails) == ("error", "load", False)
    assert total.message.startswith("async def functions are not natively supported.")


def test_odd_attributes_of_a_report_are_accepted() -> None:
    (test,) = junit.parse('<testsuites><testsuite><testcase name="t" time="NaN!"/></testsuite></testsuites>')
    assert (test.status, test.seconds) == ("passed", 0.0)


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("", f"<t><testcase><failure type='E'>\tat a.ATest.b(ATest.java:{'9' * 5000})</failure></testcase></t>"),
        (f"/repo/A.java:{'9' * 5000}: error: cannot find symbol", None),
        (f"[ERROR] /repo/A.java:[{'9' * 5000},1] cannot find symbol", None),
    ],
)
def test_a_huge_line_number_from_java_is_accepted(printed: str, text: str | None) -> None:
    assert report(outcome(printed, 1, text), java=True).outcome.status in ("failed", "error")


@given(
    st.lists(
        st.sampled_from(
            ["=" * 70, "-" * 70, "FAIL: test_a (m.T)", "ERROR: setUpClass (m.T)", "Ran 2 tests in 0.1s", "OK",
             "OK (skipped=2)", "FAILED (failures=1)", "Traceback (most recent call last):",
             '  File "a.py", line 3, in f', "ValueError: x", "", "NO TESTS RAN", "a.py:3: in f",
             "E   KeyError: 'x'", "SyntaxError: x"]
        )
    ),
    st.integers(0, 255),
)  # fmt: skip
def test_any_mixture_of_runner_output_has_an_outcome(lines: list[str], exit_code: int) -> None:
    total = report(outcome("\n".join(lines), exit_code)).outcome
    assert total.status in ("passed", "failed", "error", "skipped")
    if exit_code == 0 and "Ran 2 tests in 0.1s" not in lines and "=" * 70 not in lines:
        assert total.status in ("passed", "error")


@pytest.mark.parametrize(
    "text",
    ["\n" * 500_000, " " * 1_000_000, ("=" * 70 + "\n") * 10_000, "Traceback (most recent call last):\n" * 20_000,
     ("=" * 70 + "\nFAIL: a\n") * 10_000, "a:1: in " * 100_000, '  File "' * 100_000, "OK (" * 200_000],
    ids=["lines", "blanks", "rulers", "tracebacks", "blocks", "frames", "files", "summaries"],
)  # fmt: skip
def test_output_made_to_be_slow_to_read_is_read_in_time(text: str) -> None:
    started = time.monotonic()
    report(outcome(text))
    assert time.monotonic() - started < 5


def test_several_failures_of_unittest_keep_their_names() -> None:
    ruler, line = "=" * 70, "-" * 70
    text = (
        f"{ruler}\nFAIL: test_a (app.tests.T.test_a)\n{line}\nTraceback (most recent call last):\n"
        '  File "/repo/app/tests.py", line 9, in test_a\n    self.fail("no")\nAssertionError: no\n\n'
        f"{ruler}\nERROR: test_b (app.tests.T.test_b)\n{line}\nTraceback (most recent call last):\n"
        '  File "/repo/app/models.py", line 3, in save\n    raise DbError("gone")\napp.DbError: gone\n\n'
        f"{line}\nRan 5 tests in 0.004s\n\nFAILED (failures=1, errors=1)\n"
    )
    first, second = console.read(text, 1)
    assert (first.name, first.exception_type, str(first.frame)) == (
        "test_a (app.tests.T.test_a)", "AssertionError", "app/tests.py:9 in test_a",
    )  # fmt: skip
    assert (second.status, second.exception_type, second.message) == ("failed", "app.DbError", "gone")


def test_the_last_exception_of_a_chain_counts() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 2, in g\npkg.Wrapped: two\nlines\n\nafter\n'
    )
    assert raised(text) == ("pkg.Wrapped", "two\nlines")
    assert str(last_frame(text)) == "b.py:2 in g"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ValueError: x", ("ValueError", "x")),
        ("pkg.errors.Odd: x: y", ("pkg.errors.Odd", "x: y")),
        ("KeyboardInterrupt", ("KeyboardInterrupt", "")),
        ("assert 1 == 2", ("AssertionError", "assert 1 == 2")),
        ("something else happened", (None, "something else happened")),
        ("collected", (None, "collected")),
    ],
)
def test_exceptions_are_distinguished_from_other_text(text: str, expected: tuple[str | None, str]) -> None:
    assert split_exception(text) == expected


@pytest.mark.parametrize(
    ("command", "path", "name", "expected"),
    [
        ("pytest {tests}", "a/test_b.py", "TestC::test_d", ["pytest", "a/test_b.py::TestC::test_d"]),
        ("python -m pytest {tests} -x", "a/test_b.py", None, ["python", "-m", "pytest", "a/test_b.py", "-x"]),
        ("python -m pytest", "t.py", "test_d[1-a]", ["python", "-m", "pytest", "t.py::test_d"]),
        (
            "python tests/runtests.py --verbosity 2 {tests}", "tests/queries/test_b.py", "C::test_d",
            ["python", "tests/runtests.py", "--verbosity", "2", "queries.test_b.C.test_d"],
        ),
        ("./manage.py test {tests}", "app/tests.py", None, ["./manage.py", "test", "app.tests"]),
        ("python -m unittest {tests}", "a/b.py", "C::test_d", ["python", "-m", "unittest", "a.b.C.test_d"]),
        ("bin/test -C {tests}", "sympy/core/test_b.py", "test_d", ["bin/test", "-C", "sympy/core/test_b.py"]),
        ("sh -c 'pytest {tests} | cat'", "a b.py", None, ["sh", "-c", "pytest 'a b.py' | cat"]),
    ],
)  # fmt: skip
def test_tests_are_named_in_the_notation_of_the_runner(
    command: str, path: str, name: str | None, expected: list[str]
) -> None:
    twice = [Target(path=path, name=name)] * 2
    assert list(arguments(TestCommand.parse(command), twice)) == expected, "equal targets are named once"


def _environment(folder: Path, base: Path) -> Path:
    (base / "bin").mkdir(parents=True)
    (base / "lib" / "python3.11").mkdir(parents=True)
    (base / "bin" / "python3").write_text("\x7fELF")
    (base / "bin" / "python3").chmod(0o755)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(base / "bin" / "python3")
    (folder / "pyvenv.cfg").write_text(f"home = {base}/bin\nversion = 3.11\n")
    return folder / "bin" / "python"


def test_an_operator_s_program_brings_its_environment_and_installation(tmp_path: Path) -> None:
    python = _environment(tmp_path / "venv", tmp_path / "base")
    (tmp_path / "venv" / ".env").write_text("SECRET=1\n")
    readable = operator_program((str(python), "-m", "pytest"), tmp_path / "checkout").readable
    assert {tmp_path / "venv" / "bin", tmp_path / "venv" / "pyvenv.cfg", tmp_path / "base" / "bin"} <= set(
        readable
    )
    assert not any(folder.name in ("venv", "base", ".env") for folder in readable)


def test_a_program_other_than_python_needs_no_folders(tmp_path: Path) -> None:
    (tmp_path / "data" / "bin").mkdir(parents=True)
    (tmp_path / "data" / "bin" / "tool").touch(0o755)
    for name in (str(tmp_path / "data" / "bin" / "tool"), "/proc/self/exe", "/etc/alternatives/awk"):
        assert not any(
            str(folder).startswith(("/proc", "/etc", str(tmp_path)))
            for folder in operator_program((name,), tmp_path / "x").readable
        )


def test_a_bare_name_is_found_on_the_path_but_not_among_shims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = _environment(tmp_path / "venv", tmp_path / "base")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "python").symlink_to(python)
    monkeypatch.setenv("PATH", f"{shims}:{python.parent}:relative")
    assert operator_program(("python", "-m", "pytest"), tmp_path / "x").argv == (str(python), "-m", "pytest")
    assert operator_program(("no-such-program",), tmp_path / "x").argv == ("no-such-program",)


def test_paths_in_the_checkout_become_paths_in_its_copy(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    python = _environment(checkout / ".venv", tmp_path / "base")
    program = operator_program((str(python), f"--root={checkout}", str(tmp_path / "checkout-2")), checkout)
    assert program.argv == ("/repo/.venv/bin/python", "--root=/repo", str(tmp_path / "checkout-2"))
    assert program.readable == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("/data/x/a=b sh -c 'cat secret'", "without a folder"),
        ("/usr/bin/python3 -m pytest", "without a folder"),
        ("a=b python -m pytest", "not with a variable"),
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("pytest 'open", "No closing quotation"),
    ],
)
def test_a_repository_s_command_cannot_name_a_host_path(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TestCommand.of_repository(text)
