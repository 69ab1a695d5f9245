"""A stored test is run on a patch's base and head."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bot.core.actions import Decision
from bot.core.subjects import Subject
from bot.features.reproduce.record import ReproduceRecord, StoredTest, stored_test
from bot.features.verify.runs import check_patch
from bot.reproduction.execution import SandboxHarness

STORED = StoredTest(
    path="tests/test_lists.py",
    name="test_issue_12",
    content="from shapes.lists import split\n\n\ndef test_issue_12():\n"
    "    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n",
    code="",
    new_file=False,
    command=("pytest", "{tests}"),
    branch="main",
    sha="a" * 40,
)


@pytest.mark.debian("bubblewrap")
@pytest.mark.usefixtures("remembered_runs")
def test_a_patch_cannot_replace_the_stored_test(project: Path, harness: SandboxHarness) -> None:
    head = project.with_name("head")
    shutil.copytree(project, head)
    (head / "tests/test_lists.py").write_text("def test_issue_12():\n    pass\n")

    assert check_patch(12, STORED, project, head, harness).solved is False


@pytest.mark.debian("bubblewrap")
@pytest.mark.usefixtures("remembered_runs")
def test_a_bug_already_fixed_on_base_gives_no_verdict(project: Path, harness: SandboxHarness) -> None:
    source = project / "shapes/lists.py"
    source.write_text(source.read_text().replace("len(items) // size", "-(-len(items) // size)"))

    check = check_patch(12, STORED, project, project, harness)

    assert (check.base, check.head, check.solved) == ("passed", "passed", None)


def decided(verdict: str | None, test: StoredTest | None = None) -> Decision:
    subject = Subject(repository="acme/shapes", number=12, revision="text:1")
    return Decision(kind="reproduce", subject=subject, verdict=verdict, record=ReproduceRecord(test=test))


def test_newest_stored_test_is_recalled() -> None:
    newer = STORED.model_copy(update={"name": "test_newer"})
    first = decided("reproduced", test=STORED)
    second = decided("reproduced", test=newer)

    assert stored_test([first, second, decided("not reproduced"), decided(None)]) == newer
    assert stored_test([decided("not reproduced")]) is None
