"""Whatever a model's provider does for a while, verify and review end said exactly once, or wait for the operator.

Of issues, ``tests/attacks/test_app.py`` and ``tests/bot/pipeline/test_operator_faults.py`` show it.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from werkzeug import Request, Response

from tests.bot.pipeline.rig import wait
from tests.e2e.provider import completion, failure, half
from tests.e2e.site import APP, BROKEN, Site, site

#: Longer than the operator of this site lets a model think, seconds.
PATIENCE = 2.0
FOR_EVER = 40


def late(request: Request) -> Response:
    time.sleep(PATIENCE + 1)
    return completion("{}")


def reset(request: Request) -> Response:
    connection: socket.socket = request.environ["werkzeug.socket"]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    return completion("{}")


def cut(request: Request) -> Response:
    return half()


Answers = Sequence[Response | Callable[[Request], Response]]

#: Each strikes a pull request of its own, verify and review alike. More errors and answers of each kind are in
#: ``tests/bot/models/test_providers.py``.
PASSING: dict[str, Answers] = {
    "429 and a pause": [failure(429, **{"Retry-After": "1"})],
    "502 and 503": [failure(502), failure(503)],
    "timeout": [late],
    "reset": [reset],
    "cut stream": [cut],
    "malformed once": [completion("I would rather not say.")],
    "length once": [completion('{"explanation": "and then', "length")],
    "nothing said once": [completion(None)],
}
#: An operator's: see tests/bot/pipeline/test_operator_faults.py.
AWAITED: dict[str, Answers] = {
    "wrong key": [failure(401, "Incorrect API key provided: sk-e2e-0123456789abcdef")] * FOR_EVER,
    "no credit": [failure(429, "You exceeded your quota (insufficient_quota)")] * FOR_EVER,
    "redirect": [Response("", 307, {"Location": "http://127.0.0.1:9/"})] * FOR_EVER,
}
FAULTS = {**PASSING, **AWAITED}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site after every fault struck, and the pull request of each."""
    folder: Path = tmp_path_factory.mktemp("faults")
    with site(folder, BOUNCER_MODEL_SECONDS=str(PATIENCE)) as shop:
        homes = {name: shop.repository(f"acme/fault{index}") for index, name in enumerate(FAULTS)}
        for name, home in homes.items():
            shop.github.open_issue(home, "Empty files", f"In version 4.2 it fails. fault: verify {name};")
        shop.quiet()
        pulls = {}
        for name, home in homes.items():
            shop.model.misbehave(f"fault: verify {name};", *FAULTS[name])
            shop.model.misbehave(f"fault: review {name};", *FAULTS[name])
            text = f"Fixes #1 fault: review {name};"
            pulls[name] = home, shop.github.open_pull(home, "Read", text, files={APP: BROKEN}, closes=[1])
        shop.github.settle()
        # Verify and review of each pull request.
        waiting = 2 * len(AWAITED)
        wait(lambda: shop.unfinished() == waiting == len(shop.jobs.list(("waiting",))), 120, "all else is done")
        yield shop, pulls


@pytest.mark.timeout(200)
@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_costs_time_and_nothing_else(ended: tuple[Site, Any], name: str) -> None:
    shop, pulls = ended
    home, number = pulls[name]
    assert [(check.conclusion, check.output["title"]) for check in shop.checks(home)] == [
        ("neutral", "Probably doesn't solve #1")
    ]
    assert [review.commit_id for review in shop.reviews(home, number)] == [shop.head(home, number)]
    assert [(comment.path, comment.line) for comment in shop.inline(home, number)] == [(APP, 4)]
    assert shop.comments_on(home, number) == []
    assert {job.state for job in shop.jobs.list((), home)} == {"done"}


@pytest.mark.parametrize("name", AWAITED)
def test_a_fault_of_the_operator_is_waited_for_in_silence(ended: tuple[Site, Any], name: str) -> None:
    shop, pulls = ended
    home, number = pulls[name]
    assert shop.decided(home, number, "verify", "review") == ()
    assert (shop.github.checks(home), shop.comments_on(home, number), shop.reviews(home, number)) == ([], [], [])
    waiting = shop.jobs.list(("waiting",), home)
    assert {(job.task, job.tries) for job in waiting} == {("verify", 0), ("review", 0)}
