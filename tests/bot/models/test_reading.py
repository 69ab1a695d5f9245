"""An answer is one JSON object, possibly wrapped in text; two different ones are refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.models.conversation import MAX_CHARACTERS, Unusable, extract, read
from tests.bot.models.replies import CLEAR, Verdict

GOOD = CLEAR.model_dump_json()

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
objects = st.dictionaries(st.text(), values)
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


@given(objects)
def test_any_object_survives_its_own_text(value: dict[str, Any]) -> None:
    assert extract(json.dumps(value)) == value
    assert extract(json.dumps(value, ensure_ascii=False, indent=2)) == value


@given(prose, objects, prose)
def test_prose_around_an_object_changes_nothing(before: str, value: dict[str, Any], after: str) -> None:
    text = json.dumps(value)
    assert extract(f"{before} {text} {after}") == value
    assert extract(f"{before}\n```json\n{text}\n```\n{after}") == value


@given(objects, objects)
def test_two_different_objects_are_refused(first: dict[str, Any], second: dict[str, Any]) -> None:
    text = f"{json.dumps(first)} {json.dumps(second)}"
    if first == second:
        assert extract(text) == first
    else:
        with pytest.raises(Unusable):
            extract(text)


@given(objects, st.data())
def test_a_truncated_object_is_refused(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(Unusable):
        extract(cut)


@given(st.text())
def test_no_text_raises_another_error(text: str) -> None:
    with contextlib.suppress(Unusable):
        assert isinstance(extract(text), dict)
