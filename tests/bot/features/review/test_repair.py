"""A finding proposes its repair, which is tried on the code before the finding is posted."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from bot.core.actions import SetCheck, SubmitReview
from bot.features.review.repair import replaced
from bot.features.shared.findings import Edit
from bot.web.dashboard.posted import unposted
from tests.bot.features import reviews
from tests.bot.features.conftest import Build
from tests.bot.features.reviews import DIFF, reply, snapshot
from tests.builders import finding, pull_opened
from tests.scripted import ScriptedModel

HEAD = "import lib\n\n" + "\n" * 6 + "def load(path):\n    with open(path) as file:\n        data = parse(file)\n"
HEAD += "        return data.value\n    raise Missing(path)\n\n\n# a second\ndef other(data):\n"
HEAD += "    return data.value\n"


def edit(old: str, new: str, path: str = "src/app.py") -> dict[str, str]:
    return {"path": path, "old": old, "new": new}


def review(services: Build, *edits: dict[str, str], head: str | None = HEAD) -> Any:
    files = {} if head is None else {"checkouts": {"a" * 40: {"src/app.py": head.encode()}}}
    model = ScriptedModel([reply(finding(repair=list(edits)))])
    return reviews.review(pull_opened(), services(model, snapshot().model_copy(update=files)))


MENDS = {
    "lines": [edit("        return data.value", "        return data.value if data else None")],
    "without indentation": [edit("return data.value", "if data is None:\n    return None\nreturn data.value")],
    "with number and mark": [edit("   12 +         return data.value", "   12 +         return None")],
    "part of a line": [edit("data.value", "data and data.value")],
    "operator": [edit("=", "+=")],
    "fence": [edit("```python\n        return data.value\n```", "```python\n        return 1\n```")],
    "two edits": [edit("data = parse(file)", "data = read(file)"), edit("import lib", "from lib import read")],
    "deletes": [edit("        return data.value", "")],
    "directive": [edit("# a second", "# type: ignore")],
    "none": [],
}


@pytest.mark.parametrize("edits", MENDS.values(), ids=MENDS)
def test_a_repair_that_applies_and_changes_the_code_lets_the_finding_stand(
    services: Build, edits: list[dict[str, str]]
) -> None:
    for head in (HEAD, HEAD.replace("\n", "\r\n")):
        decision = review(services, *edits, head=head)
        assert [type(action) for action in decision.actions] == [SubmitReview, SetCheck]
        assert len(decision.record.posted[0].repair) == len(edits)


FALLS = {
    "layout": ([edit("return data.value", "return (data.value)")], "repair changes nothing"),
    "comment": ([edit("return data.value", "# may be None\nreturn data.value")], "repair changes nothing"),
    "equal": ([edit("return data.value", "return data.value")], "repair changes nothing"),
    "absent line": ([edit("return value.data", "return None")], "repair does not apply"),
    "absent file": ([edit("return data.value", "return None", path="src/other.py")], "repair does not apply"),
    "empty": ([edit("", "return None")], "repair does not apply"),
    "one of two": (
        [edit("return data.value", "return None"), edit("parse(data)", "read(data)")],
        "repair does not apply",
    ),
}


@pytest.mark.parametrize(("edits", "why"), FALLS.values(), ids=FALLS)
def test_a_repair_that_fails_drops_the_finding_and_is_shown(
    services: Build, edits: list[dict[str, str]], why: str
) -> None:
    decision = review(services, *edits)
    assert decision.verdict == "clean"
    assert [type(action) for action in decision.actions] == [SetCheck]
    assert [row.why for row in unposted(decision)] == [why]
    assert decision.record.counts == {"posted": 0, "reported": 1, f"suppressed:{why.replace(' ', '_')}": 1}
    assert len(decision.record.suppressed[0].finding.repair) == len(edits)


def test_a_repair_of_a_comment_mends_a_finding_about_it(services: Build) -> None:
    head = HEAD.replace("\n\n\n# a", "\n\n# a", 1)
    assert head.split("\n")[14] == "# a second"
    diff = DIFF + "@@ -14,2 +15,2 @@\n-# another\n+# a second\n def other(data):\n"
    files = {"checkouts": {"a" * 40: {"src/app.py": head.encode()}}}
    for quote, line, verdict in (("# a second", 15, "defects"), ("data = parse(file)", 11, "clean")):
        mends = finding(quote=quote, line=line, severity="low", repair=[edit("# a second", "# the other")])
        case = snapshot(diff).model_copy(update=files)
        model = ScriptedModel([reply(mends)])
        decision = reviews.review(pull_opened(), services(model, case, "review: {min_severity: low}"))
        assert decision.verdict == verdict


def test_each_repair_of_two_findings_on_one_line_is_tried(services: Build) -> None:
    files = {"checkouts": {"a" * 40: {"src/app.py": HEAD.encode()}}}
    first = finding(confidence=90, repair=[edit("return value.data", "return None")])
    second = finding(confidence=80, comment="It is a copy.", repair=[edit("data.value", "data.value.copy()")])
    model = ScriptedModel([reply(first, second)])
    decision = reviews.review(pull_opened(), services(model, snapshot().model_copy(update=files)))
    assert [posted.comment for posted in decision.record.posted] == ["It is a copy."]


def test_only_what_is_known_of_a_file_can_drop_a_finding(services: Build) -> None:
    assert review(services, edit("return value.data", "return None"), head=None).verdict == "defects"
    assert review(services, edit("return data.value", "return None"), head=None).verdict == "defects"
    assert review(services, edit("return data.value", "return data.value"), head=None).verdict == "clean"


def test_the_place_nearest_to_the_finding_is_edited() -> None:
    new = Edit(path="src/app.py", old="return data.value", new="return None")
    assert (replaced(HEAD, new, 12) or "").split("\n")[11] == "        return None"
    assert (replaced(HEAD, new, 18) or "").split("\n")[17] == "    return None"


def test_a_repair_of_a_hostile_file_takes_no_time() -> None:
    text = "a = 1\n" * 150_000
    began = process_time()
    edited = replaced(text, Edit(path="a.py", old="a = 1\n" * 3_000, new="b = 1"), 100)
    assert edited.startswith("a = 1\n" * 99 + "b = 1\na = 1\n")
    assert process_time() - began < 3
