"""Several looks at one change, and a second question to each finding before it is posted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bot.core.errors import ModelError
from bot.features.services import Services
from bot.models.conversation import Answer
from bot.models.protocol import Prompt
from bot.models.wrappers import Mean
from tests.bot.features import reviews
from tests.bot.features.conftest import Build
from tests.bot.features.reviews import CLEAN, DIFF, reply, snapshot
from tests.builders import finding, pull_opened
from tests.scripted import ScriptedModel

PANEL = "review: {strategy: panel, min_severity: low, doubt: false}"
DOUBT = "review: {doubt: true, max_findings: 1}"
NAMED = {
    "trace": "An empty file gives None.",
    "breaks_when": "an empty file",
    "quote": "return data.value",
    "instead": "raises AttributeError",
    "verdict": "upheld",
}

#: The changed file at the head.
CODE = (
    b"from lib import parse\n\n\n\n\n\n\n\ndef load(path):\n    with open(path) as file:\n"
    b"        data = parse(file)\n        return data.value\n    raise Missing(path)\n"
)
EMPTY = finding()
OTHER = finding(
    quote="data = parse(file)",
    line=11,
    symbol="parse",
    comment="Reads twice. The file was read before.",
    category="iis",
    impact="performance_efficiency",
    severity="medium",
)


def review(services: Services) -> Any:
    return reviews.review(pull_opened(), services)


def comments(decision: Any) -> list[str]:
    return [comment.body for comment in reviews.inline(decision)]


def by_lens(**replies: Any) -> Callable[[Prompt], Any]:
    """Each look answers by the first word of its lens."""

    def answer(prompt: Prompt) -> Any:
        return replies[prompt.user.rpartition("What you look at: ")[2].split()[0].strip(",")]

    return answer


def test_looks_are_merged_by_defect_and_what_more_of_them_see_comes_first(services: Build) -> None:
    worded = finding(
        quote="        return data.value\n", category="structural", severity="low", comment="None here."
    )
    script = by_lens(
        boundaries=reply(OTHER, EMPTY), contracts=reply(worded), errors=ModelError("no", "refused"), what=reply()
    )
    model = ScriptedModel(script)
    decision = review(services(model, snapshot(), PANEL))
    assert len({prompt.system for prompt in model.asked}) == 1, (
        "what is the same comes first, for the provider's cache"
    )
    assert comments(decision) == [
        "Fails for an empty file. `parse` returns None then.\n\nSeverity: high. *AI review, may be wrong.*",
        "Reads twice. The file was read before.\n\nSeverity: medium. *AI review, may be wrong.*",
    ]
    assert [(item["line"], item["looks"]) for item in decision.record.as_json()["posted"]] == [(12, 2), (11, 1)]
    assert (decision.record.looks, decision.record.agreement) == (4, {"1": 1, "2": 1})
    assert decision.usage.calls == 3


@pytest.mark.parametrize("refused", [1, 4])
def test_looks_without_a_usable_answer_cost_too(services: Build, refused: int) -> None:
    refusals = [Answer("I cannot.", "refusal", 10, 2)] * refused
    decision = review(services(ScriptedModel([*refusals, *[CLEAN] * (4 - refused)]), snapshot(), PANEL))
    assert decision.abstained == ("model:refused" if refused == 4 else None)
    assert decision.usage.calls == 4


@pytest.mark.parametrize("readable", [0, 1])
def test_rounds_without_a_usable_answer_cost_too(services: Build, readable: int) -> None:
    script = [*[reply(EMPTY)] * readable, Answer("I cannot.", "refusal", 10, 2)]
    decision = review(services(ScriptedModel(script), snapshot(), "review: {strategy: reflexion}"))
    assert (decision.usage.calls, len(comments(decision))) == (readable + 1, readable)


def doubted(*answers: Any) -> ScriptedModel:
    return ScriptedModel([reply(EMPTY, OTHER), *answers])


def test_a_finding_that_is_refuted_gives_its_place_to_the_next_one(services: Build) -> None:
    refuted = {**NAMED, "trace": "`parse` never returns None.", "verdict": "refuted"}
    stands = {**NAMED, "quote": "   11 +         data = parse(file)"}
    model = doubted(refuted, stands)
    decision = review(services(model, snapshot(), DOUBT))
    assert comments(decision) == [
        "Reads twice. The file was read before.\n\nSeverity: medium. *AI review, may be wrong.*"
    ]
    assert "Dropped after a second look: 1." in decision.actions[0].body
    assert decision.record.counts == {"reported": 2, "posted": 1, "suppressed:doubted": 1}
    first, second = decision.record.as_json()["doubts"]
    assert (first["outcome"], first["why"]) == ("refuted", "`parse` never returns None.")
    assert (second["outcome"], second["breaks_when"]) == ("stands", "an empty file")
    assert "   12 +         return data.value" in model.asked[1].user
    assert decision.usage.calls == 3


def test_a_quote_of_lines_between_which_one_was_removed_counts(services: Build) -> None:
    quote = "    with open(path) as file:\n        data = parse(file)"
    decision = review(services(ScriptedModel([reply(EMPTY), {**NAMED, "quote": quote}]), snapshot(), DOUBT))
    assert [doubt.outcome for doubt in decision.record.doubts] == ["stands"]


def test_code_that_one_of_two_looks_was_shown_is_no_dependency(services: Build) -> None:
    config = "review: {strategy: panel, looks: 2}"
    for depends_on, outcome in ((["parse"], "unsure"), ([], "stands")):
        first, second = (finding(severity="medium", depends_on=names) for names in (["load"], depends_on))
        model = ScriptedModel([reply(first), reply(second), {**NAMED, "p_holds": 60}])
        decision = review(services(model, snapshot(), config))
        assert [doubt.outcome for doubt in decision.record.doubts] == [outcome]


def test_a_finding_stays_only_where_input_line_and_effect_are_named(services: Build) -> None:
    for lacking, why in (
        ({"breaks_when": " "}, "no input or state was named with which it breaks"),
        ({"instead": ""}, "it was not said what the code does instead"),
        ({"quote": "return other.value"}, "the line where it goes wrong is not in the code"),
        ({"quote": ""}, "the line where it goes wrong is not in the code"),
    ):
        model = ScriptedModel([reply(EMPTY), {**NAMED, **lacking}])
        decision = review(services(model, snapshot(), DOUBT))
        assert comments(decision) == []
        assert [(doubt["outcome"], doubt["why"]) for doubt in decision.record.as_json()["doubts"]] == [
            ("not named", why)
        ]


def test_the_function_at_the_head_is_shown_and_may_be_quoted(services: Build) -> None:
    body = ("with open(path) as file:", "    data = parse(file)", "    return data.value", "raise Missing(path)")
    head = "\n" * 8 + "\n    ".join(("def load(path):", *body)) + "\n\n\n# far below\n"
    model = ScriptedModel([reply(EMPTY), {**NAMED, "quote": "def load(path):"}])
    recorded = snapshot().model_copy(update={"files": {f"{'a' * 40}:src/app.py": head.encode()}})
    decision = review(services(model, recorded, DOUBT))
    assert "=== src/app.py (after the change, the rest of it)\n    9   def load(path):" in model.asked[1].user
    assert "far below" not in model.asked[1].user
    assert len(comments(decision)) == 1


def test_confidence_decides_which_findings_are_asked_about_and_posted(services: Build) -> None:
    unsure, guess = {**EMPTY, "confidence": 30}, {**OTHER, "confidence": 60}
    decision = review(services(ScriptedModel([reply(unsure, guess)]), snapshot()))
    assert [item["reason"] for item in decision.record.as_json()["suppressed"]] == ["unlikely"]
    assert [body[:11] for body in comments(decision)] == ["Reads twice"]

    # The second question has the last word, whatever the first look thought; below 25 % it is not put.
    def answer(prompt: Prompt) -> Any:
        if prompt.purpose == "review":
            return reply(unsure, guess)
        return {**NAMED, "p_holds": 80 if EMPTY["comment"] in prompt.user else 40, "verdict": "upheld"}

    model = ScriptedModel(answer)
    decision = review(services(model, snapshot(), "review: {doubt: true}"))
    assert [body[:5] for body in comments(decision)] == ["Fails"]
    assert decision.record.as_json()["posted"][0]["confidence"] == 80
    assert [doubt["p_holds"] for doubt in decision.record.as_json()["doubts"]] == [40, 80]
    strict = review(services(ScriptedModel(answer), snapshot(), "review: {doubt: true, min_confidence: 90}"))
    assert comments(strict) == [], "the maintainer draws the line"
    nothing = review(
        services(ScriptedModel([reply({**EMPTY, "confidence": 20})]), snapshot(), "review: {doubt: true}")
    )
    assert (nothing.verdict, nothing.usage.calls) == ("clean", 1)


def test_a_doubter_sees_the_whole_of_a_short_change_and_the_code_around_it(services: Build) -> None:
    files = {"src/app.py": CODE, "lib.py": b"def parse(file):\n    return file.read() or None\n"}
    recorded = snapshot().model_copy(update={"checkouts": {"a" * 40: files}})
    model = ScriptedModel([reply(EMPTY), {**NAMED, "quote": "return file.read() or None"}])
    decision = review(services(model, recorded, DOUBT))
    assert 'name="whole change"' in model.asked[1].user
    assert "--- lib.py\n@ 1 `parse`, called by `load`\n def parse(file):" in model.asked[1].user
    assert len(comments(decision)) == 1, "the line where it goes wrong may be in what is called"


def test_a_doubt_that_cannot_be_asked_drops_nothing(services: Build) -> None:
    decision = review(services(ScriptedModel([reply(EMPTY), ModelError("no", "refused")]), snapshot(), DOUBT))
    assert len(comments(decision)) == 1
    assert decision.record.as_json()["doubts"][0]["outcome"] == "not asked"
    assert json.dumps(decision.record.as_json())


def test_an_unsure_finding_stands_only_if_its_severity_is_high(services: Build) -> None:
    unsure = {**NAMED, "p_holds": 40, "verdict": "unsure"}
    high = review(services(ScriptedModel([reply(EMPTY), unsure]), snapshot(), DOUBT))
    assert (len(comments(high)), high.record.as_json()["doubts"][0]["outcome"]) == (1, "stands")
    medium = review(services(ScriptedModel([reply({**EMPTY, "severity": "medium"}), unsure]), snapshot(), DOUBT))
    assert (comments(medium), medium.record.as_json()["doubts"][0]["outcome"]) == ([], "unsure")
    assert "- 1 not upheld by a second look" in reviews.check(medium).summary
    strict = "review: {doubt: true, min_confidence: 60}"
    assert comments(review(services(ScriptedModel([reply(EMPTY), unsure]), snapshot(), strict))) == []


def test_a_refuted_finding_is_dropped_whatever_the_threshold(services: Build) -> None:
    refuted = {**NAMED, "p_holds": 5, "verdict": "refuted"}
    config = "review: {doubt: true, min_confidence: 0}"
    decision = review(services(ScriptedModel([reply(EMPTY), refuted]), snapshot(), config))
    assert (comments(decision), decision.record.doubts[0].outcome) == ([], "refuted")


@pytest.mark.parametrize(("severity", "chance", "count"), [("medium", 70, 0), ("medium", 75, 1), ("high", 70, 1)])
def test_a_finding_that_depends_on_other_code_has_to_be_more_certain(
    services: Build, severity: str, chance: int, count: int
) -> None:
    dependent = {**EMPTY, "severity": severity, "confidence": 90, "depends_on": ["parse in lib.py"]}
    model = ScriptedModel([reply(dependent), {**NAMED, "p_holds": chance, "verdict": "upheld"}])
    assert len(comments(review(services(model, snapshot())))) == count


def test_code_that_a_finding_depends_on_is_looked_up_and_shown(services: Build) -> None:
    files = {"src/app.py": CODE, "other.py": b"class Holder:\n    def reset_value(self):\n        return None\n"}
    recorded = snapshot().model_copy(update={"checkouts": {"a" * 40: files}})
    dependent = {**EMPTY, "confidence": 30, "depends_on": ["Holder.reset_value in other.py"]}
    model = ScriptedModel([reply(dependent, OTHER), {**NAMED, "p_holds": 70}])
    decision = review(services(model, recorded))
    assert [prompt.purpose for prompt in model.asked] == ["review", "review.doubt"], "no other finding is doubted"
    assert "def reset_value(self):" in model.asked[1].user
    assert "def reset_value(self):" not in model.asked[0].user
    assert len(comments(decision)) == 2


TWO_FILES = DIFF + DIFF.replace("app.py", "lib.py")


def test_looks_differ_in_order_lens_and_code_around(services: Build) -> None:
    files = {"src/app.py": CODE, "src/lib.py": CODE, "lib.py": b"def parse(file):\n    return file.read()\n"}
    recorded = snapshot(TWO_FILES).model_copy(update={"checkouts": {"a" * 40: files}})
    model = ScriptedModel(lambda prompt: reply())
    review(services(model, recorded, PANEL))
    prompts = sorted(model.asked, key=lambda prompt: prompt.turn)
    assert ['name="code around the change"' in prompt.user for prompt in prompts] == [False, True, True, True]
    firsts = [prompt.user.index("=== src/app.py") < prompt.user.index("=== src/lib.py") for prompt in prompts]
    assert firsts == [True, False, True, False]
    assert all("\nTitle: " in prompt.user for prompt in prompts), "what is meant is no code"
    assert "Report nothing else" in prompts[0].user


def test_looks_take_turns_between_models_whose_agreement_alone_counts(services: Build) -> None:
    sure, unsure = {**EMPTY, "confidence": 60}, {**EMPTY, "confidence": 40}

    def looks(*answers: Any) -> Any:
        models = [ScriptedModel([answer] * 4, str(number)) for number, answer in enumerate(answers)]
        return review(services(Mean(models) if len(models) > 1 else models[0], snapshot(), PANEL))

    (posted,) = looks(reply(sure), reply(unsure)).record.posted
    assert (posted.looks, posted.models) == (4, ("scripted:0", "scripted:1"))
    both, alone = looks(reply(unsure), reply(unsure)), looks(reply(unsure))
    assert (len(comments(both)), len(comments(alone))) == (1, 0), "one model repeats itself"
    failing = looks(ModelError("no", "refused"), reply(sure))
    assert failing.record.posted[0].models == ("scripted:1",), "the next model takes the turn of one that fails"
