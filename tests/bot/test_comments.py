"""All texts that can be posted are listed in one file, so that a change of one is reviewed."""

from __future__ import annotations

import re

import pytest

from bot.pipeline.body import Rules
from tests import comments

#: A model's name is shown with whatever it wrote.
BY_A_MODEL = f"`{comments.MODEL}`"


def test_the_file_holds_what_is_posted_today() -> None:
    assert comments.FILE.read_text("utf-8") == comments.page(), "python -m tests.comments, then read what changed"


@pytest.mark.parametrize(("name", "body"), tuple(comments.texts()), ids=lambda value: str(value)[:50])
def test_each_goes_out_as_it_was_written_and_says_that_a_model_wrote_it(name: str, body: str) -> None:
    assert Rules(host=comments.HOST).text(body, 65_000) == body
    visible_body = re.sub(r"<details>.*?</details>", "", body, flags=re.DOTALL)
    if BY_A_MODEL in body:
        assert any(word in visible_body for word in comments.DISCLOSURES), "visible, not folded away"


def test_the_operators_page_is_the_only_link_elsewhere() -> None:
    page = "https://bouncer.example.org/about"
    body = f"Why?\n\n<details><summary>Why I'm asking</summary>\n\n[what this bot does]({page})\n</details>"
    assert Rules(host=comments.HOST, about_url=page).text(body, 65_000) == body
    assert page not in Rules(host=comments.HOST).text(body, 65_000)
    other = body.replace(page, "https://elsewhere.example/about")
    assert "elsewhere" not in Rules(host=comments.HOST, about_url=page).text(other, 65_000)
