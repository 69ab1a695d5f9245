"""How often GitHub is asked: its hourly quota is what limits a busy repository."""

from __future__ import annotations

from tests.bench.forge import (
    COMPARED,
    CONFIG,
    GATED,
    VERIFIED,
    measure,
    measure_duplicates,
    measure_gate,
    measure_pulls,
)
from tests.e2e.site import APP, BASE, Repository, Site


def test_each_thing_that_happens_costs_few_requests(shop: Site, repository: Repository) -> None:
    costs = measure(shop, repository(**{".github/bouncer.yml": CONFIG, APP: BASE}))
    most = {
        "bounced issue": 5,
        "clear issue": 2,
        "comment of no concern": 0,
        "comment on a clear issue": 0,
        "author's answer that clears": 5,
        "pull request, check and review": 9,
        "push to it": 11,
        "issue after a push to main": 2,
    }
    over = {
        name: f"{cost.counted} counted of {len(cost.requests)}:\n{cost.listed()}"
        for name, cost in costs.items()
        if cost.counted > most[name]
    }
    assert over == {}
    assert costs.keys() == most.keys()


def test_the_gate_costs_two_more_requests_for_a_pull_request(shop: Site, repository: Repository) -> None:
    costs = measure_gate(shop, repository(**{".github/bouncer.yml": GATED, APP: BASE}))
    assert {name.removeprefix("gate: "): cost.counted for name, cost in costs.items()} == {
        # One is the diff, which the check of bouncer.yml reads.
        "pull request": 3,
        "push to it": 3,
        # One to find the pull requests that link it, two for the only one.
        "issue is labelled ready": 3,
        "issue gets another label": 0,
        "issue that no change links": 1,
    }


def test_comparing_issues_costs_no_request(shop: Site, repository: Repository) -> None:
    costs = measure_duplicates(shop, repository(**{".github/bouncer.yml": COMPARED}))
    assert {name.removeprefix("duplicates: "): cost.counted for name, cost in costs.items()} == {
        "issue like no other": 0,
        "issue with another cause": 0,
        # The fresh read before a write, and the comment.
        "issue that repeats another": 2,
        "issue is labelled": 0,
    }


def test_comparing_pull_requests_costs_no_request(shop: Site, repository: Repository) -> None:
    files = {
        mode: {".github/bouncer.yml": VERIFIED.replace("MODE", mode), APP: BASE} for mode in ("'off'", "comment")
    }
    off, comment = (measure_pulls(shop, repository(**content)) for content in files.values())
    assert comment.counted == off.counted, comment.listed()
