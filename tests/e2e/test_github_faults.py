"""Whatever GitHub does, each thing ends said exactly once, or refused with its reason on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.simgithub.faults import Kind
from tests.bot.pipeline.rig import wait
from tests.e2e.site import APP, BROKEN, VAGUE, Repository, Site, site

#: Failures after which the same request may well succeed; how often each strikes at one place.
KINDS: dict[Kind, int] = {
    # The first one costs a new token, the second one means that the app itself was refused for a moment.
    "unauthorized": 2,
    "rate_limited": 1,
    "secondary_limit": 1,
    "too_many": 1,
    "server_error": 1,
    "bad_gateway": 1,
    "reset": 1,
    "lost": 1,
    "html": 1,
    "malformed": 1,
    "slow": 1,
}
#: Where they strike: method and path.
PLACES = (
    ("POST", r"/app/installations/{installation}/access_tokens"),
    ("GET", r"/repos/{home}/issues/\d+$"),
    ("GET", r"/repos/{home}/pulls/\d+$"),
    ("GET", r"/repos/{home}/contents/"),
    ("POST", r"/repos/{home}/issues/\d+/comments"),
    ("POST", r"/repos/{home}/issues/\d+/labels"),
    ("POST", r"/repos/{home}/check-runs"),
    ("POST", r"/repos/{home}/pulls/\d+/reviews"),
)


class Case:
    """A repository in which one kind of failure strikes at every place; a vague issue and a broken patch."""

    def __init__(self, shop: Site, kind: Kind) -> None:
        # An owner of its own, so that it has an installation of its own.
        self.home = f"{kind.replace('_', '-')}/rocket"
        shop.repository(self.home)
        self.faults = [
            shop.github.fail(
                kind,
                method,
                path.format(installation=shop.installed(self.home), home=self.home),
                times=KINDS[kind],
                wait=1.0,
            )
            for method, path in PLACES
        ]
        self.issue = shop.github.open_issue(self.home, *VAGUE)
        self.pull = shop.github.open_pull(
            self.home, "Read values", "Fixes #1", files={APP: BROKEN}, closes=[self.issue]
        )

    def outcome(self, shop: Site) -> dict[str, object]:
        """Return everything of ours that stands on GitHub in the end."""
        return {
            "struck": all(fault.times == 0 for fault in self.faults),
            "comments": [body.split("\n")[0] for body in shop.comments_on(self.home, self.issue)],
            "labels": shop.github.labels(self.home, self.issue),
            "checks": sorted((check.name, check.conclusion) for check in shop.github.checks(self.home)),
            "reviews": [review.commit_id for review in shop.reviews(self.home, self.pull)],
            "inline": [(comment.path, comment.line) for comment in shop.inline(self.home, self.pull)],
            "summaries": shop.comments_on(self.home, self.pull),
        }

    def expected(self, shop: Site) -> dict[str, object]:
        return {
            "struck": True,
            "comments": ["Thanks for the report. To work on this, a maintainer will probably need:"],
            "labels": ["needs-info"],
            "checks": [("bouncer / review", "neutral"), ("bouncer / verify", "neutral")],
            "reviews": [shop.head(self.home, self.pull)],
            "inline": [(APP, 4)],
            "summaries": [],
        }


@pytest.mark.timeout(280)
def test_every_passing_fault_of_github_ends_in_exactly_one_of_each(tmp_path: Path) -> None:
    with site(tmp_path) as shop:
        cases = {kind: Case(shop, kind) for kind in KINDS}
        # Which pauses are made is shown elsewhere.
        shop.quiet(240, meanwhile=shop.hasten)
        ended = {case: (item.outcome(shop), item.expected(shop)) for case, item in cases.items()}
        assert {case: outcome for case, (outcome, expected) in ended.items() if outcome != expected} == {}
        assert shop.jobs.counts().keys() == {"done"}
        # Three questions a case: whatever GitHub did, no model was paid twice for the same job.
        assert len(shop.model.asked) == 3 * len(KINDS)


def test_what_github_refuses_for_good_is_a_dead_letter_with_its_reason(shop: Site, repository: Repository) -> None:
    home = repository()
    before = len(shop.model.asked)
    for path in ("issues/1/comments", "check-runs", "pulls/2/reviews"):
        shop.github.fail("forbidden", "POST", f"/repos/{home}/{path}", times=99)
    shop.github.open_issue(home, *VAGUE)
    shop.slowly.open_pull(home, "Read values", "Fixes #1", files={APP: BROKEN}, closes=[1])
    dead = {item.task: item.error for item in shop.jobs.list(("dead",), home)}
    assert dead.keys() == {"triage", "verify", "review"}
    assert all("403: Resource not accessible by integration" in str(value) for value in dead.values())
    # What was not refused was done.
    assert shop.github.labels(home, 1) == ["needs-info"]
    assert shop.decided(home, 2) == (), "what nobody saw was not said"

    shop.github._server.faults.clear()
    for job in shop.jobs.list(("dead",), home):
        shop.jobs.retry(job.id)
    shop.quiet()
    assert len(shop.comments_on(home, 1)) == len(shop.inline(home, 2)) == len(shop.checks(home)) == 1
    assert len(shop.model.asked) == before + 3, "a retry pays for nothing twice"


def test_changes_are_judged_when_the_account_lets_us_read_them(shop: Site, repository: Repository) -> None:
    home = repository()
    shop.slowly.open_pull(home, "Read values", "Read the values of a file.", files={APP: BROKEN})
    shop.github.fail("forbidden", "GET", f"/repos/{home}/pulls/1/comments", times=99)
    shop.slowly.push(home, 1, {APP: f"# newer\n{BROKEN}"})

    def abstentions() -> list[str | None]:
        return [decision.abstained for decision in shop.decided(home, 1, "review")]

    assert abstentions() == [None, "forge:403"]
    accept_permissions(shop, home)
    wait(lambda: abstentions() == [None, None], 30, "the push is judged")
    shop.quiet()


def accept_permissions(shop: Site, home: str) -> None:
    shop.github._server.faults.clear()
    installation = shop.installed(home)
    account = {"id": 1, "login": home.partition("/")[0]}
    payload = {
        "action": "new_permissions_accepted",
        "installation": {"id": installation, "account": account},
        "sender": account,
    }
    assert shop.deliver("installation", payload) == 202
