"""The first day: from ``bouncer serve`` without a setting to the first answer on an issue, with a browser only."""

from __future__ import annotations

import html
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bot.pipeline.rig import wait
from tests.e2e.site import Browser, Site, stopped

CREDENTIALS = ("GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY", "GITHUB_WEBHOOK_SECRET")


class Visitor(Browser):
    """A browser that follows links and sends forms, on our server and on GitHub, without a password."""

    def __init__(self, url: str) -> None:
        self.start(url)

    def submit(self, page: str, **typed: str) -> str:
        """Send the page's form as it stands, with what was typed."""
        form = re.search(r'<form[^>]*method="post"(?:[^>]*action="([^"]*)")?[^>]*>(.*?)</form>', page, re.DOTALL)
        assert form
        fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', re.sub(_UNCHOSEN, "", form[2])))
        values = {name: html.unescape(value) for name, value in fields.items()}
        return self.get(html.unescape(form[1] or ""), {**values, **typed})


_UNCHOSEN = r'<input type="(?:radio|checkbox)"(?![^>]*checked)[^>]*>'


@contextmanager
def started(tmp_path: Path, **environment: str) -> Iterator[Site]:
    """``bouncer serve`` as it starts without credentials, its data in a folder of its own."""
    with stopped(tmp_path) as shop:
        shop.environment |= environment
        for name in CREDENTIALS:
            del shop.environment[name]
        shop.environment["BOUNCER_DATA_DIR"] = str(tmp_path / "data")
        shop.start("bot", "serve")
        wait(lambda: "/setup?link=" in shop.log.read_text(), 60, "a link in the terminal")
        wait(lambda: answers(shop), 60, "the server answers")
        yield shop


def answers(shop: Site) -> bool:
    try:
        return "ok" in Visitor(f"http://127.0.0.1:{shop.port}").get("/healthz")
    except OSError:
        return False


def link(shop: Site) -> str:
    match = re.search(r"(/setup\?link=[\w-]+)", shop.log.read_text())
    assert match
    return match[1]


def registered(shop: Site, visitor: Visitor, **typed: str) -> str:
    """Walk through our two pages and GitHub's one; the page at the end."""
    choose = visitor.submit(visitor.get(link(shop)))
    confirm = visitor.submit(choose, public_url=f"http://127.0.0.1:{shop.port}", **typed)
    assert "with these permissions and no others" in confirm
    return visitor.submit(visitor.submit(confirm), name="acme bouncer")


def test_from_nothing_to_the_first_answer_without_editing_a_file(tmp_path: Path) -> None:
    with started(tmp_path) as fresh:
        assert fresh.deliver("ping", {"zen": "x"}) == 503, "before set-up, so that GitHub shows it"
        first_answer(fresh)
        after_a_restart(fresh)


def first_answer(fresh: Site) -> None:
    visitor = Visitor(f"http://127.0.0.1:{fresh.port}")
    done = registered(fresh, visitor, owner="organization", organization="acme", mode="live")
    assert "acme-bouncer" in done
    install = re.search(r'href="([^"]+/installations/new)"', done)
    assert install
    fresh.github.create_repository("acme/brand-new")
    landed = visitor.submit(visitor.get(install[1]))
    assert "installed" in landed.lower()
    wait(fresh.ready, 60, "the worker took it up")

    number = fresh.github.open_issue("acme/brand-new", "It breaks", "It does not work.")
    wait(lambda: fresh.github.labels("acme/brand-new", number) == ["needs-info"], 60, "the first answer")
    (comment,) = fresh.github.comments("acme/brand-new", number, by="acme-bouncer[bot]")
    assert "Which version is this?" in comment

    (app,) = [value for value in fresh.github.world.apps.values() if value.slug == "acme-bouncer"]
    file = fresh.folder / "data" / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    everything = fresh.log.read_text() + done + landed
    for secret in (app.webhook_secret, app.client_secret, app.private_key.splitlines()[3]):
        assert secret not in everything


def test_set_up_is_reachable_before_a_model_is_named(tmp_path: Path) -> None:
    with started(tmp_path, BOUNCER_MODEL="") as fresh:
        assert "BOUNCER_MODEL is not set" in fresh.log.read_text()
        visitor = Visitor(f"http://127.0.0.1:{fresh.port}")
        assert "Who owns the app" in visitor.submit(visitor.get(link(fresh)))
        assert "worker_started" not in fresh.log.read_text()
        assert fresh.log.read_text().count(link(fresh)) == 2, "it is printed again below the first lines"


def after_a_restart(fresh: Site) -> None:
    """It goes on with what was stored."""
    (served,) = fresh.processes
    served.terminate()
    assert served.wait(40) == 0
    fresh.log.write_text("")
    fresh.start("bot", "serve")
    wait(fresh.ready, 60, "up again")
    assert "/setup?link=" not in fresh.log.read_text()
