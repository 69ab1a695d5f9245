"""The share of the budget that is kept for maintainers opens for commands that maintainers may give, alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.core.subjects import Actor
from bot.features.services import Services
from bot.features.shared.rights import by_maintainer
from bot.router import SLASH_COMMANDS
from tests.bot.features import test_triage as triage
from tests.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("body", "by", "theirs"),
    [
        ("/bouncer recheck", triage.ANN, False),
        ("/bouncer recheck", triage.MAINTAINER, True),
        ("/bouncer reproduce", triage.MAINTAINER, True),
        ("/bouncer help", triage.MAINTAINER, False),
        ("It is 4.2.", triage.MAINTAINER, False),
        *(
            (f"/bouncer recheck\n/bouncer {command.word}", triage.ANN, False)
            for command in SLASH_COMMANDS
            if command.word != "recheck"
        ),
        ("It is 4.2.\n\n/bouncer accept", triage.ANN, False),
        ("/bouncer reproduce", triage.BOB, False),
        ("/bouncer recheck", triage.BOB, False),
    ],
)
def test_what_counts_as_asked_by_a_maintainer(
    services: Callable[..., Services], body: str, by: Actor, theirs: bool
) -> None:
    here = services(ScriptedModel(), triage.snapshot())
    assert by_maintainer(triage.said(body, by), here) is theirs
    assert not by_maintainer(triage.opened(), here)
