# ruff: noqa: E501 - a style sheet has long lines
"""``python -m tests.pictures``: make the README's pictures, from what the program itself posts and shows.

The words in them are a scripted model's, and the pictures say so, as the comments themselves do.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from flask import Flask
from playwright.sync_api import Browser, sync_playwright
from werkzeug.serving import make_server

from bot.core import events
from bot.core.actions import Decision, SubmitReview, UpsertComment
from bot.core.config import RepoConfig
from bot.core.model import Actor, Issue, PullRequest, Repository
from bot.forge.protocol import PullDiff
from bot.forge.replay import ReplayForge, Snapshot
from bot.publishing.body import Rules
from bot.publishing.markdown import as_html
from bot.router import decide
from bot.services import NoHistory, Services
from tests.bot.web.dashboard import conftest as dashboard
from tests.scripted import ScriptedModel

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
ACME = Repository(id=1, owner="acme", name="rocket", html_url="https://github.example/acme/rocket")
ANN = Actor(id=2, login="ann")
BOUNCER = Actor(id=3, login="bouncer[bot]", is_bot=True)

PAGE = """<!doctype html><meta charset=utf-8><style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #1f2328; margin: 24px; width: 760px; background: #fff }}
.box {{ border: 1px solid #d1d9e0; border-radius: 8px; margin-bottom: 16px }}
.box > h3 {{ margin: 0; padding: 8px 14px; background: #f6f8fa; font-size: 14px; border-bottom: 1px solid #d1d9e0 }}
.box > div {{ padding: 4px 14px }} .label {{ background: #ffe3a8; border-radius: 10px; padding: 2px 9px; font-size: 12px }}
code {{ background: #eff1f3; padding: 2px 5px; border-radius: 4px }} pre {{ background: #f6f8fa; padding: 10px; overflow: auto }}
pre code {{ background: none; padding: 0 }} .add {{ background: #dafbe1 }} .del {{ background: #ffebe9 }}
</style>{content}"""


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        _picture(browser, "bounced", _bounced())
        _picture(browser, "review", _reviewed())
        _dashboard(browser)
        browser.close()


def _picture(browser: Browser, name: str, content: str) -> None:
    page = browser.new_page(viewport={"width": 808, "height": 300})
    page.set_content(PAGE.format(content=content))
    page.screenshot(path=FOLDER / f"{name}.png", full_page=True)


def _services(reply: dict[str, object], snapshot: Snapshot) -> Services:
    return Services(
        forge=ReplayForge(snapshot),
        model=ScriptedModel([reply]),
        sandbox=None,
        config=RepoConfig(),
        clock=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        history=NoHistory(),
        repository=ACME,
    )


def _bounced() -> str:
    issue = Issue(number=12, title="Import is broken", body="The import fails for some of our files.", author=ANN)
    snapshot = Snapshot(repository=ACME.full_name, about=ACME, identity=BOUNCER, comments={12: ()})
    reply: dict[str, object] = {
        "explanation": "It names neither the files nor what happens to them, so any change could be the wanted one.",
        "open_points": [
            "Which files fail: a format, a size, an encoding?",
            "What happens instead: an error, or rows that are missing?",
        ],
        "missing": ["minimal example", "error text", "version"],
        "p_bounce": 86,
        "label": "VAGUE",
    }
    event = events.IssueOpened(sender=ANN, repository=ACME, issue=issue)
    (decision,) = decide(event, _services(reply, snapshot), only="triage")
    (comment,) = (each for each in decision.actions if isinstance(each, UpsertComment))
    return (
        f"<h2>{issue.title} #12 <span class=label>needs-info</span></h2>"
        + _box("ann", as_html(issue.body))
        + _box("bouncer <small>bot</small>", as_html(comment.body))
    )


PATCH = """--- a/rocket/cache.py
+++ b/rocket/cache.py
@@ -10,5 +10,6 @@ def lookup(key, default=None):
     entry = STORE.get(key)
-    if entry is None:
+    if not entry:
         return default
-    return entry
+    STATS["hits"] += 1
+    return entry.value
"""


def _reviewed() -> str:
    pull = PullRequest(
        number=20, title="Count cache hits", author=ANN, head_sha="a" * 40, head_repository="acme/rocket",
        base_repository="acme/rocket",
    )  # fmt: skip
    snapshot = Snapshot(
        repository=ACME.full_name, about=ACME, identity=BOUNCER, pull_requests={20: pull},
        diffs={20: PullDiff(text=PATCH)}, review_comments={20: ()}, linked_issues={20: ()},
    )  # fmt: skip
    finding = {
        "path": "rocket/cache.py",
        "quote": "    if not entry:",
        "line": 11,
        "symbol": "entry",
        "comment": "An entry whose value is falsy (0, an empty list) now counts as a miss and the default is "
        "returned. `not entry` asks whether the entry is true, where the old code asked whether there is one.",
        "category": "coding",
        "impact": "functional_suitability",
        "severity": "high",
        "suggestion": "    if entry is None:",
    }
    reply = {"reasoning": "The test for a missing entry changed.", "findings": [finding]}
    event = events.PullRequestOpened(sender=ANN, repository=ACME, pull_request=pull)
    (decision,) = decide(event, _services(reply, snapshot), only="review")
    (review,) = (each for each in decision.actions if isinstance(each, SubmitReview))
    lines = "\n".join(
        f'<span class="{"add" if line[0] == "+" else "del" if line[0] == "-" else ""}">{escape(line)}</span>'
        for line in PATCH.splitlines()[3:6]
    )
    comments = "".join(
        _box("bouncer <small>bot</small>", as_html(Rules().inline(each).body)) for each in review.comments
    )
    return (
        f"<h2>Count cache hits #20</h2><div class=box><h3>rocket/cache.py</h3><pre>{lines}</pre></div>{comments}"
    )


def _box(author: str, content: str) -> str:
    return f"<div class=box><h3>{author} commented</h3><div>{content}</div></div>"


def _dashboard(browser: Browser) -> None:
    with _site() as address:
        page = browser.new_page(viewport={"width": 1100, "height": 700})
        page.goto(address)
        page.get_by_label("The operator's password").fill(dashboard.PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.screenshot(path=FOLDER / "dashboard.png", full_page=True)


@contextmanager
def _site() -> Iterator[str]:
    from bot.jobs.admin import Jobs
    from bot.store import Ledger, migrate, open_database
    from bot.web.dashboard.pages import blueprint

    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{Path(folder) / 'bouncer.db'}")
        migrate(database)
        backend = dashboard.Backend(Ledger(database), Jobs(database))
        for number in range(1, 60):
            verdict = ("VAGUE", "WELL_SPECIFIED", "WELL_SPECIFIED", None)[number % 4]
            backend.memory.decisions.record(f"d{number}:triage", (_plain(number, verdict),), "example")
        app = Flask("bot.web")
        app.register_blueprint(blueprint(dashboard.settings())(backend))
        server = make_server("127.0.0.1", 0, app, threaded=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        database.close()


def _plain(number: int, verdict: str | None) -> Decision:
    return dashboard.decision(number, verdict=verdict)


if __name__ == "__main__":
    main()
