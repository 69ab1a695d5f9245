"""Actions of operators on the dashboard, and their effect on GitHub."""

from __future__ import annotations

import csv
import io
import json
import re

from tests.bot.pipeline.rig import wait
from tests.e2e.site import APP, BROKEN, CLEAR, Browser, Repository, Site


def press(browser: Browser, page: str, button: str) -> str:
    """Press a button of a page."""
    forms = re.findall(r'<form method="post" action="([^"]+)">(.*?)</form>', browser.get(page), re.DOTALL)
    for action, inside in forms:
        if f"<button>{button}</button>" in inside:
            fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', inside))
            return browser.get(action, fields)
    raise AssertionError(f"{page} has no button {button!r}")


def decision_page(shop: Site, browser: Browser, home: str, number: int, kind: str) -> str:
    """The path of the newest decision of a kind on a subject."""
    pages = browser.get(f"/decisions?kind={kind}&text={home}%23{number}")
    match = re.search(r'href="(/decisions/\d+)"', pages)
    assert match, pages
    return match[1]


def test_what_is_paused_is_left_alone_until_it_is_resumed_and_rechecked(
    shop: Site, repository: Repository
) -> None:
    home, browser = repository(), shop.browser()
    issue = shop.slowly.open_issue(home, "It breaks", "It does not work.")
    assert len(shop.comments_on(home, issue)) == 1
    assert f"{home}</a>" in browser.get("/installations")

    press(browser, "/installations", f"Pause {home}")
    pull = shop.slowly.open_pull(home, "Read", f"Fixes #{issue}", files={APP: BROKEN}, closes=[issue])
    assert (shop.github.checks(home), shop.inline(home, pull)) == ([], [])
    press(browser, "/installations", f"Resume {home}")

    at = decision_page(shop, browser, home, issue, "triage")
    press(browser, at, f"Pause {home}#{issue}")
    shop.slowly.edit(home, issue, body="It still does not work.")
    assert shop.decided(home, issue, "triage")[-1].abstained == "skipped:paused"
    press(browser, decision_page(shop, browser, home, issue, "triage"), f"Resume {home}#{issue}")
    before = len(shop.decided(home, issue, "triage"))
    press(browser, decision_page(shop, browser, home, issue, "triage"), "Recheck")
    wait(lambda: len(shop.decided(home, issue, "triage")) > before, 60, "it was looked at again")
    assert shop.decided(home, issue, "triage")[-1].verdict == "VAGUE"

    rows = list(csv.DictReader(io.StringIO(browser.get(f"/decisions.csv?repository={home}"))))
    same = json.loads(browser.get(f"/decisions.json?repository={home}"))
    assert [row["id"] for row in rows] == [str(row["id"]) for row in same]
    assert {row["verdict"] for row in rows if row["kind"] == "commands"} == {"pause", "resume"}


def test_a_pull_request_that_was_passed_over_is_checked_on_request(shop: Site, repository: Repository) -> None:
    home, browser = repository(**{".github/bouncer.yml": "pulls: {ignore_titles: [WIP]}\n"}), shop.browser()
    issue = shop.github.open_issue(home, "It breaks", "It does not work.")
    pull = shop.slowly.open_pull(home, "WIP read", f"Fixes #{issue}", files={APP: BROKEN}, closes=[issue])
    assert shop.inline(home, pull) == []
    press(browser, decision_page(shop, browser, home, pull, "review"), "Recheck")
    wait(lambda: bool(shop.inline(home, pull)), 60, "it was reviewed")


def test_onboarding_opens_a_pull_request_with_a_first_configuration(shop: Site, repository: Repository) -> None:
    home, browser = repository(), shop.browser()
    shop.slowly.open_issue(home, *CLEAR)
    page = f"/onboarding?repository={home}"
    assert page in browser.get("/installations")
    assert "mode: shadow" in browser.get(page)
    press(browser, page, "Open a pull request")
    issues = shop.github.world.repositories[home].issues
    wait(lambda: len(issues) > 1, 60, "a pull request was opened")
    shop.quiet()
    request = issues[max(issues)]
    assert request.pull is not None
    assert (request.title, request.pull.draft) == ("Add .github/bouncer.yml", True)
    assert "posts nothing" in request.body
    (check,) = [run for run in shop.github.checks(home) if run.name == "bouncer / config"]
    assert check.conclusion == "success"
