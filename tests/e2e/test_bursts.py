"""Many events at once, twice, and out of order, against ``bouncer serve`` as an operator starts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.bot.pipeline.rig import wait
from tests.e2e.site import APP, BROKEN, CLEAR, Site, stopped

BURST = 100


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One process that the operator started; GitHub's deliveries are sent by hand."""
    with stopped(tmp_path_factory.mktemp("serve")) as shop:
        shop.start("bot", "serve")
        wait(shop.ready, 60, "bouncer serve up")
        yield shop


def pull(shop: Site, name: str, content: str = BROKEN) -> tuple[str, int]:
    home = shop.repository(f"acme/{name}")
    shop.github.open_issue(home, *CLEAR)
    return home, shop.github.open_pull(home, "Read values", "Fixes #1", files={APP: content}, closes=[1])


def send(shop: Site, home: str, number: int, action: str = "synchronize", delivery: str = "") -> int:
    """Deliver what happened, as the pull request stands."""
    event, payload = shop.payload(home, number, action)
    return shop.deliver(event, payload, delivery)


def once(shop: Site, home: str, number: int) -> None:
    """Exactly one review and one check, both of the last head."""
    head = shop.head(home, number)
    assert [review.commit_id for review in shop.reviews(home, number)] == [head]
    checks = {(check.head_sha, check.name) for check in shop.github.checks(home)}
    assert checks == {(head, "bouncer / verify"), (head, "bouncer / review")}
    assert len(shop.github.checks(home)) == 2
    assert Counter(comment.body.split("\n")[0] for comment in shop.inline(home, number)).most_common(1)[0][1] == 1


def test_a_hundred_pushes_end_in_one_review_of_the_last_head(served: Site) -> None:
    home, number = pull(served, "burst")
    deliveries = []
    for count in range(BURST):
        served.github.push(home, number, {APP: f"# {count}\n{BROKEN}"})
        deliveries.append(served.payload(home, number, "synchronize"))
    # As fast as they come, over several connections, so that they overtake one another too.
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda item: served.deliver(*item), deliveries)) == {202}
    served.quiet()
    once(served, home, number)
    assert len(served.model.about("Read values", "ReviewReply")) == 1, "nobody paid for the heads in between"


def test_events_that_come_in_the_wrong_order_end_like_the_right_one(served: Site) -> None:
    """The older event arrives last, before the newer one was worked on: the newest head still gets its answer."""
    home, number = pull(served, "order")
    old = served.payload(home, number, "opened")
    served.github.push(home, number, {APP: f"# newer\n{BROKEN}"})
    assert send(served, home, number) == 202
    assert served.deliver(*old) == 202
    served.quiet()
    once(served, home, number)
