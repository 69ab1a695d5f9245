"""From a webhook to a draft pull request that only adds a failing test, and to the check of its fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import NO_PLUGINS
from tests.e2e.site import VAGUE, Repository, Site

pytestmark = pytest.mark.debian("bubblewrap")


BUGGY = (
    "def split(items, size):\n    return [items[i * size : (i + 1) * size] for i in range(len(items) // size)]\n"
)
FIXED = BUGGY.replace("len(items) // size", "-(-len(items) // size)")
TESTS = "from shapes import split\n\n\ndef test_even():\n    assert split([1, 2], 2) == [[1, 2]]\n"
CONFIG = """\
reproduce:
  mode: MODE
  automatic: true
  samples: SAMPLES
  command: python -m pytest -q {tests}
verify:
  execute: true
"""
REPORT = "With version 4.2 `split([1, 2, 3], 2)` returns `[[1, 2]]`. I expect `[[1, 2], [3]]`."


@pytest.fixture
def home(repository: Repository) -> Callable[..., str]:
    def make(mode: str, samples: int = 3) -> str:
        files = {
            "pytest.ini": NO_PLUGINS["pytest.ini"].decode(),
            "shapes.py": BUGGY,
            "tests/test_shapes.py": TESTS,
            ".github/bouncer.yml": CONFIG.replace("MODE", mode).replace("SAMPLES", str(samples)),
        }
        return repository(**files)

    return make


def test_a_labelled_issue_becomes_a_draft_pull_request_with_its_test(shop: Site, home: Callable[..., str]) -> None:
    name = home("pull")
    number = shop.slowly.open_issue(name, "split drops the rest", REPORT)
    assert [item.verdict for item in shop.decided(name, number)] == ["WELL_SPECIFIED"]

    shop.slowly.label(name, number, "bug", by="mia")

    (decision,) = shop.decided(name, number, "reproduce")
    assert decision.verdict == "reproduced", decision.reason
    assert set(shop.github.labels(name, number)) == {"bug", "reproduced"}
    draft = shop.github.find(name, number + 1)
    assert draft.pull is not None
    assert draft.pull.draft
    assert draft.title == f"Add a failing test for #{number}: split drops the rest"
    base, head = shop.github.world.pull_files(draft.pull)
    changed = {path for path in set(base) | set(head) if base.get(path) != head.get(path)}
    assert changed == {"tests/test_shapes.py"}
    assert head["tests/test_shapes.py"].decode() == (
        f"{TESTS}\n\ndef test_issue_{number}():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
    )
    assert f"This adds one test for #{number} and nothing else." in draft.body
    assert "as reported (3 of 3 drafts agree)" in draft.body


def test_an_issue_of_a_repository_without_commits_is_read(shop: Site) -> None:
    shop.github.create_repository(
        "planco/.github",
        {
            ".github/bouncer.yml": "triage: {investigate: true}\n"
            + CONFIG.replace("MODE", "comment").replace("SAMPLES", "1")
        },
    )
    name = shop.repository("planco/roadmap")
    with shop.github.world.lock:
        shop.github.world.repositories[name].branches.clear()
    number = shop.slowly.open_issue(name, *VAGUE)
    assert shop.github.labels(name, number) == ["needs-info"]
    shop.slowly.comment(name, number, "/bouncer reproduce", "mia")
    assert shop.comments_on(name, number)[-1].startswith("**Not run.** The default branch has no commit")
    assert not shop.jobs.list(("dead",), name)


@pytest.mark.parametrize(
    "command",
    [
        # Was read as an assignment and a command, and mounted the folder above it.
        "{data}/x/a=b sh -c 'rev {data}/credentials.json; rev {data}/x/credentials.json; exit 1'",
        "{data}/x/bin/python -c 'print(1)'",
        "sh -c 'rev {data}/credentials.json; rev {data}/x/credentials.json; exit 1'",
    ],
)
def test_a_repository_s_command_cannot_make_the_operator_s_files_public(
    shop: Site, repository: Repository, tmp_path: Path, command: str
) -> None:
    data = tmp_path / "data"
    (data / "x" / "bin").mkdir(parents=True)
    for folder in (data, data / "x", data / "x" / "bin"):
        (folder / "credentials.json").write_text("ghs_PLANTEDsecret")
    config = (
        CONFIG.replace("MODE", "comment")
        .replace("SAMPLES", "1")
        .replace("python -m pytest -q {tests}", '"' + command.format(data=data) + '"')
    )
    name = repository(**{"shapes.py": BUGGY, "tests/test_shapes.py": TESTS, ".github/bouncer.yml": config})
    number = shop.slowly.open_issue(name, "split drops the rest", REPORT)

    shop.slowly.comment(name, number, "/bouncer reproduce", "mia")

    (body,) = shop.comments_on(name, number)
    assert "ghs_PLANTEDsecret" not in body
    assert "ghs_PLANTEDsecret"[::-1] not in body
    (decision,) = shop.decided(name, number, "reproduce")
    assert "ghs_PLANTEDsecret"[::-1] not in decision.model_dump_json()
    if not command.startswith("sh"):
        assert body.startswith(
            "**Not run.** `reproduce.command` cannot be used: its program is named without a folder"
        )
