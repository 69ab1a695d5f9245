"""Whatever a model says is posted dead: rendered as GitHub does, nothing in it is alive that we did not write."""

from __future__ import annotations

from html import unescape
from urllib.parse import unquote, unquote_plus

import pytest

from bot.core.redaction import protecting
from bot.pipeline.body import WITHHELD
from tests.attacks.corpus import params
from tests.attacks.model_text import SECRETS, TABLE
from tests.bot.pipeline.publishing.rendering import words
from tests.bot.pipeline.publishing.surfaces import Press


@pytest.mark.parametrize(("never", "attack"), params(TABLE))
def test_a_text_stays_dead_wherever_it_is_posted(never: str, attack: str) -> None:
    assert Press().everywhere(attack) == "", never


@pytest.mark.parametrize(("never", "attack"), params(TABLE))
def test_a_file_that_a_brief_links_stays_dead(never: str, attack: str) -> None:
    assert Press().linked_file(attack) == "", never


def compact(text: str) -> str:
    return "".join(text.replace("\u200b", "").split())


@pytest.mark.parametrize(("never", "attack"), params(SECRETS))
def test_a_secret_is_nowhere_posted(never: str, attack: tuple[str, str]) -> None:
    secret, text = attack
    press = Press(secret)
    with protecting([secret]):
        press.everywhere(text)
    assert "and so on" in press.sent[0]
    assert not any(WITHHELD in comment for comment in press.sent), "taken out, and the rest stays"
    # A handler that is run without it: the text as people read it is looked at again.
    press.everywhere(text)
    for posted in press.sent:
        for view in (posted, words(posted)):
            for form in (view, unescape(view), unquote(view), unquote_plus(view)):
                assert compact(secret) not in compact(form), never
