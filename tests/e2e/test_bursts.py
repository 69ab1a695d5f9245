"""Many events at once, twice, and out of order, against ``bouncer serve`` as an operator starts it."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.bot.pipeline.rig import wait
from tests.e2e.site import APP, BROKEN, CLEAR, FIXED, WORSE, Site, stopped

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


def test_pushes_while_the_model_thinks_end_in_one_review_of_the_last_head(served: Site) -> None:
    home, number = pull(served, "thinking")

    def pushes_meanwhile(request: object) -> None:
        served.github.push(home, number, {APP: WORSE})
        assert send(served, home, number) == 202

    served.model.misbehave("slow thought", pushes_meanwhile)
    served.github.edit(home, number, title="Read values: slow thought")
    assert send(served, home, number, "opened") == 202
    served.quiet()
    head = served.head(home, number)
    assert [review.commit_id for review in served.reviews(home, number)] == [head]
    assert len(served.inline(home, number)) == 2
    assert [check.head_sha for check in served.checks(home)][-1] == head


def test_a_redelivery_is_ignored_while_it_is_worked_on_and_after(served: Site) -> None:
    home, number = pull(served, "again")
    delivery = str(uuid.uuid4())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(served, home, number, "opened", delivery), range(8)))
    assert set(answers) == {202}
    served.quiet()
    once(served, home, number)
    requests = len(served.github.requests)
    assert send(served, home, number, "opened", delivery) == 202
    served.quiet()
    assert len(served.github.requests) == requests
    tasks = Counter(job.task for job in served.jobs.list((), home, 100) if job.delivery == delivery)
    assert {"verify", "review"} <= tasks.keys()
    assert set(tasks.values()) == {1}


def test_the_same_head_announced_by_several_events_is_reviewed_once(served: Site) -> None:
    home, number = pull(served, "ways")
    for action in ("opened", "synchronize", "reopened", "ready_for_review", "edited"):
        changes = {"changes": {"body": {"from": "before"}}} if action == "edited" else {}
        event, payload = served.payload(home, number, action, **changes)
        assert served.deliver(event, payload) == 202
        served.quiet()
    once(served, home, number)


def test_an_event_about_an_older_head_that_comes_late_changes_nothing(served: Site) -> None:
    home, number = pull(served, "late")
    old = served.payload(home, number, "opened")
    served.github.push(home, number, {APP: f"# newer\n{BROKEN}"})
    assert send(served, home, number) == 202
    served.quiet()
    once(served, home, number)
    assert served.deliver(*old) == 202
    served.quiet()
    once(served, home, number)


def test_events_that_come_in_the_wrong_order_end_like_the_right_one(served: Site) -> None:
    """The older event arrives last, before the newer one was worked on: the newest head still gets its answer."""
    home, number = pull(served, "order")
    old = served.payload(home, number, "opened")
    served.github.push(home, number, {APP: f"# newer\n{BROKEN}"})
    assert send(served, home, number) == 202
    assert served.deliver(*old) == 202
    served.quiet()
    once(served, home, number)


def test_an_issue_edited_out_of_order_is_judged_as_it_stands(served: Site) -> None:
    home = served.repository("acme/edits")
    number = served.github.open_issue(home, "It breaks", "Help.")
    first = served.payload(home, number, "opened")
    served.github.edit(home, number, body="With version 4.2 it fails.")
    event, edited = served.payload(home, number, "edited", changes={"body": {"from": "Help."}})
    assert served.deliver(event, edited) == 202
    assert served.deliver(*first) == 202
    served.quiet()
    assert served.comments_on(home, number) == []
    assert served.github.labels(home, number) == []
    assert [decision.verdict for decision in served.decided(home, number, "triage") if decision.verdict] == [
        "WELL_SPECIFIED"
    ]


def test_issues_that_come_all_at_once_are_each_answered_once(served: Site) -> None:
    home = served.repository("acme/crowd")
    # Labels only: between two comments GitHub wants a second of pause.
    served.github.commit(home, {".github/bouncer.yml": "triage:\n  mode: label\n"})
    numbers = [served.github.open_issue(home, f"It breaks all {count}", "Help.") for count in range(20)]
    deliveries = [served.payload(home, number, "opened") for number in numbers]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda item: served.deliver(*item), deliveries)) == {202}
    served.quiet()
    assert [served.github.labels(home, number) for number in numbers] == [["needs-info"]] * len(numbers)
    assert len(served.model.about("It breaks all", "InputReply")) == len(numbers)


def test_a_closed_pull_request_is_left_alone(served: Site) -> None:
    home, number = pull(served, "closed", FIXED)
    old = served.payload(home, number, "opened")
    served.github.close(home, number, by="mia")
    assert served.deliver(*old) == 202
    served.quiet()
    assert served.reviews(home, number) == []
