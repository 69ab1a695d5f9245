"""Every text that can be posted stands in one file; whoever changes one reads it there."""

from __future__ import annotations

import re

import pytest

from bot.core.config import RepoConfig
from bot.features.shared import input_bouncer as bouncer
from bot.pipeline.body import Rules
from tests import comments

#: A model's name is shown with whatever it wrote.
BY_A_MODEL = f"`{comments.MODEL}`"


def test_the_file_holds_what_is_posted_today() -> None:
    assert comments.FILE.read_text("utf-8") == comments.page(), "python -m tests.comments, then read what changed"


@pytest.mark.parametrize(("name", "body"), tuple(comments.texts()), ids=lambda value: str(value)[:50])
def test_each_goes_out_as_it_was_written_and_says_that_a_model_wrote_it(name: str, body: str) -> None:
    assert Rules(host=comments.HOST).text(body, 65_000) == body
    shown = re.sub(r"<details>.*?</details>", "", body, flags=re.DOTALL)
    if BY_A_MODEL in body and not re.match("[a-z]{2}: ", name):
        assert any(word in shown for word in comments.DISCLOSURES), "visible, not folded away"


def test_every_language_has_every_sentence_and_says_who_speaks() -> None:
    english = bouncer.sentences("en")
    fields = {key: set(re.findall(r"\{\w+\}", text)) for key, text in english.items()}
    for code, said in bouncer.translations().items():
        assert {key: set(re.findall(r"\{\w+\}", text)) for key, text in said.items()} == fields, code
        assert "`/bouncer accept`" in said["disclosed"]
        assert all(re.search(r"\b(AI|IA|KI|ИИ)\b|AI", said[key]) for key in ("disclosed", "read", "recorded")), (
            code
        )
        assert RepoConfig.model_validate({"triage": {"language": code}}).triage.language == code
