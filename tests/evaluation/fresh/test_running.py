"""Nothing counts that does not come out the same three times, before a fix, after it, and with a patch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from bot.reproduction.protocol import Status, Target, TestCommand, TestOutcome, TestReport
from evaluation.brt.cases import Case
from evaluation.fresh.running import NotProven, Proof, prove
from tests.evaluation.checkouts import checkouts

FILES = {"tests/test_a.py": "def test_one(): ...\ndef test_two(): ...\n"}


class Scripted:
    """A harness whose runs come out as they are written down: by tree, the statuses of both tests, run by run."""

    command = TestCommand(argv=("pytest", "{tests}"))
    sandbox_name = "scripted"

    def __init__(self, outcomes: Mapping[str, Sequence[tuple[Status, Status]]]) -> None:
        self.runs = {tree: list(statuses) for tree, statuses in outcomes.items()}

    def run(self, workdir: Path, targets: Sequence[Target], files: Mapping[str, str]) -> TestReport:
        """Take the next run of a tree; the fix's own files alone are the base, with a patch they are the patch."""
        tree = "patch" if "code.py" in files else workdir.name
        tests = tuple(
            TestOutcome(
                status=status, phase="call" if status == "failed" else None, name=name, path="tests/test_a.py"
            )
            for name, status in zip(("test_one", "test_two"), self.runs[tree].pop(0), strict=True)
        )
        worst = next((test for test in tests if test.status == "failed"), tests[0])
        return TestReport(outcome=worst, tests=tests)


BAD: tuple[Status, Status] = ("failed", "passed")
GOOD: tuple[Status, Status] = ("passed", "passed")
Prove = Callable[..., tuple[Proof, Scripted]]


@pytest.fixture
def proven(tmp_path: Path) -> Prove:
    """Proves the bug of one case from written outcomes."""
    case = Case(instance_id="x", **checkouts(tmp_path, {"a.py": ""}, {"a.py": ""}), command=("pytest",))

    def run(**outcomes: Sequence[tuple[Status, Status]]) -> tuple[Proof, Scripted]:
        harness = Scripted(outcomes)
        return prove(case, harness, FILES, list(FILES)), harness

    return run


def test_every_tree_is_run_three_times(proven: Prove) -> None:
    _, harness = proven(base=[BAD] * 3, fixed=[GOOD] * 3)
    assert harness.runs == {"base": [], "fixed": []}


@pytest.mark.parametrize(
    ("base", "fixed"),
    [([BAD, BAD, GOOD], [GOOD] * 3), ([BAD] * 3, [GOOD, GOOD, BAD]), ([BAD] * 3, [GOOD, BAD, GOOD])],
)
def test_a_run_that_differs_is_flaky(
    proven: Prove, base: list[tuple[Status, Status]], fixed: list[tuple[Status, Status]]
) -> None:
    with pytest.raises(NotProven, match="flaky: 3 runs did not come out the same"):
        proven(base=base, fixed=fixed)


def test_a_patch_is_labelled_by_the_tests_that_it_fails(proven: Prove) -> None:
    lost: tuple[Status, Status] = ("passed", "failed")
    for outcome, failing, share in ((BAD, "fail-to-pass", 0.5), (lost, "pass-to-pass", 0.5)):
        proof, _ = proven(base=[BAD] * 3, fixed=[GOOD] * 3, patch=[outcome] * 3)
        truth = proof.of({"code.py": ""})
        assert truth is not None
        assert (truth.wrong, truth.failing, truth.pass_fraction) == (True, failing, share)
    proof, _ = proven(base=[BAD] * 3, fixed=[GOOD] * 3, patch=[BAD, BAD, GOOD, GOOD])
    assert proof.of({"code.py": ""}) is None, "the tests do not agree about it"


def test_what_fails_with_the_fix_too_says_nothing_about_a_patch(proven: Prove) -> None:
    broken: tuple[Status, Status] = ("passed", "failed")
    proof, _ = proven(base=[("failed", "failed")] * 3, fixed=[broken] * 3, patch=[broken] * 3)
    assert (proof.mended, proof.broken, proof.reported) == ({"test_one"}, {"test_two"}, 1)
    truth = proof.of({"code.py": ""})
    assert truth is not None
    assert not truth.wrong
