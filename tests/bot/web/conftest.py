"""A real browser, and what it finds wrong with a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    options += ["--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        yield started
        started.close()


#: A wide window in light colours, and a phone in dark ones.
SCREENS = ((1200, 800, "light"), (375, 720, "dark"))
#: Only violations are collected: there are many other results.
_LOOK = (
    "axe.run({resultTypes: ['violations']}).then(({violations}) => violations.map(({id, impact}) => [id, impact]))"
)


def serious(page: Page) -> list[str]:
    """Serious accessibility faults on each screen, as axe-core names them. The page ends on the phone."""
    from axe_playwright_python.base import AXE_SCRIPT

    page.evaluate(AXE_SCRIPT)
    faults = []
    for width, height, scheme in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        violations = page.evaluate(_LOOK)
        faults += [
            f"{page.url}, {scheme}: {fault}" for fault, impact in violations if impact in ("serious", "critical")
        ]
    return faults
