"""The page of ``bouncer calibrate`` in a real browser: accessible, on a phone too, and self-contained."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from bot.calibration.findings import PastVerdict, draw_line
from bot.calibration.page import Calibration, as_html
from tests.bot.web.conftest import chromium as chromium

pytestmark = pytest.mark.debian("chromium")


def verdicts() -> list[PastVerdict]:
    """Return verdicts of a model that ranks well with a few errors."""
    generator = random.Random(2)
    return [
        PastVerdict(
            subject=f"acme/rocket#{number}",
            number=number,
            title="<b>It crashes</b> when a very long title stands here " * 3,
            url=f"https://github.example/acme/rocket/issues/{number}",
            good=number % 3 > 0,
            why="closed as not planned" if number % 3 == 0 else "closed by the merged pull request #9",
            label="VAGUE",
            severity=2,
            p_bounce=min(99, max(1, round(generator.gauss(25 if number % 3 else 70, 15)))),
            explanation="It is unclear. " * 40,
        )
        for number in range(1, 200)
    ]


def test_the_page_is_accessible_and_requests_no_other_url(tmp_path: Path, chromium: Browser) -> None:
    today = date(2026, 5, 4)
    file = tmp_path / "calibration.html"
    calibration = Calibration(
        repository="acme/rocket", model="scripted:test", created=today, exported=today, requests=215,
        findings=(draw_line("triage", verdicts(), 0.05),),
    )  # fmt: skip
    file.write_text(as_html(calibration))
    requested_urls: list[str] = []
    page = chromium.new_page()
    page.on("request", lambda request: requested_urls.append(request.url))
    for width, scheme in ((1200, "light"), (375, "dark")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.goto(file.as_uri())
        assert [violation["id"] for violation in Axe().run(page).response["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg").count() == 3
    assert page.locator(".words tbody tr").count() == 10
    assert page.locator(".words a").first.get_attribute("href", timeout=1000) or ""
    assert page.locator("td b").count() == 0, "a title is text"
    assert requested_urls == [file.as_uri()] * 2
