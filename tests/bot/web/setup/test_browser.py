"""Set-up walked in a real browser against the simulated GitHub, by keyboard names alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from bot.github.registration import stored
from tests.bot.web.conftest import serious
from tests.bot.web.setup.conftest import LINK, Site

pytestmark = pytest.mark.debian("chromium")

#: Pictures of every page go here where this names a folder.
PICTURES = os.environ.get("BOUNCER_SCREENSHOTS")


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def walk(page: Page, site: Site, look: bool = False) -> list[str]:
    """From the link to the installed app; the serious accessibility faults on the way."""
    faults: list[str] = []

    def look_at(name: str) -> None:
        picture(page, name)
        if look:
            faults.extend(serious(page))

    page.goto(f"{site.url}/setup?link={LINK}")
    look_at("begin")
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_label("Start in shadow mode: record, post nothing")).to_be_checked()
    look_at("choose")
    page.get_by_label("Name of the app").fill("")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("Enter a name of 1 to 34 characters")).to_be_visible()
    look_at("choose-wrong")
    page.get_by_label("Name of the app").fill("bouncer of octo")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Create the app")
    look_at("confirm")
    page.get_by_role("button", name="Change something").click()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    assert page.get_by_label("Name of the app").input_value() == "bouncer of octo"
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Create it on GitHub").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Create GitHub App")
    page.get_by_role("button", name="Create GitHub App").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your app is registered")
    look_at("done")
    page.get_by_role("link", name="Install it on your repositories").click()
    page.get_by_role("button", name="Install").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bouncer is installed")
    look_at("installed")
    return faults


def test_walk_from_the_link_to_an_installed_app(chromium: Browser, site: Site) -> None:
    """Without scripts, under the real content security policy."""
    context = chromium.new_context(java_script_enabled=False)
    walk(context.new_page(), site)
    context.close()
    credentials = stored(site.folder)
    assert credentials is not None
    assert credentials.mode == "shadow"
    assert credentials.slug == "bouncer-of-octo"
    [installation] = site.github.world.installations.values()
    assert installation.repositories == ["octo/demo"]


def test_no_page_has_a_serious_accessibility_fault(chromium: Browser, site: Site) -> None:
    context = chromium.new_context(bypass_csp=True)
    assert walk(context.new_page(), site, look=True) == []
    context.close()
