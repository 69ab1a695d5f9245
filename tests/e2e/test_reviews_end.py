"""Reviews that end: what a pull request hears from its second push on, and when it hears nothing any more."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from werkzeug import Request, Response

from tests.e2e.provider import completion
from tests.e2e.site import APP, BROKEN, FIXED, WORSE, Repository, Site

#: A file without a word that the provider knows.
STEPS = "src/steps.py"


def opened(shop: Site, home: str, content: str = BROKEN, **values: Any) -> int:
    return shop.slowly.open_pull(home, "Read values", files={APP: content}, **values)


def pushed(shop: Site, home: str, number: int, content: str | None, path: str = APP) -> None:
    shop.slowly.push(home, number, {path: content})


def findings(shop: Site, home: str, number: int) -> list[str]:
    return [comment.body.split(".")[0] for comment in shop.inline(home, number)]


class Inventor:
    """A reviewer that is never content: two new findings a round, and all earlier ones again in other words."""

    def __init__(self) -> None:
        self.rounds = 0

    def __call__(self, request: Request) -> Response:
        text = json.loads(request.data)["messages"][-1]["content"]
        steps = dict.fromkeys(re.findall(r"^ *\d+ \+ (step_\d+\(value\))", text, re.MULTILINE))
        self.rounds += 1
        findings = [self._finding(step, number) for number, step in enumerate(steps)]
        return completion(json.dumps({"reasoning": "More is wrong.", "findings": findings}))

    def _finding(self, step: str, number: int) -> dict[str, Any]:
        return {
            "path": STEPS, "quote": step, "line": None, "symbol": step.partition("(")[0],
            "comment": f"`{step}` breaks, version {self.rounds}. It is number {number}.",
            "category": ("data", "coding", "structural")[self.rounds % 3],
            "impact": "reliability", "severity": "high",
        }  # fmt: skip


def test_seven_pushes_with_a_reviewer_that_is_never_content(shop: Site, repository: Repository) -> None:
    home, inventor = repository(), Inventor()
    title = "Seven pushes"
    shop.model.misbehave(title, *[inventor] * 100)
    lines = [f"step_{count}(value)\n" for count in range(20)]
    number = shop.slowly.open_pull(home, title, files={STEPS: "".join(lines[:2])})
    for count in range(2, 8):
        pushed(shop, home, number, "".join(lines[: 2 * count]), STEPS)
    quotes = [re.findall(r"step_\d+", comment.body)[0] for comment in shop.inline(home, number)]
    assert quotes == [f"step_{count}" for count in range(8)], "at most review.max_total, none twice"
    assert (inventor.rounds, len(shop.reviews(home, number))) == (4, 4), "then no model is asked any more"
    reviews = shop.decided(home, number, "review")
    assert [decision.verdict for decision in reviews] == ["defects"] * 4 + ["not_reviewed"] * 3
    assert [decision.record.counts.get("suppressed:already_posted", 0) for decision in reviews[:4]] == [0, 2, 4, 6]
    run = shop.review_check(home, number)
    title = "Not reviewed: 8 findings were posted, review.max_total allows 8"
    assert (run.conclusion, run.output["title"]) == ("skipped", title)
    shop.slowly.comment(home, number, "/bouncer review", "mia")
    (answer,) = shop.comments_on(home, number)
    assert "I have posted 8 findings here, the most for one pull request (`review.max_total`)." in answer
    assert inventor.rounds == 4


FAR = "".join(f"value_{count} = {count}\n" for count in range(60))


def test_a_later_round_reads_what_changed_and_what_depends_on_it(shop: Site, repository: Repository) -> None:
    home = repository(**{APP: f"def load(path):\n    return path\n{FAR}"})
    changed = FAR.replace("value_20 = 20", "value_20 = load(2)").replace("value_50 = 50", "value_50 = 5")
    body = f"def load(path):\n    return open(path)\n{changed}"
    number = opened(shop, home, body)
    pushed(shop, home, number, body.replace("open(path)", "open(path).read()"))
    first, second = shop.model.about("value_20 = load(2)", "ReviewReply")
    assert all(
        code in first.text for code in ("+     return open(path)", "+ value_20 = load(2)", "+ value_50 = 5")
    )
    assert "+     return open(path).read()" in second.text
    assert "+ value_20 = load(2)" in second.text, "it calls what changed"
    assert "+ value_50 = 5" not in second.text
    summary = shop.review_check(home, number).output["summary"]
    since = shop.decided(home, number, "review")[0].subject.revision[4:11]
    assert summary.startswith(
        f"Looked at 1 changed line since {since}, and at lines of the change that depend on them, in 1 of 1 file."
    )
    before = len(shop.model.asked)
    shop.github.commit(home, {"README.md": "# Another\n"})
    pushed(shop, home, number, "More.\n", "docs/notes.lock")
    assert len(shop.model.about("value_20 = load(2)", "ReviewReply")) == 2
    assert len(shop.model.asked) == before, "nothing to read, so nobody is asked"
    assert shop.review_check(home, number).output["title"] == "No defects found"


def test_after_a_clean_round_only_the_check_says_what_was_looked_at(shop: Site, repository: Repository) -> None:
    home = repository()
    number = opened(shop, home, FIXED)
    assert (shop.inline(home, number), shop.reviews(home, number), shop.comments_on(home, number)) == ([], [], [])
    run = shop.review_check(home, number)
    assert (run.conclusion, run.output["title"]) == ("success", "No defects found")
    assert run.output["summary"] == (
        "Looked at 3 changed lines in 1 file.\n\nPosted so far: 0 of at most 8 findings.\n\n"
        "*An AI model's opinion; it may be wrong.* `openai:gpt-5-mini`"
    )


@pytest.mark.parametrize("way", ["answered", "resolved", "outdated"])
def test_a_finding_that_was_dealt_with_never_returns_in_other_words(
    shop: Site, repository: Repository, way: str
) -> None:
    home = repository()
    number = opened(shop, home)
    (comment,) = shop.inline(home, number)
    if way == "answered":
        shop.github.reply(home, comment.id, "The caller checks that.", by="alice")
    elif way == "resolved":
        shop.github.resolve(home, comment.id, by="alice")
    shop.quiet()
    # The defect moves to the line that replaces its own, and the model has other words for it.
    reports = {
        "path": APP, "quote": "return data.value or 0", "line": None, "symbol": "data", "category": "data",
        "comment": "Reads an attribute of None.", "impact": "reliability", "severity": "high",
    }  # fmt: skip
    again = completion(json.dumps({"reasoning": "Still.", "findings": [reports]}))
    shop.model.misbehave("return data.value or 0", again)
    code = BROKEN.replace("data.value", "data.value or 0")
    pushed(shop, home, number, code if way == "outdated" else f"{code}# return data.value\n")
    assert findings(shop, home, number) == ["Fails for an empty file"]
    counts = shop.decided(home, number, "review")[-1].record.counts
    assert (counts["posted"], counts["suppressed:already_posted"]) == (0, 1)


def test_from_the_third_round_on_only_what_is_grave_is_posted(shop: Site, repository: Repository) -> None:
    home = repository()
    number = opened(shop, home, FIXED)
    pushed(shop, home, number, f"import os\n\n\n{FIXED}")
    medium = {"path": APP, "line": None, "category": "data", "impact": "reliability", "severity": "medium"}
    reports = [
        {**medium, "quote": "mode = os.name", "symbol": "mode", "comment": "Wrong on Windows."},
        {**medium, "quote": "cache[path] = data", "symbol": "cache", "comment": "Grows.", "severity": "high"},
    ]
    shop.model.misbehave("mode = os.name", completion(json.dumps({"reasoning": "Two.", "findings": reports})))
    pushed(shop, home, number, WORSE.replace("import os\n", "import os\n\nmode = os.name\n"))
    assert findings(shop, home, number) == ["Grows"]
    assert (
        "- 1 neither of high severity nor proven, from review 3 on"
        in (shop.review_check(home, number).output["summary"])
    )


@pytest.mark.parametrize("when", ["open", "command"])
def test_reviews_happen_when_the_maintainers_want_them(shop: Site, repository: Repository, when: str) -> None:
    home = repository(**{".github/bouncer.yml": f"review: {{when: {when}}}\n"})
    number = opened(shop, home)
    assert findings(shop, home, number) == ["Fails for an empty file"] * (when == "open")
    pushed(shop, home, number, WORSE)
    assert len(shop.reviews(home, number)) == (when == "open")
    shop.slowly.comment(home, number, "/bouncer review", "stranger")
    assert len(shop.reviews(home, number)) == (when == "open"), "who may spend is as ever"
    shop.slowly.comment(home, number, "/bouncer review", "mia")
    assert findings(shop, home, number) == ["Fails for an empty file", "Grows without end"]
    shop.slowly.comment(home, number, "/bouncer review", "mia")
    assert shop.comments_on(home, number)[-1].startswith("mia: I have reviewed ")
    assert "Ask again after the next commit." in shop.comments_on(home, number)[-1]
