"""Limits on the command line: what limits nothing is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.bot.cli.github_commands import Ran
from tests.evaluation.running import refusal


@pytest.mark.parametrize("usd", ["nan", "inf", "-inf", "-1", "1e999"])
def test_a_limit_that_limits_nothing_is_refused(bouncer: Callable[..., Ran], usd: str) -> None:
    for arguments in ("backlog a/b", "calibrate a/b", "action"):
        ran = bouncer(*arguments.split(), f"--max-cost={usd}")
        assert (ran.code, ran.out) == (2, "")
        assert re.search(r"Invalid value for '--max-cost': .* is not (a finite number|in the range x>=0)", ran.err)
    assert "--max-cost" in refusal(f"replay bouncerbench-input --tasks t --out r --max-cost={usd}")
