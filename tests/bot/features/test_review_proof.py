"""From looks to proof: four regressions planted in a small project, two false alarms beside them.

What the model says is scripted; the tests that are drafted from it really run, in the sandbox.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bot.code.change.diff import parse
from bot.features.shared.merge_base import NotReversible, revert
from bot.github.offline import Snapshot
from bot.github.protocol import PullDiff
from bot.models.protocol import Prompt
from bot.sandbox.bubblewrap import Bubblewrap
from tests import builders
from tests.bot.features.conftest import Build
from tests.bot.features.reviews import inline, reply, review
from tests.builders import BASE, HEAD, comment_on_pull, diff_of, finding, pull, pull_opened
from tests.scripted import ScriptedModel

CONFIG = """
reproduce: {command: "python -m unittest {tests}"}
review: {strategy: panel, doubt: true, prove: true, max_findings: 12, max_total: 12, min_severity: low}
"""

#: Function -> its body before, its body after, what is said of it, and the test that is drafted.
PLANTED: dict[str, tuple[str, str, str, str]] = {
    "last": (
        "def last(items):\n    return items[-1] if items else None\n",
        "def last(items):\n    return items[-1]\n",
        "`last([])` raises IndexError: list index out of range. It returned None.",
        "self.assertIsNone(last([]))",
    ),
    "clamp": (
        "def clamp(value, low, high):\n    return max(low, min(value, high))\n",
        "def clamp(value, low, high):\n    return min(low, max(value, high))\n",
        "`clamp(5, 0, 3)` is 0 where it was 3. The bounds are swapped.",
        "self.assertEqual(clamp(5, 0, 3), 3)",
    ),
    "merge": (
        "def merge(one, other):\n    return {**one, **other}\n",
        "def merge(one, other):\n    one.update(other)\n    return one\n",
        "`merge(one, other)` changes its first argument: one is {'a': 1, 'b': 2} afterwards.",
        "one = {'a': 1}\n        merge(one, {'b': 2})\n        self.assertEqual(one, {'a': 1})",
    ),
    "unique": (
        "def unique(items):\n    return list(dict.fromkeys(items))\n",
        "def unique(items):\n    return sorted(set(items))\n",
        "`unique([3, 1])` is [1, 3] where it was [3, 1]. The order is lost.",
        "self.assertEqual(unique([3, 1]), [3, 1])",
    ),
}
#: No defects: the first falls to doubt, the second to its own test, which passes before and after.
FALSE: dict[str, tuple[str, str, str, str]] = {
    "double": (
        "def double(number):\n    return number * 2\n",
        "def double(number):\n    return number + number\n",
        "`double(1)` overflows.",
        "",
    ),
    "shout": (
        "def shout(text):\n    return text.upper() + '!'\n",
        "def shout(text):\n    return f'{text.upper()}!'\n",
        "`shout('a')` is 'a!' where it was 'A!'. The case is lost.",
        "self.assertEqual(shout('a'), 'A!')",
    ),
}
ALL = {**PLANTED, **FALSE}
TESTS = """import unittest

from calc import last


class CalcTest(unittest.TestCase):
    def test_last(self):
        self.assertEqual(last([1, 2]), 2)
"""


def source(at: int) -> str:
    return "\n\n".join(versions[at] for versions in ALL.values())


DIFF = diff_of({"calc.py": source(0)}, {"calc.py": source(1)})


def snapshot(**values: Any) -> Snapshot:
    head = {"calc.py": source(1).encode(), "test_calc.py": TESTS.encode()}
    moved_on = {"calc.py": b"# the base branch has moved on\n"}
    return builders.snapshot(
        pull_requests={20: pull(**{"base_sha": BASE, **values})},
        diffs={20: PullDiff(text=DIFF)},
        comments={20: ()},
        checkouts={BASE: moved_on, HEAD: head},
        files={f"{HEAD}:calc.py": source(1).encode()},
    )


def fault(name: str) -> dict[str, Any]:
    """Return a finding that quotes the last changed line of a function."""
    before, after, comment, _ = ALL[name]
    quote = next(line for line in after.splitlines() if line not in before.splitlines())
    return finding(path="calc.py", quote=quote, line=None, symbol="", comment=comment, category="structural")


def spoken(*looks: tuple[str, ...]) -> ScriptedModel:
    """A panel of four, of which each names some functions; then doubts and drafts about whatever is asked."""
    order = ("boundaries", "contracts", "errors", "what")

    def answer(prompt: Prompt) -> Any:
        if prompt.purpose == "review":
            lens = prompt.user.rpartition("What you look at: ")[2].split()[0].strip(",")
            return reply(*(fault(name) for name in looks[order.index(lens)]))
        about = next(name for name, versions in ALL.items() if versions[2] in prompt.user)
        if prompt.purpose == "review.doubt":
            return {
                "trace": "Python's integers do not overflow.",
                "breaks_when": f"{about}, as called",
                "quote": fault(about)["quote"],
                "instead": "as it says",
                "verdict": "refuted" if about == "double" else "upheld",
            }
        assert prompt.purpose == "reproduce", prompt.purpose
        test = f"class CalcTest(unittest.TestCase):\n    def test_{about}(self):\n        {ALL[about][3]}\n"
        code = f"import unittest\n\nfrom calc import {about}\n\n\n{test}"
        return {"plan": "Call it.", "code": code}

    return ScriptedModel(answer)


@pytest.mark.debian("bubblewrap")
@pytest.mark.usefixtures("remembered_runs")
def test_planted_regressions_are_seen_doubted_and_proven(services: Build) -> None:
    model = spoken(
        ("last", "double"),
        ("merge", "shout", "last"),
        ("double",),
        ("clamp", "unique", "last"),
    )
    decision = review(pull_opened(base_sha=BASE), services(model, snapshot(), CONFIG, sandbox=Bubblewrap()))
    posted = {comment.body.split("(")[0].strip("`"): comment.body for comment in inline(decision)}
    assert next(iter(posted)) == "last", "three looks saw it, and it is proven"
    assert list(posted)[-1] == "shout", "what is not proven comes last"
    assert set(posted) == {*PLANTED, "shout"}
    assert decision.record.proofs == {"proven": 4, "passes on both": 1}
    assert decision.record.counts["suppressed:doubted"] == 1
    assert "Dropped after a second look: 1." in decision.actions[0].body
    assert posted["shout"] == f"{FALSE['shout'][2]}\n\nSeverity: medium. *AI review, may be wrong.*"
    text, _, output = posted["clamp"].partition("```\n\n```\n")
    assert text == (
        f"{PLANTED['clamp'][2]}\n\nSeverity: high. *AI review, may be wrong.*\n\n"
        "Proven: `python -m unittest test_calc.CalcTest.test_clamp` passes before the change and fails after "
        "it.\n\n<details><summary>Test and output</summary>\n\n"
        "```\nfrom calc import clamp\n\n\ndef test_clamp(self):\n    self.assertEqual(clamp(5, 0, 3), 3)\n"
    )
    assert "AssertionError: 0 != 3" in output


def test_nothing_of_a_fork_is_run_without_a_maintainers_word_on_the_commit(services: Build) -> None:
    fork = {"base_sha": BASE, "head_repository": "ann/rocket"}
    forked = snapshot(**fork)
    here = services(spoken(("clamp",), (), (), ()), forked, CONFIG, sandbox=Bubblewrap())
    assert review(pull_opened(**fork), here).record.proofs == {}
    for command, runs in (("/bouncer review", False), ("/bouncer review --run " + "a" * 40, True)):
        # Where nothing can be checked out, that it was tried is what is seen.
        recorded = forked.model_copy(update={"diffs": {20: PullDiff(text=DIFF, omitted=("big.bin",))}})
        here = services(spoken(("clamp",), (), (), ()), recorded, CONFIG, sandbox=Bubblewrap())
        assert review(comment_on_pull(command), here).record.proofs == ({"not run": 1} if runs else {})


def test_the_merge_base_is_the_head_with_the_change_taken_back(tmp_path: Path) -> None:
    text = (
        "diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
        "diff --git a/old.py b/old.py\ndeleted file mode 100644\n--- a/old.py\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-y = 2\n"
        "diff --git a/was.py b/is.py\nrename from was.py\nrename to is.py\n--- a/was.py\n+++ b/is.py\n"
        "@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n"
        "diff --git a/cut.py b/cut.py\n--- a/cut.py\n+++ b/cut.py\n@@ -2 +1,0 @@\n-gone = 1\n"
    )
    head = tmp_path / "head"
    head.mkdir()
    for name, content in {"new.py": "x = 1\n", "is.py": "a = 1\nb = 3\n", "cut.py": "one\nthree\n"}.items():
        (head / name).write_text(content)
    revert(parse(text), head, tmp_path / "before")
    files = {path.name: path.read_text() for path in (tmp_path / "before").iterdir()}
    assert files == {"old.py": "y = 2\n", "was.py": "a = 1\nb = 2\n", "cut.py": "one\ngone = 1\nthree\n"}
    (head / "is.py").write_text("something else\n")
    with pytest.raises(NotReversible, match="not what the change says"):
        revert(parse(text), head, tmp_path / "again")


def test_a_change_of_a_file_with_windows_line_ends_is_taken_back(tmp_path: Path) -> None:
    change = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n \ufeffa = 1\r\n-b = 2\r\n+b = 3\r\n"
    head = tmp_path / "head"
    head.mkdir()
    (head / "a.py").write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 3\r\nc = 4\r\n")
    revert(parse(change), head, tmp_path / "before")
    assert (tmp_path / "before" / "a.py").read_bytes().endswith(b"a = 1\r\nb = 2\r\nc = 4\r\n")


def test_a_renamed_file_that_is_no_text_goes_back_to_its_old_name(tmp_path: Path) -> None:
    change = "diff --git a/a.png b/b.png\nsimilarity index 100%\nrename from a.png\nrename to b.png\n"
    head = tmp_path / "head"
    head.mkdir()
    (head / "b.png").write_bytes(b"\x89PNG\r\n")
    revert(parse(change), head, tmp_path / "before")
    assert {path.name: path.read_bytes() for path in (tmp_path / "before").iterdir()} == {"a.png": b"\x89PNG\r\n"}


def test_a_change_cannot_be_taken_back_through_a_link_that_leads_outside(tmp_path: Path) -> None:
    head, outside = tmp_path / "head", tmp_path / "outside"
    head.mkdir()
    outside.mkdir()
    (head / "link").symlink_to(outside)
    text = "diff --git a/link/a.py b/link/a.py\n--- a/link/a.py\n+++ b/link/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    with pytest.raises(NotReversible, match="leads outside"):
        revert(parse(text), head, tmp_path / "before")
    with pytest.raises(NotReversible, match="link is a symbolic link"):
        revert(parse(text.replace("link/a.py", "link")), head, tmp_path / "again")
    assert list(outside.iterdir()) == []


SUBMODULE = (
    "diff --git a/lib b/lib\nindex {0}..{1} 160000\n--- a/lib\n+++ b/lib\n@@ -1 +1 @@\n"
    "-Subproject commit {0}\n+Subproject commit {1}\n"
).format("a" * 40, "b" * 40)
NEW_SUBMODULE = (
    "diff --git a/lib b/lib\nnew file mode 160000\n--- /dev/null\n+++ b/lib\n@@ -0,0 +1 @@\n"
    f"+Subproject commit {'b' * 40}\n"
)
OLD_SUBMODULE = (
    "diff --git a/lib b/lib\ndeleted file mode 160000\n--- a/lib\n+++ /dev/null\n@@ -1 +0,0 @@\n"
    f"-Subproject commit {'b' * 40}\n"
)
EDIT = "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


@pytest.mark.parametrize("submodule", [SUBMODULE, NEW_SUBMODULE, OLD_SUBMODULE])
def test_a_submodule_which_no_checkout_has_is_left_alone(tmp_path: Path, submodule: str) -> None:
    head = tmp_path / "head"
    (head / "lib").mkdir(parents=True)
    (head / "m.py").write_text("x = 2\n")
    (head / "m.py").chmod(0o755)
    revert(parse(submodule + EDIT), head, tmp_path / "before")
    assert (tmp_path / "before" / "m.py").read_text() == "x = 1\n"
    assert os.access(tmp_path / "before" / "m.py", os.X_OK)
    assert list((tmp_path / "before" / "lib").iterdir()) == []
    with pytest.raises(NotReversible, match=r"in submodules alone \(lib\), which are not checked out"):
        revert(parse(submodule), head, tmp_path / "again")


def test_files_that_swapped_names_or_became_folders_go_back(tmp_path: Path) -> None:
    head = tmp_path / "head"
    (head / "d").mkdir(parents=True)
    for name, content in {"a": "was b\n", "b": "was a\n", "d/x": "new\n"}.items():
        (head / name).write_text(content)
    renames = "".join(
        f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n"
        for old, new in (("a", "b"), ("b", "a"))
    )
    folder = (
        "diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-file\n"
        "diff --git a/d/x b/d/x\nnew file mode 100644\n--- /dev/null\n+++ b/d/x\n@@ -0,0 +1 @@\n+new\n"
    )
    revert(parse(renames + folder), head, tmp_path / "before")
    files = {path.name: path.read_text() for path in (tmp_path / "before").iterdir()}
    assert files == {"a": "was a\n", "b": "was b\n", "d": "file\n"}
    (head / "d" / "rest").touch()
    with pytest.raises(NotReversible, match="do not match: Is a directory"):
        revert(parse(folder), head, tmp_path / "again")
