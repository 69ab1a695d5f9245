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


def patched(project: Path, old: str, new: str) -> Path:
    head = project.with_name("head")
    shutil.copytree(project, head)
    source = head / "shapes/lists.py"
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    return head


@pytest.mark.debian("bubblewrap")
@pytest.mark.parametrize(
    ("old", "new", "verdict", "statuses"),
    [
        ("len(items) // size", "-(-len(items) // size)", True, ("failed", "passed")),
        ("Pieces of", "Lists of", False, ("failed", "failed")),
        ("def split", "def divide", None, ("failed", "error")),
    ],
)
def test_a_patch_is_solved_unsolved_or_gets_no_verdict(
    project: Path, harness: SandboxHarness, old: str, new: str, verdict: bool | None, statuses: tuple[str, str]
) -> None:
    head = patched(project, old, new)

    check = check_patch(12, STORED, project, head, harness)

    assert check.solved is verdict
    assert (check.base, check.head) == statuses
    assert check.test == "tests/test_lists.py::test_issue_12"
    assert "split" in check.output


@pytest.mark.debian("bubblewrap")
def test_a_patch_cannot_replace_the_stored_test(project: Path, harness: SandboxHarness) -> None:
    head = patched(project, "Pieces", "Pieces")
    (head / "tests/test_lists.py").write_text("def test_issue_12():\n    pass\n")

    assert check_patch(12, STORED, project, head, harness).solved is False


@pytest.mark.debian("bubblewrap")
def test_a_bug_already_fixed_on_base_gives_no_verdict(project: Path, harness: SandboxHarness) -> None:
    head = patched(project, "len(items) // size", "-(-len(items) // size)")

    assert check_patch(12, STORED, head, head, harness).solved is None


def decided(verdict: str | None, test: StoredTest | None = None) -> Decision:
    subject = Subject(repository="acme/shapes", number=12, revision="text:1")
    return Decision(kind="reproduce", subject=subject, verdict=verdict, record=ReproduceRecord(test=test))


def test_newest_stored_test_is_recalled() -> None:
    newer = STORED.model_copy(update={"name": "test_newer"})
    first = decided("reproduced", test=STORED)
    second = decided("reproduced", test=newer)

    assert stored_test([first, second, decided("not reproduced"), decided(None)]) == newer
    assert stored_test([decided("not reproduced")]) is None
