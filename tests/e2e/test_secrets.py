"""Secrets of the operator appear in no comment, log or table."""

from __future__ import annotations

import json
import stat
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from tests.bot.pipeline.publishing.rendering import words
from tests.bot.pipeline.rig import REPLY, REPOSITORY, SECRET, rigged, wait

#: Markdown takes it apart.
SPLIT = "pa<b>ss [wo](rd) 1&2"


@pytest.mark.timeout(240)
def test_a_pasted_webhook_secret_is_neither_posted_nor_logged_nor_stored(tmp_path: Path) -> None:
    with rigged(tmp_path) as rig:
        github = rig.github
        rig.environment |= {"BOUNCER_DATA_DIR": str(tmp_path / "data"), "LOG_LEVEL": "DEBUG"}
        rig.environment["BOUNCER_METRICS_TOKEN"] = SPLIT
        points = [f"Is {SECRET} meant?", f"Is {SPLIT} meant?", f"Is {quote(SPLIT)} or {escape(SPLIT)} meant?"]
        reply = {**REPLY, "explanation": f"It names {SECRET} and {SPLIT}.", "open_points": points}
        line = {"model": "bounces", "subject": f"{REPOSITORY}#1", **reply}
        rig.replies.write_text(json.dumps(line) + "\n")
        rig.start("bot", "serve")
        wait(rig.ready, 60, "ready")
        number = github.open_issue(REPOSITORY, f"What is {SECRET}?", f"I found {SECRET} somewhere.")
        assert rig.deliver("issues", rig.opened(number)) == 202
        wait(lambda: github.comments(REPOSITORY, number), 60, "the comment")
        posted = github.comments(REPOSITORY, number)[0]
        assert SECRET not in posted
        for form in (posted, words(posted), unquote(posted), words(unescape(posted))):
            assert "".join(SPLIT.split()) not in "".join(form.replace("\u200b", "").split())
        assert "REDACTED" in github.comments(REPOSITORY, number)[0]
    assert SECRET not in rig.log.read_text()
    for file in tmp_path.glob("x.db*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file.name
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
    assert stat.S_IMODE((tmp_path / "x.db-locks").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
