"""Set-up walked in a real browser against the simulated GitHub, by keyboard names alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

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

    def seen(name: str) -> None:
        picture(page, name)
        if look:
            faults.extend(serious(page))

    page.goto(f"{site.url}/setup?link={LINK}")
    seen("begin")
    page.get_by_role("button", name="Begin").click()
    seen("choose")
    page.get_by_label("Name of the app").fill("")
    page.get_by_role("button", name="Continue").click()
    assert page.get_by_text("A name of 1 to 34 characters").is_visible()
    seen("choose-wrong")
    page.get_by_label("Name of the app").fill("bouncer of octo")
    page.get_by_role("button", name="Continue").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Create the app"
    seen("confirm")
    page.get_by_role("button", name="Create it on").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Create GitHub App"
    page.get_by_role("button", name="Create GitHub App").click()
    assert page.get_by_role("heading", level=1).inner_text() == "The app exists"
    seen("done")
    page.get_by_role("link", name="Install it on your repositories").click()
    page.get_by_role("button", name="Install").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Bouncer is installed"
    seen("installed")
    return faults


def test_somebody_walks_from_the_link_to_an_installed_app(chromium: Browser, site: Site) -> None:
    """Without scripts, under the real content security policy."""
    context = chromium.new_context(java_script_enabled=False)
    walk(context.new_page(), site)
    context.close()
    kept = stored(site.folder)
    assert kept is not None
    assert kept.slug == "bouncer-of-octo"
    [installation] = site.github.world.installations.values()
    assert installation.repositories == ["octo/demo"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 375)])
def test_no_page_has_a_serious_accessibility_fault(chromium: Browser, site: Site, scheme: str, width: int) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        bypass_csp=True,
    )
    assert walk(context.new_page(), site, look=True) == []
    context.close()
