"""Answers are read from whichever file holds them; a strange one is named, never guessed at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.core.actions import Usage
from bot.core.errors import OperatorError
from evaluation.bouncerbench.answers import Line, read_answers, record_answer
from evaluation.bouncerbench.tasks import INPUT, OUTPUT
from evaluation.run.folder import Record
from tests.evaluation.running import write


def lines(*rows: dict[str, Any]) -> str:
    return str(write("answers.jsonl", rows))


def test_labels_of_several_models_are_kept_apart() -> None:
    result = read_answers(
        lines(
            {"instance_id": "a", "model": "m", "label": "VAGUE", "explanation": "why", "p_bounce": 70},
            {"instance_id": "a", "model": "n", "label": "WELL_SPECIFIED"},
        ),
        INPUT,
    )
    first, second = result["m"]["a"], result["n"]["a"]
    assert (first.level, first.bounce, first.p_bounce, first.explanation) == (2, True, 70, "why")
    assert (second.level, second.bounce) == (0, False)


def test_a_bounce_alone_is_an_answer_and_null_is_none() -> None:
    rows = [
        {"instance_id": "a", "bounce": True},
        {"instance_id": "b", "label": None},
        {"instance_id": "c", "bounce": 0},
    ]
    result = read_answers(lines(*rows), INPUT)[""]
    assert [answer.bounce for answer in result.values()] == [True, None, False]


def test_an_empty_cell_is_no_answer(tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("instance_id,label,bounce,p_bounce\na,,,\nb,VAGUE,,70\nc,,false,\nd,nan,,\n")
    result = read_answers(str(file), INPUT)[""]
    assert [answer.bounce for answer in result.values()] == [None, True, False, None]


def test_the_line_can_be_moved_by_label_and_by_probability() -> None:
    row = {"instance_id": "a", "label": "REASONABLY_SPECIFIED", "p_bounce": 40}
    source = lines(row)
    assert [
        read_answers(source, INPUT, line)[""]["a"].bounce
        for line in (None, Line(1), Line(2), Line(2, above=40), Line(1, above=41))
    ] == [False, True, False, True, False]


def test_a_line_cannot_be_moved_under_a_bare_bounce() -> None:
    with pytest.raises(OperatorError, match=r"answers\.jsonl:1: the line cannot be moved"):
        read_answers(lines({"instance_id": "a", "bounce": True}), INPUT, Line(1))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"instance_id": "a", "label": "CORRECT_AND_PRECISE"}, "unknown label 'CORRECT_AND_PRECISE'"),
        ({"instance_id": "a", "label": "MAYBE"}, "unknown label 'MAYBE': bouncerbench-input has WELL_SPECIFIED"),
        ({"instance_id": "a"}, "neither label nor bounce"),
        ({"label": "VAGUE"}, "instance_id"),
        ({"instance_id": "a", "label": "VAGUE", "p_bounce": 101}, "p_bounce"),
        ({"instance_id": "a", "bounce": "perhaps"}, "bounce"),
    ],
)
def test_a_strange_row_is_named_with_file_and_line(row: dict[str, Any], message: str) -> None:
    good = {"instance_id": "z", "label": "VAGUE"}
    with pytest.raises(OperatorError, match=rf"answers\.jsonl:2: .*{message}"):
        read_answers(lines(good, row), INPUT)


def test_an_instance_answered_twice_by_one_model_is_refused() -> None:
    row = {"instance_id": "a", "model": "m", "label": "VAGUE"}
    with pytest.raises(OperatorError, match=r"answers\.jsonl:2: m answer to a was given before, at .*:1"):
        read_answers(lines(row, row), INPUT)


def test_a_submission_and_the_authors_own_output_are_read(tmp_path: Path) -> None:
    submission = {"a": {"input_bounce": True, "output_bounce": False, "trace": "because"}}
    theirs = {
        "a": {"label": "INCORRECT", "explanation": "no", "trace": [{"type": "function_call"}, {"type": "x"}]}
    }
    file = tmp_path / "s.json"
    file.write_text(json.dumps(submission))
    assert read_answers(str(file), INPUT)[""]["a"].bounce is True
    assert read_answers(str(file), OUTPUT)[""]["a"].bounce is False
    assert read_answers(str(file), INPUT)[""]["a"].explanation == "because"
    file.write_text(json.dumps(theirs))
    answer = read_answers(str(file), OUTPUT)[""]["a"]
    assert (answer.level, answer.bounce, answer.tool_calls) == (3, True, 1)


def test_the_labels_that_output_tasks_carry_are_answers() -> None:
    row = {"instance_id": "a", "bouncer_labels": {"m": "INCORRECT"}, "codex_label": None, "input_bounce": True}
    answers = read_answers(lines(row), OUTPUT)
    assert (answers["m"]["a"].level, answers["codex"]["a"].bounce) == (3, None)
    with pytest.raises(OperatorError, match="bouncer_labels: a JSON object"):
        read_answers(lines({**row, "bouncer_labels": []}), OUTPUT)


@pytest.mark.parametrize("content", ["[]", "3", '{"a": true}', "{"])
def test_a_json_file_of_another_form_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "s.json"
    file.write_text(content)
    with pytest.raises(OperatorError, match=r"s\.json: "):
        read_answers(str(file), INPUT)


def test_a_rubric_joins_the_chance_of_wrong_behaviour_with_the_worst_form() -> None:
    fields = {"p_bounce": 50, "verdicts": [{"p_form": 10}, {"p_form": 60}, {"p_form": None}]}
    decision = {"verdict": "CORRECT_AND_PRECISE", "evidence": fields}
    record = Record(task_id="a", decision=decision, raw_reply=None, usage=Usage(), seconds=0.0)

    answer = record_answer(record, OUTPUT, Line(above=80))

    assert (answer.p_bounce, answer.bounce) == (80.0, True)
