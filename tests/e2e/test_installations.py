"""Suspensions of the App, and stored data when a repository is renamed, transferred or deleted."""

from __future__ import annotations

from bot.simgithub.state import InstallationState
from tests.bot.pipeline.rig import wait
from tests.e2e.site import OPEN, VAGUE, Repository, Site


def installation_of(shop: Site, repository: str) -> InstallationState:
    return shop.github.world.installations[shop.installed(repository)]


def test_jobs_of_a_suspended_installation_wait_and_go_on(shop: Site, repository: Repository) -> None:
    home = repository()
    installation = installation_of(shop, home)
    number = shop.slowly.open_issue(home, *VAGUE)
    event, payload = shop.payload(home, number, "opened")
    shop.slowly.edit(home, number, body="It does not work at all.")
    shop.github.suspend(installation)
    before = shop.comments_on(home, number)
    # A delivery that was on its way.
    assert shop.deliver(event, payload) == 202
    wait(lambda: any("has been suspended" in text for text in shop.troubles().values()), 30, "a job waits")
    wait(lambda: {job.state for job in shop.jobs.list(OPEN, home)} == {"waiting"}, 30, "all wait")
    question_count = len(shop.model.asked)
    shop.slowly.suspend(installation, suspended=False)
    assert shop.jobs.list(("dead",), home) == ()
    assert len(shop.model.asked) == question_count + 1
    assert len(shop.comments_on(home, number)) == len(before) == 1


def test_history_follows_a_repository_to_its_new_name(shop: Site, repository: Repository) -> None:
    home = repository()
    number, other = (shop.github.open_issue(home, *VAGUE) for _ in range(2))
    shop.quiet()
    shop.slowly.comment(home, number, "/bouncer accept", author="mia")
    before = {kind: len(shop.decided(home, number, kind)) for kind in ("triage", "commands")}
    event, payload = shop.payload(home, other, "edited", changes={"body": {"from": "It is slow."}})
    new = f"{home}-renamed"
    shop.slowly.rename(home, new)
    assert shop.decided(home, number) == shop.decided(home, other) == ()
    assert {kind: len(shop.decided(new, number, kind)) for kind in before} == before
    assert {decision.subject.repository for decision in shop.decided(new, number)} == {new}
    # It stays accepted, and the question about the other issue is edited, not asked twice.
    shop.github.edit(new, number, body="It does not work, really.")
    shop.slowly.edit(new, other, body="It is broken.")
    assert "accepted" in shop.decided(new, number, "triage")[-1].reason
    assert len(shop.comments_on(new, other)) == 1
    # A delivery that comes late has the old name.
    assert shop.deliver(event, payload) == 202
    shop.quiet()
    assert shop.decided(home, other) == ()
    assert len(shop.comments_on(new, other)) == 1
    assert shop.jobs.list(("dead",), new) == ()
