"""For every answer of a provider, a caller gets a typed value or one of two errors."""

from __future__ import annotations

import pytest

from bot.core.actions import Usage
from bot.core.errors import BouncerError, ModelError, TransientError
from bot.models.conversation import Answer
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
    usage = getattr(error, "usage", None)
    assert isinstance(usage, Usage)
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, 100, 20)
