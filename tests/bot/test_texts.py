"""The file of all texts of help, errors and pages, and the wording that none of them may use."""

from __future__ import annotations

import pytest

from tests import comments, texts
from tests.conftest import ROOT

#: Sentences of earlier versions that read badly.
OLD_WORDING = (
    "Budget of today",
    "of these cached",
    "of its limit",
    "Decisions of the last",
    "nothing had to be said",
    "what became of each issue",
    "from this probability on",
    "hearing of merge queues",
    "no contents: write",
    ": none in USD",
    "not there yet",
    "nobody can be asked",
    "an unknown amount (no price",
    "spelled right",
    "is no issue or pull request on",
    "runs inside of a workflow",
    "!r} is none of",
    "may not, not so soon again",
    "Worked before and may not now",
    "that a careful reviewer objects;",
    "which of the alternatives it should be",
    "this is clear now",
    "takes one back for good",
    "deleted after its time",
    "goes before it",
    "killed, it goes on",
    "may be given several times",
    "Create it on {{",
    "The app exists",
)
#: Everything that people meet: code with texts, pages, prompts left out, and documentation.
SOURCES = ("bot", "docs", "README.md", "tests/comments.md", "tests/texts.md", "action.yml", "app.yml")
SUFFIXES = (".py", ".html", ".jinja", ".md", ".yml", ".toml")


def test_the_file_of_texts_is_up_to_date() -> None:
    assert texts.FILE.read_text("utf-8") == texts.text(), "python -m tests.texts, then read what changed"


@pytest.mark.parametrize("wording", OLD_WORDING)
def test_no_text_has_the_old_wording(wording: str) -> None:
    places = []
    for source in SOURCES:
        path = ROOT / source
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            is_prompt = "prompts" in file.parts
            if file.suffix in SUFFIXES and not is_prompt and wording.lower() in file.read_text("utf-8").lower():
                places.append(str(file.relative_to(ROOT)))
    assert places == []


def test_the_files_have_every_kind_of_text() -> None:
    assert "### `bouncer doctor`" in texts.FILE.read_text("utf-8")
    assert "/bouncer" in comments.FILE.read_text("utf-8")
