"""Export of a repository's history while GitHub limits requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.calibration import export
from bot.calibration.export import Journal, SteadyChronicle
from bot.core.errors import OperatorError, TransientError
from bot.core.subjects import Repository

NOW = datetime(2026, 5, 4, tzinfo=UTC)
ROCKET = Repository(id=1, owner="acme", name="rocket", default_branch="main")


class Busy:
    """A chronicle that answers after a number of refusals."""

    def __init__(self, refusals: int, wait: float | None) -> None:
        self.asked, self.refusals, self.wait = 0, refusals, wait

    def about(self) -> Repository:
        self.asked += 1
        if self.asked <= self.refusals:
            raise TransientError("GitHub answered 429", self.wait)
        return ROCKET


def reader(busy: Busy, file: Path, messages: list[str], now: datetime = NOW) -> SteadyChronicle:
    return SteadyChronicle(busy, Journal(file), now, messages.append, lambda: busy.asked)


def test_a_retry_time_from_github_is_obeyed_every_time(tmp_path: Path) -> None:
    messages: list[str] = []
    busy = Busy(20, wait=0.0)
    assert reader(busy, tmp_path / "j", messages).about() == ROCKET
    assert messages == ["GitHub answered 429. Waiting 0 s, then going on."] * 20


def test_retries_without_a_retry_time_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(export.time, "sleep", slept.append)
    with pytest.raises(TransientError):
        reader(Busy(99, wait=None), tmp_path / "j", []).about()
    assert slept == [4, 8, 16, 32, 64]


def test_answers_are_reused_today_and_requested_again_tomorrow(tmp_path: Path) -> None:
    file = tmp_path / "j"
    reader(Busy(0, None), file, []).about()
    with file.open("ab") as cut:
        cut.write(b'{"asked": "diff 1", "ans')
    again = Busy(0, None)
    later = reader(again, file, [], NOW + timedelta(hours=1))
    assert (later.about(), again.asked, later.began, later.requests) == (ROCKET, 0, NOW, 1)
    tomorrow = reader(again, file, [], NOW + timedelta(days=2))
    assert (tomorrow.about(), again.asked, tomorrow.requests) == (ROCKET, 1, 1)


def test_a_journal_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="No such file"):
        reader(Busy(0, None), tmp_path / "gone" / "j", [])
