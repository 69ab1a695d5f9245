"""The pages of the layers in a browser: no two texts of a figure overlap, wide or narrow."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from evaluation.benchmark import Scoring
from evaluation.bloom.components import COMPONENTS, Presence, analyze
from evaluation.bloom.layers import Comparison, compare
from evaluation.bloom.report import _books_section, analysis_section
from evaluation.brt.metrics import Bug, Draft
from evaluation.brt.report import ScoredRun
from evaluation.brt.report import sections as brt_sections
from evaluation.report.page import Report, Section, as_html

pytestmark = pytest.mark.debian("chromium")

#: Every group of letters of every figure, as boxes in pixels.
BOXES = """() => [...document.querySelectorAll("svg")].map(svg =>
    [...svg.querySelectorAll("g[id^=text_]")].map(text => {
        const box = text.getBoundingClientRect();
        return [box.left, box.top, box.right, box.bottom];
    }))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


def layers() -> list[Section]:
    """Figures 1 and 2, our own beside them, and the form of Figures 3 to 7 with all components."""
    reports = [
        Presence(bug_id=str(n), components={c: (n >> i) % 2 == 0 for i, c in enumerate(COMPONENTS)})
        for n in range(160)
    ]
    analysis = analyze(reports, {str(n): n % 2 == 0 for n in range(160)})
    books: dict[str, Comparison] = {
        f"runs/meaningful-masks-rephrased-{n}": compare({"a": True, "b": False}, {"a": True, "b": n % 2 == 0})
        for n in range(3)
    }
    return [_books_section(books), analysis_section(analysis, by_hand=True)]


def runs() -> list[Section]:
    bugs = tuple(Bug(f"b-{n}", (Draft(candidate_id="1", brt=n % 2 == 0),)) for n in range(6))
    names = ("gpt-5-mini (fresh-pytest-2026-01)", "claude-3.7-sonnet (fresh-pytest-2026-01)", "o4-mini (fresh)")
    return brt_sections([ScoredRun(name, bugs) for name in names], Scoring(replicates=50))


@pytest.mark.parametrize("width", [1200, 500])
@pytest.mark.parametrize(("name", "figures"), [("layers", 4), ("runs", 1)])
def test_no_texts_of_a_figure_overlap(
    browser: Browser, tmp_path: Path, name: str, figures: int, width: int
) -> None:
    sections = {"layers": layers, "runs": runs}[name]()
    (tmp_path / "page.html").write_text(as_html(Report(name, tuple(sections), "made by a test")), "utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())

    boxes: list[list[list[float]]] = page.evaluate(BOXES)

    assert len(boxes) == figures
    assert all(len(texts) > 5 for texts in boxes)
    assert [pair for texts in boxes for pair in overlaps(texts)] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def overlaps(boxes: list[list[float]]) -> Iterator[Any]:
    for place, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:place]:
            if min(right, other[2]) - max(left, other[0]) > 1 and min(bottom, other[3]) - max(top, other[1]) > 1:
                yield json.dumps([(left, top, right, bottom), other])
