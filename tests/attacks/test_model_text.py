"""Whatever a model says is posted dead: rendered as GitHub does, nothing in it is alive that we did not write."""

from __future__ import annotations

import pytest

from tests.attacks.corpus import params
from tests.attacks.model_text import TABLE
from tests.bot.pipeline.publishing.surfaces import Press


@pytest.mark.parametrize(("never", "attack"), params(TABLE))
def test_a_text_stays_dead_wherever_it_is_posted(never: str, attack: str) -> None:
    assert Press().everywhere(attack) == "", never
