"""``--cutoff``: the same figures before and after a day, on made-up answers whose difference is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.running import command, refusal, write

OLD, FRESH = 40, 30


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """All old patches are judged right, of the fresh ones half; the right fresh ones were recognised."""
    tasks, answers = [], []
    for number in range(OLD + FRESH + 1):
        fresh, wrong = number >= OLD, number % 2 == 0
        right = not fresh or number % 4 < 2
        moment = "2026-03-01T12:00:00Z" if fresh else "2021-05-04"
        task = {"instance_id": f"t{number}", "output_bounce": wrong, "pass_frac": 0.5 if wrong else 1.0}
        tasks.append({**task, "fixed_at": moment} if number < OLD + FRESH else task)
        bounce = wrong if right else not wrong
        answers.append({"instance_id": f"t{number}", "bounce": bounce, "recognised": fresh and right})
    for name, rows in (("tasks.jsonl", tasks), ("answers.jsonl", answers)):
        write(Path(name), rows)
    return tmp_path


COMMAND = ("score", "bouncerbench-output", "--tasks", "tasks.jsonl", "--predictions", "answers.jsonl")


def test_old_and_fresh_bugs_are_told_apart_with_the_difference(bench: Path) -> None:
    [result] = command(*COMMAND, "--cutoff", "2026-01-01", "--json").json["cutoff"].values()
    clean = sum(number % 4 >= 2 for number in range(OLD, OLD + FRESH))
    assert result["tasks"] == {"old": OLD, "fresh": FRESH, "clean": clean, "undated": 1}
    figure = result["figures"]["f_m"]
    assert figure["old"] == [1.0, 1.0, 1.0]
    assert figure["clean"][0] == 0.0
    value, low, high = figure["difference"]
    assert value == pytest.approx(figure["fresh"][0] - 1.0)
    assert low < value < high < -0.2
    output = command(*COMMAND, "--cutoff", "2026-01-01").out
    assert "fresh - old" in output
    assert "1 task has no date and is in neither" in output


@pytest.mark.parametrize(("cutoff", "fresh"), [("2026-03-01", 2), ("2026-03-02", 0)])
def test_a_bug_that_was_fixed_on_the_day_of_the_cutoff_is_fresh(bench: Path, cutoff: str, fresh: int) -> None:
    moments = ("2026-02-28T23:59:59Z", "2026-03-01", "2026-03-01T00:00:00+00:00", "2026-03-01T00:30:00+01:00")
    rows = [
        {"instance_id": f"t{number}", "output_bounce": False, "fixed_at": moment}
        for number, moment in enumerate(moments)
    ]
    write("tasks.jsonl", rows)

    [score] = command(*COMMAND, "--cutoff", cutoff, "--replicates", "0", "--json").json["cutoff"].values()
    assert (score["tasks"]["old"], score["tasks"]["fresh"]) == (4 - fresh, fresh)


def test_a_date_that_is_none_is_named(bench: Path) -> None:
    Path("tasks.jsonl").write_text('{"instance_id": "t1", "output_bounce": true, "fixed_at": "soon"}\n')
    assert "tasks.jsonl:1: fixed_at: 'soon' is no date" in refusal(*COMMAND, "--cutoff", "2026-01-01")
