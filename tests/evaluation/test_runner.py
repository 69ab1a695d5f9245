"""A run: every task judged once, whatever interrupts it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.core.actions import Usage
from bot.core.errors import BudgetExceeded, ModelError, OperatorError, TransientError
from evaluation.run.folder import RunFacts, RunFolder, Tasks
from evaluation.run.model import Cached, FolderStore
from evaluation.run.runner import Options, Outcome, Postponed, Task, run
from evaluation.run.staging import Heard
from tests.bot.models.replies import CLEAR, PROMPT, Verdict
from tests.evaluation.running import facts_of
from tests.scripted import ScriptedModel


def facts(model: str = "recorded:f#m", limit: int | None = None) -> RunFacts:
    return facts_of("counting", model=model, tasks=Tasks(source="t.jsonl", sha256="ab", limit=limit))


def numbers(count: int) -> list[Task[int]]:
    return [Task(f"task-{n}", n) for n in range(count)]


def double(n: int) -> Outcome:
    return Outcome(raw_reply=str(2 * n), usage=Usage(calls=1, input_tokens=n, cost_usd=0.5))


def ids(folder: Path) -> list[str]:
    return [json.loads(line)["task_id"] for line in (folder / "records.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("workers", [1, 4])
def test_every_task_is_recorded_once_and_the_totals_add_up(tmp_path: Path, workers: int) -> None:
    result = run(numbers(20), double, RunFolder.resume(tmp_path, facts()), Options(workers=workers))
    assert (result.skipped, result.finished, result.stopped) == (0, 20, None)
    assert sorted(ids(tmp_path)) == sorted(task.id for task in numbers(20))
    read = RunFolder.read(tmp_path)
    assert read.facts.totals.usage.cost_usd == 10.0
    assert read.facts.totals.usage.input_tokens == sum(range(20))
    assert read.facts.finished_at is not None
    assert {record.raw_reply for record in read.records()} == {str(2 * n) for n in range(20)}


@pytest.mark.parametrize("limit", [None, 3])
def test_a_lower_limit_takes_no_task_out_of_the_denominator(tmp_path: Path, limit: int | None) -> None:
    names = [task.id for task in numbers(3)]
    run(numbers(3), double, RunFolder.resume(tmp_path, facts(limit=limit), names), Options())
    run(numbers(1), double, RunFolder.resume(tmp_path, facts(limit=1), names[:1]), Options())
    folder = RunFolder.read(tmp_path)
    assert folder.facts.tasks.limit == limit
    assert folder.due(names, str) == names


def test_a_recorded_task_stays_in_the_denominator(tmp_path: Path) -> None:
    """Also one that the list of tasks lacks, as of a folder that was put together by hand."""
    run(numbers(2), double, RunFolder.resume(tmp_path, facts(), ["task-0"]), Options())
    assert RunFolder.read(tmp_path).due(["task-0", "task-1", "task-2"], str) == ["task-0", "task-1"]


def test_two_processes_cannot_write_to_one_run(tmp_path: Path) -> None:
    first = RunFolder.resume(tmp_path, facts())
    with pytest.raises(OperatorError, match="another process"):
        RunFolder.resume(tmp_path, facts())
    first.close(None)
    RunFolder.resume(tmp_path, facts()).close(None)


def test_a_file_cannot_be_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OperatorError, match="cannot be written"):
            RunFolder.resume(path, facts())


def test_a_line_cut_in_half_is_done_again(tmp_path: Path) -> None:
    run(numbers(3), double, RunFolder.resume(tmp_path, facts()), Options())
    file = tmp_path / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-7])
    assert [record.task_id for record in RunFolder.read(tmp_path).records()] == ["task-0", "task-1"]
    run(numbers(3), double, RunFolder.resume(tmp_path, facts()), Options())
    assert ids(tmp_path) == ["task-0", "task-1", "task-2"]


def test_a_failure_is_recorded_and_the_others_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def judge(n: int) -> Outcome:
        if n == 1:
            raise ModelError("refused to answer", "refused")
        if n == 2:
            raise KeyError("surprise")
        return double(n)

    run(numbers(4), judge, RunFolder.resume(tmp_path, facts()), Options())
    errors = {record.task_id: record.error for record in RunFolder.read(tmp_path).records()}
    assert errors["task-1"] == "ModelError: refused to answer"
    assert errors["task-2"] == "bug: KeyError: 'surprise'"
    assert errors["task-3"] is None
    assert "task-2" in caplog.text


def test_only_failed_tasks_are_tried_again(tmp_path: Path) -> None:
    broken = {1, 2}
    judgements: list[int] = []

    def judge(n: int) -> Outcome:
        judgements.append(n)
        return Outcome(error="down") if n in broken else double(n)

    run(numbers(4), judge, RunFolder.resume(tmp_path, facts()), Options())
    broken.clear()
    folder = RunFolder.resume(tmp_path, facts())
    assert folder.retry_failed() == 2
    run(numbers(4), judge, folder, Options())
    assert judgements == [0, 1, 2, 3, 1, 2]
    assert sorted(ids(tmp_path)) == ["task-0", "task-1", "task-2", "task-3"]
    assert RunFolder.read(tmp_path).facts.totals.failed == 0


def test_totals_keep_what_failed_attempts_cost(tmp_path: Path) -> None:
    """Attempts within a run, and attempts that --retry-failed repeats."""
    paid = Usage(calls=1, cost_usd=0.25)
    errors: list[Exception] = [TransientError("busy", 0.0), ModelError("malformed", "malformed")]
    for error in errors:
        error.usage = paid  # type: ignore[attr-defined]

    def judge(n: int) -> Outcome:
        if n == 1 and errors:
            raise errors.pop(0)
        return double(n)

    run(numbers(2), judge, RunFolder.resume(tmp_path, facts()), Options(sleep=lambda seconds: None))
    totals = RunFolder.read(tmp_path).facts.totals
    assert (totals.failed, totals.usage.calls, totals.usage.cost_usd) == (1, 3, 1.0)
    for _ in range(2):
        folder = RunFolder.resume(tmp_path, facts())
        folder.retry_failed()
        assert folder.spent_usd() == sum(record.usage.cost_usd or 0 for record in folder.records()) + 0.5
        run(numbers(2), judge, folder, Options())
    totals = RunFolder.read(tmp_path).facts.totals
    assert (totals.records, totals.failed, totals.usage.calls, totals.usage.cost_usd) == (2, 0, 4, 1.5)


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_kept_reply_of_a_failed_attempt_is_counted_once(tmp_path: Path, is_cached: bool) -> None:
    broken = {1}
    scripted = ScriptedModel(lambda prompt: "no JSON" if prompt.sample in broken else CLEAR)
    model = Cached(scripted, FolderStore(tmp_path / "cache")) if is_cached else scripted

    def judge(n: int) -> Outcome:
        heard, error = Heard(model, "task"), None
        try:
            for sample in range(2):
                heard.complete(PROMPT.model_copy(update={"sample": sample}), Verdict)
        except ModelError as failure:
            error = str(failure)
        return Outcome(usage=heard.usage, lost=heard.lost, error=error)

    run(numbers(1), judge, RunFolder.resume(tmp_path, facts()), Options())
    broken.clear()
    folder = RunFolder.resume(tmp_path, facts())
    assert folder.retry_failed() == 1
    run(numbers(1), judge, folder, Options())
    totals = RunFolder.read(tmp_path).facts.totals
    assert (totals.failed, totals.usage.calls) == (0, len(scripted.requests))


def test_a_run_is_finished_only_if_no_task_is_missing(tmp_path: Path) -> None:
    def killed(record: object) -> None:
        raise KeyboardInterrupt

    names = [task.id for task in numbers(3)]
    with pytest.raises(KeyboardInterrupt):
        run(numbers(3), double, RunFolder.resume(tmp_path, facts()), Options(), killed)
    assert RunFolder.read(tmp_path).facts.finished_at is None
    run(numbers(2), double, RunFolder.resume(tmp_path, facts(limit=2), names), Options())
    assert RunFolder.read(tmp_path).missing() == ["task-2"]
    assert RunFolder.read(tmp_path).facts.finished_at is None
    run(numbers(3), double, RunFolder.resume(tmp_path, facts()), Options())
    assert RunFolder.read(tmp_path).facts.finished_at is not None


def test_a_passing_fault_is_waited_out_as_long_as_the_other_side_asked(tmp_path: Path) -> None:
    waits: list[float] = []
    faults: list[float | None] = [7.0, None]

    def judge(n: int) -> Outcome:
        if faults:
            raise TransientError("busy", faults.pop(0))
        return double(n)

    run(numbers(1), judge, RunFolder.resume(tmp_path, facts()), Options(sleep=waits.append))
    assert RunFolder.read(tmp_path).facts.totals.failed == 0
    assert waits == [7.0, 4.0]


def test_reservations_of_tasks_under_way_do_not_end_a_run(tmp_path: Path) -> None:
    """Each task reserves 3 of 4 and spends 0.02: one at a time all thirty fit."""
    mutex = threading.Lock()
    booked = 0.0

    def judge(n: int) -> Outcome:
        nonlocal booked
        with mutex:
            if booked + 3 > 4:
                raise BudgetExceeded("spent or reserved")
            booked += 3
        time.sleep(0.002)
        with mutex:
            booked -= 2.98
        return double(n)

    result = run(numbers(30), judge, RunFolder.resume(tmp_path, facts()), Options(workers=4))
    assert (result.finished, result.stopped) == (30, None)
    assert sorted(ids(tmp_path)) == sorted(task.id for task in numbers(30))


def test_a_postponed_task_has_no_record_and_comes_again(tmp_path: Path) -> None:
    waiting = {1, 3}

    def judge(n: int) -> Outcome:
        if n in waiting:
            raise Postponed("the answer is to come")
        return double(n)

    result = run(numbers(5), judge, RunFolder.resume(tmp_path, facts()), Options(workers=2))
    assert (result.finished, result.postponed, result.stopped) == (3, 2, None)
    assert RunFolder.read(tmp_path).facts.finished_at is None
    waiting.clear()
    assert run(numbers(5), judge, RunFolder.resume(tmp_path, facts()), Options()).finished == 2
    assert sorted(ids(tmp_path)) == [f"task-{n}" for n in range(5)]


def test_stopping_records_what_is_under_way(tmp_path: Path) -> None:
    stop = threading.Event()

    def judge(n: int) -> Outcome:
        if n == 3:
            stop.set()
            time.sleep(0.05)
        return double(n)

    result = run(numbers(100), judge, RunFolder.resume(tmp_path, facts()), Options(workers=2, stop=stop))
    assert result.stopped == "interrupted"
    assert "task-3" in ids(tmp_path)
    assert len(ids(tmp_path)) < 20


def test_a_broken_task_list_ends_the_run_after_what_was_under_way(tmp_path: Path) -> None:
    def tasks() -> Iterator[Task[int]]:
        yield from numbers(3)
        raise OperatorError("t.jsonl:4: not JSON")

    with pytest.raises(OperatorError, match=r"t\.jsonl:4"):
        run(tasks(), double, RunFolder.resume(tmp_path, facts()), Options(workers=2))
    assert sorted(ids(tmp_path)) == ["task-0", "task-1", "task-2"]


def test_a_reply_with_a_lone_surrogate_is_kept(tmp_path: Path) -> None:
    def odd(n: int) -> Outcome:
        return Outcome(raw_reply="half a pair: \ud83d, é")

    run(numbers(1), odd, RunFolder.resume(tmp_path, facts()), Options())
    assert next(RunFolder.read(tmp_path).records()).raw_reply == "half a pair: \ud83d, é"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "run.json").unlink(), "is not a run"),
        (lambda folder: (folder / "run.json").write_text("{"), r"run\.json: cannot be read"),
        (lambda folder: (folder / "records.jsonl").write_text("{}\n"), r"records\.jsonl:1: not a record"),
        (
            lambda folder: (folder / "records.jsonl").write_bytes(b"[" * 99999 + b"\n"),
            r"records\.jsonl:1: not JSON",
        ),
        (
            lambda folder: (folder / "records.jsonl").write_text('{"seconds": Infinity}\n'),
            r"records\.jsonl:1: not JSON",
        ),
        (lambda folder: (folder / "tasks.txt").write_bytes(b"\xff\n"), r"tasks\.txt: cannot be read"),
    ],
)
def test_a_spoiled_folder_is_named_with_file_and_line(
    tmp_path: Path, spoil: Callable[[Path], object], message: str
) -> None:
    run(numbers(1), double, RunFolder.resume(tmp_path, facts(), ["task-0"]), Options())
    spoil(tmp_path)
    with pytest.raises(OperatorError, match=message):
        list(RunFolder.read(tmp_path).outcomes())
