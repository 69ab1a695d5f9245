"""The pages of the layers in a browser: no two texts overlap, wide or narrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.benchmark import Scoring
from evaluation.bloom.components import COMPONENTS, Presence, analyze
from evaluation.bloom.layers import Comparison, compare
from evaluation.bloom.report import _books_section, analysis_section
from evaluation.brt.metrics import Bug, Draft
from evaluation.brt.report import ScoredRun
from evaluation.brt.report import sections as brt_sections
from evaluation.report.page import Report, Section, as_html
from tests.evaluation.browser import look

pytestmark = pytest.mark.debian("chromium")


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


def test_the_papers_open_book_stands_beside_its_closed_one() -> None:
    """Table 5: StarCoder finds 10.7 % of Defects4J closed and 34.9 % open, 226 % more."""
    (table,) = _books_section({}).tables
    row = ("paper, Defects4J, StarCoder: meaningful", "10.7", "34.9", "226.2", None)
    assert row in table.rows
    assert len(table.rows) == 12


def test_no_texts_of_a_page_overlap(tmp_path: Path) -> None:
    report = Report("layers and runs", (*layers(), *runs()), "made by a test")
    (tmp_path / "page.html").write_text(as_html(report), "utf-8")
    look(tmp_path / "page.html", figures=5)
