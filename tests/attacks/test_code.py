"""Whatever a source file holds, the other threads go on, and what runs otherwise is reviewed."""

from __future__ import annotations

import time

import pytest

from bot.code.syntax import definitions, fingerprint
from bot.features.review.meaning import same
from tests.attacks.code import DISGUISED, SLOW
from tests.attacks.corpus import params
from tests.parsers.pulse import beats


@pytest.mark.parametrize(("never", "attack"), params(SLOW))
def test_slow(never: str, attack: tuple[str, str, int]) -> None:
    path, unit, size = attack
    text = unit * (size // len(unit))
    start = time.process_time()
    with beats() as longest:
        definitions(text, path)
        fingerprint(text, path)
    assert time.process_time() - start < 2, never
    assert longest() < 2, never


@pytest.mark.parametrize(("never", "attack"), params(DISGUISED))
def test_disguised(never: str, attack: tuple[str, str, str]) -> None:
    path, before, after = attack
    assert not same(before, after, path), never
    assert not same(after, before, path), never
