"""The dashboard in a real browser, without JavaScript of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from bot.web.app import Backend
from tests.bot.web.conftest import serious
from tests.bot.web.dashboard.conftest import PASSWORD, decision

PATHS = (
    "/",
    "/decisions",
    "/decisions/1",
    "/decisions/8",
    "/decisions/10",
    "/shadow",
    "/line?repository=acme/rocket",
    "/installations",
    "/costs",
    "/jobs",
    "/jobs/dead:triage",
    "/rejudge?since=2026-01-01&limit=10",
)

PHONE = {"width": 375, "height": 720}

pytestmark = pytest.mark.debian("chromium")


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport=PHONE, color_scheme="dark", bypass_csp=True)
    yield context.new_page()
    context.close()


def test_log_in_filter_open_a_decision_and_retry_a_dead_letter(page: Page, site: str, filled: Backend) -> None:
    faults: list[str] = []
    foreign: list[str] = []
    page.on("request", lambda request: None if request.url.startswith(site) else foreign.append(request.url))

    page.goto(site)
    assert page.get_by_role("link", name="Log in with GitHub").is_visible()
    faults += serious(page)
    # What is typed before the field has the focus goes nowhere.
    page.wait_for_function("document.activeElement.tagName === 'INPUT'")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    expect(page.get_by_text("muted", exact=True)).to_be_visible()
    faults += serious(page)

    page.get_by_role("link", name="Decisions").click()
    page.get_by_label("Outcome").select_option("abstained")
    page.get_by_label("Kind").select_option("triage")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_text("model:refused")).to_be_visible()
    page.get_by_label("Outcome").select_option("bounced")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(4)
    faults += serious(page)

    page.get_by_role("link", name="acme/rocket#4").click()
    expect(page.get_by_text("not specified well enough")).to_be_visible()
    assert "owned" not in page.title()
    faults += serious(page)

    page.get_by_role("link", name="Shadow mode").click()
    expect(page.get_by_role("article").first.locator("strong")).to_have_text("files")
    faults += serious(page)

    page.get_by_role("link", name="Decisions").click()
    page.get_by_label("Search").fill("#32")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="acme/rocket#32").click()
    expect(page.get_by_role("article").last.locator("strong")).to_have_text("last")
    assert page.get_by_text("Suggested change").count() == 0  # the style sheet's, not the text's
    faults += serious(page)

    page.get_by_role("link", name="Costs").click()
    expect(page.get_by_text("scripted:test").first).to_be_visible()
    faults += serious(page)

    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="failed (1)").click()
    page.locator("tbody a").click()
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    faults += serious(page)
    page.get_by_role("button", name="Retry").click()
    page.get_by_text("queued", exact=True).wait_for()
    assert filled.jobs.get("dead:triage").state == "queued"

    page.get_by_role("link", name="Installations").click()
    page.get_by_role("button", name="Pause acme/rocket").click()
    page.get_by_text("paused by the operator").wait_for()
    faults += serious(page)
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("button", name="Pause everything").click()
    page.get_by_text("Paused by the operator").wait_for()
    faults += serious(page)

    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    page.goto(f"{site}/decisions")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    assert faults == []
    assert foreign == []


#: Tables and charts whose parts reach beyond the screen, and text in charts that is smaller than 9 pixels.
CUT = """
() => {
  const names = [];
  for (const cell of document.querySelectorAll('th, td')) {
    const box = cell.getBoundingClientRect();
    const hidden = cell.closest('thead') && box.right < 0;
    const cut = box.width && (box.right > innerWidth + 0.5 || box.left < 0);
    if (cut && !hidden) names.push('cell ' + cell.textContent);
  }
  for (const text of document.querySelectorAll('svg text')) {
    const svg = text.ownerSVGElement;
    const size = parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a;
    const box = text.getBoundingClientRect();
    if (box.width && size < 9) names.push('text of ' + size.toFixed(1) + ' px: ' + text.textContent);
    const frame = svg.getBoundingClientRect();
    const cut = box.width && (box.right > frame.right + 0.5 || box.left < frame.left - 0.5);
    if (cut) names.push('label ' + text.textContent);
  }
  return names;
}
"""


def test_nothing_is_wider_than_a_phone_or_cut_at_500_pixels(page: Page, site: str, filled: Backend) -> None:
    long = decision(1, repository=f"acme/{'x' * 80}").model_copy(update={"reason": "W" * 256})
    filled.ledger.decisions.record("long:triage", (long,), "c0ffee")
    page.goto(site)
    page.get_by_label("The operator's password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    for path in PATHS:
        page.set_viewport_size(PHONE)
        answer = page.goto(site + path)
        assert answer is not None
        assert answer.ok, path
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
        page.set_viewport_size({"width": 500, "height": 800})
        for summary in page.locator("details > summary").all():
            summary.click()
        assert page.evaluate(CUT) == [], path
