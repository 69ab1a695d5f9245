"""Pages of the laboratory in a real browser: texts that overlap, and pages wider than their window."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTHS = (1200, 500)

#: Opens what is folded, then compares boxes in pixels: the letters of each figure, and all other pieces of text.
_LOOK = """() => {
    document.querySelectorAll("details").forEach(part => part.open = true);
    const figures = [...document.querySelectorAll("svg")].map(svg =>
        [...svg.querySelectorAll("g[id^=text_]")].map(text => [text.id, text.getBoundingClientRect()]));
    const words = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (node.textContent.trim() && !node.parentElement.closest("svg")) {
            const range = document.createRange();
            range.selectNodeContents(node);
            for (const box of range.getClientRects()) words.push([node.textContent.trim().slice(0, 40), box]);
        }
    }
    const overlaps = [];
    for (const group of [...figures, words]) {
        group.sort((a, b) => a[1].top - b[1].top);
        group.forEach(([name, box], place) => {
            for (let at = place + 1; at < group.length && group[at][1].top < box.bottom - 1; at++) {
                const other = group[at][1];
                if (Math.min(box.right, other.right) - Math.max(box.left, other.left) > 1
                    && Math.min(box.bottom, other.bottom) - other.top > 1) overlaps.push([name, group[at][0]]);
            }
        });
    }
    return {texts: figures.map(group => group.length), words: words.length, overlaps,
            width: document.documentElement.scrollWidth};
}"""


def look(page: Path, figures: int) -> None:
    """Open a page at each width, with all that is folded; no two texts overlap, and nothing is cut off."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(page.as_uri())
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 900})
            matches = tab.evaluate(_LOOK)
            assert len(matches["texts"]) == figures, matches["texts"]
            assert all(count > 4 for count in matches["texts"])
            assert matches["words"] > 50
            assert matches["overlaps"] == [], (width, json.dumps(matches["overlaps"][:5]))
            assert matches["width"] <= width
        browser.close()
