"""For every answer of a provider, a caller gets a typed value or one of two errors."""

from __future__ import annotations

import json
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from bot.core.errors import BouncerError, ModelError, TransientError
from bot.core.frozen import Frozen, Lenient
from bot.models.conversation import MAX_CHARACTERS, Answer, Unusable, extract, read, strict
from tests.bot.models.replies import CLEAR, PROMPT, Verdict
from tests.scripted import ScriptedModel

GOOD = CLEAR.model_dump_json()
CUT = Answer('{"explanation": "and then and then', "length", 10, 4000)


def test_a_fitting_answer_becomes_a_typed_value() -> None:
    model = ScriptedModel([CLEAR])
    reply = model.complete(PROMPT, Verdict)
    assert reply.value == CLEAR
    assert reply.text == GOOD
    assert reply.model == model.id == "scripted:test"
    assert (reply.usage.calls, reply.usage.input_tokens) == (1, 2)


def test_an_unusable_answer_gets_one_repair_turn_with_its_fault() -> None:
    model = ScriptedModel(['{"explanation": "x", "label": "MAYBE", "p_bounce": 200}', CLEAR])
    reply = model.complete(PROMPT, Verdict)
    assert reply.value == CLEAR
    assert reply.usage.calls == 2
    question, first_answer, demand = model.requests[1].turns
    assert question.text == PROMPT.user
    assert (first_answer.role, first_answer.text[:16]) == ("assistant", '{"explanation": ')
    assert "p_bounce: Input should be less than or equal to 100" in demand.text
    assert "label: Input should be 'CLEAR' or 'VAGUE'" in demand.text
    assert '"enum":["CLEAR","VAGUE"]' in demand.text


@pytest.mark.parametrize(
    ("bad", "reason"),
    [("I would say it is clear.", "malformed"), ('{"label": "CLEAR"}', "invalid"), ("", "malformed")],
)
def test_a_second_unusable_answer_is_an_error(bad: str, reason: str) -> None:
    model = ScriptedModel([bad, bad, CLEAR])
    with pytest.raises(ModelError) as caught:
        model.complete(PROMPT, Verdict)
    assert caught.value.reason == reason
    assert len(model.requests) == 2
    assert caught.value.usage is not None
    assert caught.value.usage.calls == 2


class Review(Frozen):
    reason: str
    severity: Literal["low", "high"]


class Reviews(Lenient):
    incomplete_lists = ("findings", "places")

    findings: tuple[Review, ...]
    places: tuple[Literal["code", "docs"], ...] = ()
    label: Literal["CLEAR", "VAGUE"]


REVIEW = {"reason": "x", "severity": "high"}


@pytest.mark.parametrize(
    "broken", [{"reason": "y", "severity": "quite high"}, {"severity": "low"}, "one more", None, [REVIEW]]
)
def test_a_list_item_that_stays_invalid_is_left_out_and_counted(broken: Any) -> None:
    answer = {"findings": [broken, REVIEW, broken], "places": ["code", "elsewhere"], "label": "CLEAR"}
    model = ScriptedModel([answer, answer])
    reply = model.complete(PROMPT, Reviews)
    assert reply.value == Reviews(findings=(Review(reason="x", severity="high"),), places=("code",), label="CLEAR")
    assert (reply.left_out, reply.usage.calls) == (3, 2)
    assert ScriptedModel([answer, {"findings": [], "label": "VAGUE"}]).complete(PROMPT, Reviews).left_out == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"findings": [REVIEW, {}], "label": "MAYBE"},
        {"findings": [REVIEW, {}]},
        {"findings": [{}], "label": "CLEAR"},
        {"findings": [], "places": ["elsewhere"], "label": "CLEAR"},
        {"findings": {"0": {}}, "label": "CLEAR"},
    ],
)
def test_an_answer_with_more_faults_than_some_items_is_an_error(answer: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"unusable: (findings|places)") as caught:
        ScriptedModel([answer, answer]).complete(PROMPT, Reviews)
    assert caught.value.reason == "invalid"


def test_an_empty_answer_is_repaired_without_an_empty_turn() -> None:
    model = ScriptedModel(["", CLEAR])
    assert model.complete(PROMPT, Verdict).value == CLEAR
    assert [turn.role for turn in model.requests[1].turns] == ["user", "user"]


def test_an_answer_cut_by_the_limit_is_retried_at_low_effort() -> None:
    model = ScriptedModel([CUT, CLEAR])
    reply = model.complete(PROMPT, Verdict)
    assert [ask.effort for ask in model.requests] == ["medium", "low"]
    assert model.requests[1].retort == ()
    assert reply.usage.output_tokens == 4000 + len(GOOD.split())


def test_an_answer_cut_twice_is_an_abstention_not_a_guess() -> None:
    with pytest.raises(ModelError, match="cut off after 4000 tokens") as caught:
        ScriptedModel([CUT, CUT]).complete(PROMPT, Verdict)
    assert caught.value.reason == "length"


def test_after_a_cut_answer_there_is_still_one_repair_turn_and_no_more() -> None:
    model = ScriptedModel([CUT, "{}", CLEAR])
    assert model.complete(PROMPT, Verdict).usage.calls == 3
    with pytest.raises(ModelError):
        ScriptedModel([CUT, "{}", "{}", CLEAR]).complete(PROMPT, Verdict)


def test_a_whole_answer_that_ends_at_the_limit_is_used() -> None:
    assert ScriptedModel([Answer(GOOD, "length")]).complete(PROMPT, Verdict).finish_reason == "length"


def test_a_refusal_gets_no_repair_turn() -> None:
    model = ScriptedModel([Answer("I cannot help with that.", "refusal"), CLEAR])
    with pytest.raises(ModelError, match="refused") as caught:
        model.complete(PROMPT, Verdict)
    assert caught.value.reason == "refused"
    assert len(model.requests) == 1


@pytest.mark.parametrize("error", [TransientError("busy", 7.0), ModelError("gone", "unavailable")])
def test_a_failure_in_the_second_turn_has_the_usage_of_the_first(error: BouncerError) -> None:
    model = ScriptedModel([Answer("nonsense", "stop", 100, 20), error])
    with pytest.raises(type(error)) as caught:
        model.complete(PROMPT, Verdict)
    assert caught.value is error
    usage = error.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, 100, 20)


# --- the object in a text -----------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
objects = st.dictionaries(st.text(), values)
#: Objects take long to draw.
FEW = settings(max_examples=30)
prose = st.text(alphabet=st.characters(exclude_characters="{}`<"))


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n\n  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"Here is my verdict:\n\n```json\n{GOOD}\n```\nI hope this helps.",
        f"Sure! {GOOD}",
        f"<think>maybe {{unclear}} {{'a': 1}}</think>\n{GOOD}",
        f"{GOOD}\n\n{GOOD}",
        f"{GOOD} (set notation: {{x}})",
    ],
)
def test_the_only_object_in_a_text_is_read(text: str) -> None:
    assert read(text, Verdict) == CLEAR


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("<think>hm</think>", "empty"),
        ("The issue is clear.", "no JSON object"),
        ('["CLEAR"]', "no JSON object"),
        (GOOD[:-3], "broken"),
        ('{"label": "CLEAR"} or rather {"label": "VAGUE"}', "more than one"),
        ('{"label": "CLEAR", "label": "VAGUE"}', "given twice"),
        ('{"p_bounce": NaN}', "NaN is not JSON"),
        ('{"p_bounce": ' + "9" * 5000 + "}", "broken"),
        ('{"a":' * 100_00, "nested too deeply"),
        ("{" + " " * MAX_CHARACTERS, "longer than"),
        ("{}" + "{" * 1000, "more than one"),
        ("{'label': 'CLEAR'}", "broken"),
    ],
)
def test_ambiguous_and_cut_answers_are_refused(text: str, message: str) -> None:
    with pytest.raises(Unusable, match=message) as caught:
        extract(text)
    assert caught.value.reason == "malformed"


def test_a_lone_surrogate_is_a_fault_of_the_answer() -> None:
    with pytest.raises(Unusable, match="surrogate"):
        read('{"explanation": "\\ud800", "label": "CLEAR"}', Verdict)
    whole = '{"explanation": "\\ud83d\\ude00", "label": "CLEAR"}'
    assert read(whole, Verdict).explanation == "😀"


def test_many_faults_are_listed_briefly_without_the_input() -> None:
    canary = "canary" * 50
    text = json.dumps({**{f"extra{n}": canary for n in range(9)}, "explanation": "x", "label": canary})
    with pytest.raises(Unusable, match=r"\(and 5 more\)") as caught:
        read(text, Verdict)
    assert "canary" not in str(caught.value).replace("extra", "")


@FEW
@given(prose, objects, prose)
def test_prose_around_an_object_changes_nothing(before: str, value: dict[str, Any], after: str) -> None:
    text, long_text = json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)
    assert extract(f"{before} {text} {after}") == value
    assert extract(f"{before} {long_text} {after}") == value
    assert extract(f"{before}\n```json\n{text}\n```\n{after}") == value


@FEW
@given(objects, objects)
def test_two_different_objects_are_refused(first: dict[str, Any], second: dict[str, Any]) -> None:
    text = f"{json.dumps(first)} {json.dumps(second)}"
    if first == second:
        assert extract(text) == first
    else:
        with pytest.raises(Unusable):
            extract(text)


@FEW
@given(objects, st.data())
def test_a_truncated_object_is_refused(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(Unusable):
        extract(cut)


# --- schemas ------------------------------------------------------------------------------------------------


class Finding(Frozen):
    """One of several."""

    description: str = Field("", description="the name of a keyword is a fine name for a field")
    line: int = Field(ge=1)


class Findings(Frozen):
    findings: tuple[Finding, ...] = Field((), max_length=9)
    worst: Finding | None = Field(None, description="beside a reference")
    kind: Literal["a", "b"] = "a"


def nodes(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [node for item in schema for node in nodes(item)]
    if not isinstance(schema, dict):
        return []
    return [schema] + [node for item in schema.values() for node in nodes(item)]


def test_every_object_is_closed_and_requires_every_field() -> None:
    objects = [node for node in nodes(strict(Findings)) if node.get("type") == "object"]
    assert len(objects) == 2
    for node in objects:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


def test_fields_named_like_keywords_stay() -> None:
    assert set(strict(Findings)["$defs"]["Finding"]["properties"]) == {"description", "line"}


def test_a_value_of_the_type_fits_its_schema() -> None:
    jsonschema.validate(CLEAR.model_dump(mode="json"), strict(Verdict))
    value = Findings(findings=(Finding(line=3),), worst=Finding(line=1))
    jsonschema.validate(value.model_dump(mode="json"), strict(Findings))


def test_the_schema_has_no_bounds_that_providers_refuse() -> None:
    text = str(strict(Findings)) + str(strict(Verdict))
    for keyword in ("maxItems", "minimum", "maximum", "default", "title"):
        assert f"'{keyword}'" not in text
