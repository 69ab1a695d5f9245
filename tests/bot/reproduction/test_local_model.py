"""A real model that cannot write tests: nothing breaks, and nothing is offered that was not run and matched.

The small local model's drafts carry no signal; this asserts the shape of the result and never its quality.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.errors import SettingsError
from bot.models.conversation import Conversation
from bot.models.local import Local, smollm2
from bot.models.prompts import Prompts
from bot.reproduction.drafting import Author
from bot.reproduction.execution import Harness
from bot.reproduction.pipeline import Options, reproduce_in
from bot.reproduction.report import parse_report
from tests.bot.models.conftest import WEIGHTS

from .conftest import REPORT


@pytest.mark.local_model
@pytest.mark.timeout(900)
@pytest.mark.debian("bubblewrap")
def test_garbage_of_a_real_model_ends_in_an_abstention(project: Path, harness: Harness) -> None:
    try:
        file = smollm2(WEIGHTS)
    except SettingsError as error:
        pytest.skip(str(error))
    author = Author(Conversation("local:smollm2", Local(lambda: file)), Prompts())

    result = reproduce_in(project, parse_report(REPORT), author, harness, Options(samples=1))

    assert result.usage.calls >= 1
    assert result.state in ("not reproduced", "reproduced")
    assert len(result.attempts) + len(result.failures) >= 1
    for shown in result.shown:
        assert shown.outcome.fails
        assert shown.grade != "other"
    if not result.shown:
        assert result.reason
