"""A change cannot leave itself out, and nothing that a model wrote lands where it decides what runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.code.diff import parse
from bot.code.file_classes import reviewable_part
from bot.code.packing import pack
from bot.core.actions import SetCheck
from bot.features.review.texts import EXPECTED
from bot.features.services import Services
from bot.github.protocol import PullDiff
from bot.pipeline.body import protection
from bot.router import decide
from tests.attacks.changes import EVIL, EXEMPTIONS, NAMED, ORDINARY, PATHS
from tests.attacks.corpus import params
from tests.bot.features import test_verify as verify
from tests.bot.features.conftest import history, services  # noqa: F401
from tests.builders import pull_opened
from tests.scripted import ScriptedModel

OTHER = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(("never", "attack"), params(EXEMPTIONS))
def test_a_change_cannot_exempt_itself(never: str, attack: str) -> None:
    text = OTHER + attack
    diff = parse(text)
    assert diff.flaws == ()
    visible_text = "\n".join(piece.text for piece in pack(diff, 20_000, 4).pieces)
    assert EVIL in visible_text, never
    assert reviewable_part(text, diff) == (text, ()), never


@pytest.mark.parametrize(("never", "attack"), params(NAMED))
def test_a_change_that_stays_left_out_is_named(
    services: Callable[..., Services],  # noqa: F811
    never: str,
    attack: str,
) -> None:
    text = OTHER + attack
    path = parse(text).files[1].path
    here = verify.snapshot(12, diffs={20: PullDiff(text=text)})
    (decision,) = decide(pull_opened(), services(ScriptedModel([verify.GOOD]), here), only="verify")
    (check,) = decision.actions
    assert isinstance(check, SetCheck)
    assert check.title == f"Appears to solve #12 (not executed); not judged: {path}", never
    (skipped,) = pack(parse(text), 20_000, 4).skipped
    assert skipped.reason not in EXPECTED - {"lock file"}, never


@pytest.mark.parametrize(("never", "attack"), params(PATHS))
def test_nothing_is_written_to_what_decides_what_runs(never: str, attack: str) -> None:
    assert protection(attack), never


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_files_may_be_written(path: str) -> None:
    assert protection(path) == ""
