"""``python -m tests.pictures``: make the pictures of README and docs from the demo's day.

They show what the program itself posts and shows, with recorded answers of a model, which say so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from bot.cli import demo
from bot.core.config import PATH
from bot.pipeline.admin import Jobs
from bot.pipeline.store import open_database
from bot.simgithub import SimulatedGitHub
from bot.web.app import Backend
from tests.bot.pipeline.rig import wait
from tests.bot.web.dashboard.conftest import PASSWORD, dashboard
from tests.e2e import test_pull_words, test_watch
from tests.e2e.provider import completion
from tests.e2e.site import APP, BROKEN, FIXED, WORSE, site
from tests.e2e.site import PASSWORD as E2E_PASSWORD
from tests.e2e.test_reproduce_life import BUGGY, CONFIG, REPORT, TESTS
from tests.serving import served

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
#: Name -> place among what happens on the demo's day.
MOMENTS = {"bounced": 1, "check": 3, "review": 4, "reproduced": 6}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, SimulatedGitHub() as github:
        where = Path(folder)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shutil.copy(demo.ANSWERS, where)
        database = f"sqlite:///{where / 'bouncer.db'}"
        with demo._serving(github, where, database, demo.RECORDED):
            scenes = demo._story(github, Jobs(open_database(database)))
            with _site(database) as address:
                _dashboard(browser, address)
        _backlog(browser, where)
        _gate(browser, where)
        _duplicates(browser, where)
        _words(browser, where)
        _ready(browser, where)
        _queue(browser, where)
        _watch(browser, where)
        page = where / "day.html"
        page.write_text(demo.page(scenes, demo._model_credit(demo.RECORDED)), "utf-8")
        _comments(browser, page)
        browser.close()


def _comments(browser: Browser, day: Path) -> None:
    page = browser.new_page(viewport={"width": 860, "height": 600}, device_scale_factor=1.5)
    page.goto(day.as_uri())
    for name, place in MOMENTS.items():
        page.locator("section").nth(place - 1).screenshot(path=FOLDER / f"{name}.png")


def _gate(browser: Browser, folder: Path) -> None:
    """The comment and the check of the gate, as web and worker post them."""
    (folder / "gate").mkdir()
    with site(folder / "gate") as shop:
        home = shop.repository("acme/gate", {PATH: "gate: {mode: draft}\nverify: {mode: 'off'}\n"})
        issue = shop.github.open_issue(home, "Empty files", "With version 4.2 `load` fails on an empty file.")
        files = {"src/table.py": "".join(f"FIELD_{number} = {number}\n" for number in range(40))}
        number = shop.github.open_pull(home, "Read values", f"Fixes #{issue}", "carl", files=files, closes=[issue])
        shop.quiet()
        (check,) = shop.checks(home, shop.head(home, number))
        (comment,) = shop.comments_on(home, number)
    kind = f"the pull request is a draft; check {check.name}: {check.conclusion}; comment"
    posted = f"**{check.output['title']}**\n\n---\n\n{comment}"
    scene = demo.Scene(f"#{number} Read values", f"carl: Fixes #{issue}", kind, posted)
    _scene(browser, folder / "gate.html", scene, "No model was asked.")


def _duplicates(browser: Browser, folder: Path) -> None:
    """The comment on an issue that may repeat another, as web and worker post it."""
    (folder / "duplicates").mkdir()
    title, text = (
        "Crash when a CSV file has no rows",
        "With version 4.2 `load` raises ParseError if the file is empty.",
    )
    with site(folder / "duplicates") as shop:
        config = "triage: {mode: 'off'}\nduplicates: {mode: comment, suggest_above: 90}\n"
        home = shop.repository("acme/tables", {PATH: config})
        earlier = shop.github.open_issue(home, "Empty files", "`load` fails on an empty file in version 4.2.")
        shop.quiet()
        shop.index(home)
        both = "fail when `load` is given an empty file"
        row = {"number": earlier, "both": both, "relation": "same cause", "p_same_cause": 95}
        shop.model.misbehave(title, completion(json.dumps({"comparisons": [row]})))
        number = shop.github.open_issue(home, title, text, "carl")
        shop.quiet()
        (comment,) = shop.comments_on(home, number)
    scene = demo.Scene(f"#{number} {title}", f"carl: {text}", "comment", comment)
    _scene(browser, folder / "duplicates.html", scene, "The model's answer was written down beforehand.")


def _words(browser: Browser, folder: Path) -> None:
    """The check of a pull request without an issue, with the answers of a model that knows this one only."""
    (folder / "words").mkdir()
    with site(folder / "words") as shop:
        config = test_pull_words.CONFIG
        files = {"shapes.py": test_pull_words.OLD, "tests/test_shapes.py": test_pull_words.TESTS, PATH: config}
        home = shop.repository("acme/words", files)
        changed = {"shapes.py": test_pull_words.NEW, "tests/test_shapes.py": test_pull_words.FOUR}
        body = test_pull_words.BODY
        number = shop.github.open_pull(home, "Keep the rest", body, "carl", files=changed)
        shop.quiet()
        (check,) = shop.checks(home, shop.head(home, number))
    posted = f"**{check.output['title']}**\n\n---\n\n{check.output['summary']}"
    scene = demo.Scene(
        f"#{number} Keep the rest", f"carl: {body}", f"check {check.name}: {check.conclusion}", posted
    )
    _scene(browser, folder / "words.html", scene, "A model of the tests answered.")


def _scene(browser: Browser, page: Path, scene: demo.Scene, answered_by: str) -> None:
    page.write_text(demo.page([scene], answered_by), "utf-8")
    tab = browser.new_page(viewport={"width": 860, "height": 600}, device_scale_factor=1.5)
    tab.goto(page.as_uri())
    tab.locator("section").first.screenshot(path=FOLDER / f"{page.stem}.png")


def _ready(browser: Browser, folder: Path) -> None:
    """The brief of an issue that is clear, accepted and reproduced, unfolded."""
    (folder / "ready").mkdir()
    config = CONFIG.replace("MODE", "comment").replace("SAMPLES", "3")
    triage = "triage: {brief: true, investigate: true}\n"
    files = {"shapes.py": BUGGY, "tests/test_shapes.py": TESTS, PATH: triage + config}
    with site(folder / "ready") as shop:
        home = shop.repository("acme/shapes", files)
        number = shop.github.open_issue(home, "split drops the rest", REPORT)
        for command in ("/bouncer reproduce", "/bouncer accept"):
            shop.quiet()
            shop.github.comment(home, number, command, "mia")
        shop.quiet()
        posted = shop.comments_on(home, number)[-1].replace("<details>", "<details open>")
    scene = demo.Scene(f"#{number} split drops the rest", f"alice: {REPORT}", "label ready; comment", posted)
    _scene(browser, folder / "ready.html", scene, "A model of the tests answered.")


def _queue(browser: Browser, folder: Path) -> None:
    """The queue's page of a repository with five open pull requests."""
    (folder / "queue").mkdir()
    with site(folder / "queue") as shop:
        github, home = shop.github, shop.repository("acme/rocket", {PATH: "review: {mode: 'off'}\n"})
        issue = github.open_issue(home, "Empty files", "With version 4.2 `load` fails on an empty file.")
        for title, text, draft in (
            ("Return the value of the parsed data", BROKEN, False),
            ("Sketch of a cache for parsed files", FIXED, True),
            ("Skip empty files instead of failing on them", FIXED, False),
        ):
            github.open_pull(home, title, f"Fixes #{issue}", files={APP: text}, closes=[issue], draft=draft)
        for title in ("Rename the parser's arguments", "Close files after an error"):
            number = github.open_pull(home, title, author="carl", files={APP: WORSE})
        shop.quiet()
        github.advance(minutes=1)
        github.comment(home, number, "Please add a test.", "mia")
        shop.quiet()
        page = browser.new_page(viewport={"width": 1200, "height": 560})
        page.goto(f"http://127.0.0.1:{shop.port}/login")
        page.fill("input[name=password]", E2E_PASSWORD)
        page.click("form button")
        for width in (500, 1200):
            page.set_viewport_size({"width": width, "height": 560})
            page.goto(f"http://127.0.0.1:{shop.port}/queue?repository={home}")
            page.screenshot(
                path=(FOLDER if width == 1200 else folder) / f"queue{width % 1200 or ''}.png", full_page=True
            )


def _watch(browser: Browser, folder: Path) -> None:
    """The answer to a bisection, and the comment when the same test no longer fails."""
    (folder / "watch").mkdir()
    with site(folder / "watch", DAY_SECONDS="1") as shop:
        github, comment_of, notes = shop.github, test_watch.comment_of, test_watch.write_notes
        files = {"shapes.py": test_watch.FIXED, "tests/test_shapes.py": TESTS, PATH: test_watch.CONFIG}
        home = shop.repository(test_watch.HOME, files)
        notes(shop, 3)
        github.tag(home, "v1.1")
        notes(shop, 5)
        regression = github.open_pull(home, "Chunk faster", files={"shapes.py": BUGGY})
        github.merge(home, regression, by="mia")
        notes(shop, 9)
        title = "split drops the rest"
        number = github.open_issue(home, title, REPORT)
        github.comment(home, number, "/bouncer reproduce", "mia")
        wait(lambda: comment_of(shop, number, "**Reproduced on"), 120, "reproduced")
        github.comment(home, number, "/bouncer bisect", "mia")
        wait(lambda: comment_of(shop, number, "mia: "), 240, "bisected")
        fix = github.open_pull(home, "Keep the rest", files={"shapes.py": test_watch.FIXED})
        github.merge(home, fix, by="mia")
        notes(shop, 2)
        wait(lambda: comment_of(shop, number, "**The drafted test no longer fails"), 240, "fixed")
        bisected, fixed = (
            comment_of(shop, number, "mia: "),
            comment_of(shop, number, "**The drafted test no longer fails"),
        )
    scene = demo.Scene(f"#{number} {title}", "mia: /bouncer bisect", "comment", bisected)
    _scene(browser, folder / "bisect.html", scene, "No model was asked.")
    scene = demo.Scene(f"#{number} {title}", f"alice: {REPORT}", "label maybe-fixed; comment", fixed)
    _scene(browser, folder / "watch.html", scene, "No model was asked.")


def _dashboard(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 700})
    page.goto(address)
    page.get_by_label("The operator's password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.screenshot(path=FOLDER / "dashboard.png", full_page=True)
    page.get_by_role("link", name="Decisions").click()
    page.get_by_label("Kind").select_option("review")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name=f"{demo.REPOSITORY}#4").click()
    page.screenshot(path=FOLDER / "decision.png", full_page=True)


def _backlog(browser: Browser, where: Path) -> None:
    """Judge the demo's two issues as a backlog, with the recorded answers."""
    with SimulatedGitHub() as github:
        github.create_repository(demo.REPOSITORY, demo.FILES)
        github.open_issue(demo.REPOSITORY, *demo.VAGUE)
        github.open_issue(demo.REPOSITORY, *demo.CLEAR, author="bob")
        variables = {
            "GITHUB_API_URL": github.api_url,
            "GITHUB_WEB_URL": github.web_url,
            "BOUNCER_MODEL": demo.RECORDED,
        }
        command = [sys.executable, "-m", "bot", "backlog", demo.REPOSITORY, "--yes", "--out", "backlog.html"]
        subprocess.run(command, cwd=where, env={**os.environ, **variables}, check=True)
    page = browser.new_page(viewport={"width": 1000, "height": 400})
    page.goto((where / "backlog.html").as_uri())
    page.locator("details").first.locator("summary").click()
    page.screenshot(path=FOLDER / "backlog.png", full_page=True)


@contextmanager
def _site(url: str) -> Iterator[str]:
    """The dashboard over what the demo's own server and worker wrote."""
    backend = Backend(url)
    with served(dashboard(backend, bouncer_model=demo.RECORDED)) as address:
        yield address
    backend.close()


if __name__ == "__main__":
    main()
