"""Several models for one question: their mean, and a cascade from cheap to expensive."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from bot.core.errors import BudgetExceeded, ModelError, SettingsError, TransientError
from bot.models.conversation import Answer
from bot.models.protocol import Model, caveat
from bot.models.registry import ModelKeys, Models, leaves
from bot.models.wrappers import Cascade, Fallback, Mean, load_maps
from tests.bot.models.replies import PROMPT, Verdict
from tests.scripted import ScriptedModel

KEYS = ModelKeys(openai_api_key=SecretStr("k"), anthropic_api_key=SecretStr("k"))


class Text(BaseModel):
    text: str


def overspent() -> ScriptedModel:
    return ScriptedModel([BudgetExceeded("the budget is used up")])


def voice(name: str, percent: int | None, label: str = "VAGUE") -> ScriptedModel:
    return ScriptedModel([{"explanation": f"{name} says", "p_bounce": percent, "label": label}] * 9, name)


@pytest.mark.parametrize(
    "model",
    [
        Mean([overspent(), voice("a", 30)]),
        Cascade(voice("a", 30), 20, 60, overspent()),
        Fallback((Cascade(voice("a", 30), 20, 60, overspent()), voice("b", 30))),
    ],
)
def test_a_spent_budget_has_the_usage_of_the_other_voices(model: Model) -> None:
    with pytest.raises(BudgetExceeded) as caught:
        model.complete(PROMPT, Verdict)
    assert caught.value.usage is not None
    assert caught.value.usage.calls == 1


def test_the_mean_has_the_text_of_the_nearest_voice_and_the_total_cost() -> None:
    reply = Mean([voice("a", 10, "CLEAR"), voice("b", 40), voice("c", 100)]).complete(PROMPT, Verdict)
    assert reply.value == Verdict(explanation="b says", p_bounce=50, label="VAGUE")
    assert [(voice.model, voice.probabilities, voice.label) for voice in reply.voices] == [
        ("scripted:a", {"p_bounce": 10}, "CLEAR"),
        ("scripted:b", {"p_bounce": 40}, "VAGUE"),
        ("scripted:c", {"p_bounce": 100}, "VAGUE"),
    ]
    assert reply.disagreement == 90
    assert reply.usage.calls == 3
    assert reply.model == "mean(scripted:a,scripted:b,scripted:c)"


def test_a_failed_voice_is_named_and_the_others_count() -> None:
    refusing = ScriptedModel([Answer("no", "refusal", 7)])
    reply = Mean([refusing, voice("b", 30)]).complete(PROMPT, Verdict)
    assert reply.value.p_bounce == 30
    assert reply.voices[0].error == "scripted:test refused to answer"
    assert reply.usage.calls == 2
    assert reply.disagreement is None


def test_a_mean_without_voices_is_transient_if_one_failure_is() -> None:
    mean = Mean([ScriptedModel([ModelError("no", "refused")]), ScriptedModel([TransientError("busy", 3.0)])])
    with pytest.raises(TransientError, match="no; busy"):
        mean.complete(PROMPT, Verdict)


def test_every_voice_is_mapped_by_its_own_map(tmp_path: Path) -> None:
    file = tmp_path / "maps.json"
    file.write_text(json.dumps({"scripted:b": {"triage": [[0, 0], [50, 100]]}}))
    mean = Mean([voice("a", 40), voice("b", 40)], maps=load_maps(file))
    assert mean.complete(PROMPT, Verdict).value.p_bounce == 60
    other = mean.complete(PROMPT.model_copy(update={"purpose": "verify"}), Verdict)
    assert other.value.p_bounce == 40
    file.write_text('{"m": 3}')
    with pytest.raises(SettingsError, match=r"maps\.json must hold model"):
        load_maps(file)


def test_draws_of_one_model_are_different_questions() -> None:
    model = voice("a", 20)
    reply = Mean([model], samples=3).complete(PROMPT, Verdict)
    assert [prompt.sample for prompt in sorted(model.asked, key=lambda prompt: prompt.sample)] == [0, 1, 2]
    assert {prompt.temperature for prompt in model.asked} == {None}
    assert len(reply.voices) == 3


def test_a_schema_without_probability_uses_the_first_answer() -> None:
    mute, speaks = ScriptedModel([ModelError("no", "refused")]), ScriptedModel([{"text": "a test"}])
    assert Mean([mute, speaks]).complete(PROMPT, Text).value.text == "a test"


@pytest.mark.parametrize(("percent", "calls"), [(10, 0), (20, 1), (45, 1), (60, 1), (61, 0), (None, 1)])
def test_the_second_model_is_asked_only_inside_the_band(percent: int | None, calls: int) -> None:
    large = voice("large", 80)
    reply = Cascade(voice("small", percent), 20, 60, large).complete(PROMPT, Verdict)
    assert len(large.asked) == calls
    assert reply.value.p_bounce == (80 if calls else percent)
    assert reply.usage.calls == 1 + calls
    assert len(reply.voices) == 1 + calls


def test_the_small_model_counts_if_the_large_one_fails() -> None:
    large = ScriptedModel([TransientError("busy")])
    reply = Cascade(voice("small", 30), 20, 60, large).complete(PROMPT, Verdict)
    assert reply.value.p_bounce == 30
    assert reply.voices[1].error == "busy"


@pytest.mark.parametrize(
    "model_id",
    [
        "mean(openai:a,openai:b),mean(openai:c,openai:d)",
        "cascade(mean(openai:a,openai:b)@20-60,cascade(openai:c@1-2,openai:d))",
        "cascade(openai:a@20-60,openai:b),mean(openai:c,openai:d,samples=2)",
        " cascade(openai:a@20-60, mean( openai:b , openai:c,samples=2)), openai:d ",
    ],
)
def test_ids_nest_and_name_their_single_models(model_id: str) -> None:
    assert Models(KEYS).build(model_id, attempts=3).id == model_id.replace(" ", "")
    assert leaves(model_id) == ["openai:a", "openai:b", "openai:c", "openai:d"]


@pytest.mark.parametrize(
    ("model_id", "message"),
    [
        ("mean()", "model '' (--model"),
        ("mean(samples=2)", "mean needs a model"),
        ("mean(openai:a,samples=0)", "samples from 1 to 99"),
        ("cascade(openai:a,openai:b)", "must be cascade(SMALL@LOW-HIGH,LARGE)"),
        ("cascade(openai:a@60-20,openai:b)", "must be cascade(SMALL@LOW-HIGH,LARGE)"),
        ("cascade(openai:a@20-60)", "must be cascade(SMALL@LOW-HIGH,LARGE)"),
        ("mean(openai:a", "model 'mean(openai:a'"),
    ],
)
def test_a_wrong_id_is_one_clear_line(model_id: str, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        Models(KEYS).build(model_id)


def test_a_caveat_is_found_inside_a_mean() -> None:
    assert "recorded" in caveat("mean(openai:a,recorded:f.jsonl#m)").lower()
    assert caveat("cascade(openai:a@1-2,anthropic:b)") == ""
