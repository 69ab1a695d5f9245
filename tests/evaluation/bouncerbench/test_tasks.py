"""Tasks are read from every form in which they are handed around."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import OperatorError
from evaluation.bouncerbench.tasks import (
    InputTask,
    OutputTask,
    input_task,
    input_tasks,
    number_of,
    output_task,
    repository_of,
)
from evaluation.dataset import Row

ID = "astropy__astropy-12907"


def issue(**fields: Any) -> InputTask:
    return input_task(Row({"instance_id": ID, **fields}, "t:1"))


def patch(**fields: Any) -> OutputTask:
    return output_task(Row({"instance_id": ID, **fields}, "t:1"))


def status(passed: int, failed: int) -> dict[str, dict[str, list[str]]]:
    names = [f"test_{n}" for n in range(passed + failed)]
    return {
        "FAIL_TO_PASS": {"success": names[:passed], "failure": []},
        "PASS_TO_PASS": {"success": [], "failure": names[passed:]},
    }


@pytest.mark.parametrize("level", [2, 2.0, "2", "2.0"])
def test_an_annotation_is_read_however_it_is_written(level: object) -> None:
    assert issue(underspecified=level).quality == 2
    assert issue(input_quality=level, input_bounce="True").bounce is True


@pytest.mark.parametrize(("level", "bounces"), [(0, False), (1, False), (2, True), (3, True), ("", None)])
def test_the_two_severe_annotations_bounce(level: object, bounces: bool | None) -> None:
    assert issue(underspecified=level).bounce is bounces


@pytest.mark.parametrize("level", [4, -1, 1.5, "vague", "1.5"])
def test_another_annotation_is_refused_with_its_place(level: object) -> None:
    with pytest.raises(OperatorError, match=r"^t:1: underspecified: "):
        issue(underspecified=level)


def test_the_annotators_verdict_alone_is_the_truth_of_a_task() -> None:
    assert [issue(input_bounce=verdict).bounce for verdict in (True, "False", None)] == [True, False, None]
    assert [patch(input_bounce=verdict).vague for verdict in (True, None)] == [True, None]
    with pytest.raises(OperatorError, match="contradicts the annotation 1"):
        patch(underspecified=1, input_bounce=True)


def test_repository_and_number_come_from_the_id_where_the_row_has_none() -> None:
    assert issue().repo == "astropy/astropy"
    assert number_of(ID) == 12907
    assert repository_of("scikit-learn__scikit-learn-11333") == "scikit-learn/scikit-learn"
    assert repository_of("something else") == "unknown/unknown"
    assert number_of("something else") == 1


@pytest.mark.parametrize(
    ("fields", "bounces", "fraction"),
    [
        ({}, None, None),
        ({"resolved": True}, False, 1.0),
        ({"resolved": False}, True, None),
        ({"resolved": None, "output_bounce": None}, None, None),
        ({"resolved": False, "pass_frac": 0.25}, True, 0.25),
        ({"output_bounce": "True", "output_quality": "0.75"}, True, 0.75),
        ({"tests_status": status(3, 1)}, True, 0.75),
        ({"tests_status": str(status(3, 1))}, True, 0.75),
        ({"tests_status": str(status(4, 0))}, False, 1.0),
        ({"tests_status": str(status(0, 0))}, True, 0.0),
    ],
)
def test_the_outcome_of_a_patch_is_read_from_any_column(
    fields: dict[str, Any], bounces: bool | None, fraction: float | None
) -> None:
    task = patch(patch="diff", **fields)
    assert (task.bounce, task.pass_fraction) == (bounces, fraction)


@pytest.mark.parametrize(
    "values",
    ["__import__('os').system('true')", "{'FAIL_TO_PASS': 1}", "[" * 100_000, "{}", "open('x')", "nonsense ("],
)
def test_a_test_status_is_data_and_never_run(values: str) -> None:
    with pytest.raises(OperatorError, match="t:1: tests_status: "):
        patch(tests_status=values)


def test_a_pass_fraction_out_of_range_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"t:1: a pass fraction of 1\.5"):
        patch(pass_frac=1.5)


def test_the_authors_csv_columns_are_read(tmp_path: Path) -> None:
    file = tmp_path / "input_bouncer.csv"
    file.write_text(
        "instance_id,underspecified,underspecified_notes,false_negative,other_major_issues,repo,base_commit,"
        "problem_statement,input_bounce,input_quality\n"
        f'{ID},2.0,"vague, it is",0.0,0.0,astropy/astropy,abc,"Title\nline two",True,2.0\n'
    )
    text = "Title\nline two"
    assert list(input_tasks(str(file))) == [
        InputTask(
            instance_id=ID, repo="astropy/astropy", problem_statement=text, base_commit="abc", quality=2,
            input_bounce=True, test_validity=0, other_issues=False,
        )
    ]  # fmt: skip


def test_an_instance_that_is_given_twice_names_both_lines(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(f'{{"instance_id": "{ID}"}}\n' * 2)
    with pytest.raises(OperatorError, match=rf"t\.jsonl:2: {ID} was given before, at .*t\.jsonl:1"):
        list(input_tasks(str(file)))
