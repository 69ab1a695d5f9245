"""Whatever a model says: what GitHub's own renderer makes of it holds nothing alive that we did not write."""

from __future__ import annotations

import pytest

from bot.pipeline.body import Rules
from bot.pipeline.publisher import Publisher
from tests.bot.pipeline.publishing.attacks import generated
from tests.bot.pipeline.publishing.rendering import fault
from tests.bot.pipeline.publishing.surfaces import HOST, OWN_SECRET, Press, Register

#: Texts in continuous integration; ``python -m tests.bench markdown`` takes any number.
TEXTS, PARTS = 3_600, 3


@pytest.mark.parametrize("part", range(PARTS))
def test_generated_attacks_stay_dead(part):
    press = Press()
    places = press.places()
    for number, text in enumerate(generated(TEXTS // PARTS, seed=part)):
        place = places[number % len(places)]
        assert place(text) == "", f"{place.__name__}: {text!r}"


def test_what_is_withheld_is_in_no_traceback_s_words():
    publisher = Publisher(Register(), secrets=[OWN_SECRET])
    assert OWN_SECRET not in repr((publisher, Rules(secrets=(OWN_SECRET,))))


ALIVE = """
@octocat | ![x](//evil.example/p.png) | [x](https://evil.example) | Fixes #1 | <b>x</b> | /close | :tada: | $x$ |
www.evil.example | me@evil.example | <!-- x --> | - [ ] x | <https://evil.example> | acme/rocket#3 | ~~x~~ | # x |
```suggestion
x
```
"""


@pytest.mark.parametrize("text", [part.strip() for part in ALIVE.split(" |")])
def test_the_judge_sees_what_is_alive(text):
    assert fault(text, HOST, marker=False) != ""
