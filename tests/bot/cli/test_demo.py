"""The demonstration: the whole way from a signed delivery to a posted comment, as a newcomer sees it."""

from __future__ import annotations

import os
from pathlib import Path

from tests import forked
from tests.bot.cli.github_commands import Ran


def demo(folder: Path, *arguments: str) -> Ran:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "BOUNCER_DATA_DIR": str(folder / "data")}
    ran = forked.run("demo", *arguments, environment=environment, folder=folder, seconds=280)
    return Ran(ran.code, ran.out.decode(), ran.err.decode())


def test_a_day_is_played_with_recorded_answers_and_shown(tmp_path: Path) -> None:
    done = demo(tmp_path, "--html", "day.html")
    assert done.code == 0, done.err
    assert "The answers are a capable language model's, recorded on 2026-11-22." in " ".join(done.out.split())
    vague, clear, wrong, flawed, reply, reproduced = done.out.split("╭")[1:]
    assert "labels: needs-info" in vague
    assert "• Which function or command do you import with, and in which version?" in vague
    assert "This is a recorded answer: no model was asked just now." in vague
    assert "nothing was posted" in clear
    assert "Probably doesn't solve #2" in wrong
    assert "1 possible defect." in flawed
    assert "rows = sorted(self.rows, key=lambda row: row[place])" in flawed
    assert "Thanks, that answers my questions." in reply
    assert "labels: none" in reply
    # Where there is no sandbox, the comment says so.
    text = " ".join(reproduced.replace("│", " ").split())
    assert "AssertionError: None is not an instance of" in text or "Not run" in text
    page = (tmp_path / "day.html").read_text("utf-8")
    assert page.count("<article>") == 6
    assert "<li>Which function or command do you import with, and in which version?</li>" in page
    assert "<details><summary>Why I'm asking</summary>" in page


def test_a_model_that_cannot_be_had_is_one_clear_line_and_nothing_else(tmp_path: Path) -> None:
    for model in ("nobody:knows", "recorded:nowhere.jsonl#x"):
        done = demo(tmp_path, "--model", model)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert done.err.startswith("bouncer: ")
        assert model.partition("#")[0].removeprefix("recorded:") in done.err


def test_a_page_that_cannot_be_written_is_said_before_the_day_is_played(tmp_path: Path) -> None:
    done = demo(tmp_path, "--html", "nowhere/day.html")
    assert (done.code, done.out) == (2, "")
    assert done.err == "bouncer: nowhere/day.html: No such file or directory\n"
