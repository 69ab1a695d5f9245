"""A whole installation as people meet it: GitHub, a model provider, ``bouncer web`` and ``bouncer worker``."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

from sqlalchemy import text

from bot.core.actions import Decision, Task
from bot.pipeline.inbox import DEBOUNCE_SECONDS
from bot.simgithub import SimulatedGitHub
from bot.simgithub.state import CheckRunState, Pull, Review, ReviewCommentState
from tests import forked
from tests.bot.pipeline.rig import Rig, wait
from tests.databases import migrated_sqlite
from tests.e2e.provider import Provider, provider

PASSWORD = "correct horse battery"
BOUNCER = "bouncer[bot]"
APP = "src/app.py"
BASE = "def load(path):\n    with open(path) as file:\n        return parse(file)\n    raise Missing(path)\n"
BROKEN = BASE.replace("return parse(file)", "data = parse(file)\n        return data.value")
WORSE = "import os\n\n\n" + BROKEN.replace("    raise", "    cache[path] = data\n    raise")
FIXED = BASE.replace("return parse(file)", "data = parse(file)\n        return data.value if data else None")

#: Title and text of issues: one that the model finds clear, and one that it bounces.
CLEAR = ("Empty files", "With version 4.2 `load` fails on an empty file.")
VAGUE = ("It breaks", "It does not work any more.")

#: The fixture ``repository``: makes a repository of these files for one test alone, and returns its name.
Repository = Callable[..., str]

OPEN = ("waiting", "queued", "running")

#: Starts the jobs that wait, but no reminders; and a condition: they wait for nothing but the debounce.
_START = """
    UPDATE {}workflow_status SET status = 'ENQUEUED'
    WHERE status = 'DELAYED' AND attributes ->> 'kind' <> 'issue_unanswered'
"""
_DEBOUNCED = """
    AND attributes ->> 'stage' = 'decide' AND CAST(attributes ->> 'attempt' AS NUMERIC) = 0
    AND CAST(attributes ->> 'due' AS NUMERIC) - CAST(attributes ->> 'created_at' AS NUMERIC) < :seconds
"""


class Slowly:
    """Does what the simulated GitHub of a site does, and waits each time until the site is quiet."""

    def __init__(self, shop: Site) -> None:
        self._shop = shop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def act(*arguments: Any, **options: Any) -> Any:
            answer = getattr(self._shop.github, name)(*arguments, **options)
            self._shop.quiet()
            return answer

        return act


class Site(Rig):
    """Repositories of the owner ``acme``, whose every event reaches the app by a signed delivery."""

    def __init__(self, github: SimulatedGitHub, model: Provider, url: str, folder: Path, *names: str) -> None:
        super().__init__(github, url, folder, names)
        self.model = model
        self.app = self.installation.app
        self.environment |= {**model.environment, "BOUNCER_ADMIN_PASSWORD": PASSWORD}

    @property
    def slowly(self) -> Any:
        """The simulated GitHub, with a wait after each action until all that it causes is dealt with."""
        return Slowly(self)

    def connect(self) -> None:
        """Have GitHub deliver to us from now on."""
        self.app.webhook_url = f"http://127.0.0.1:{self.port}/webhook"

    def repository(self, name: str, files: dict[str, str] | None = None) -> str:
        """One more repository, with the app installed and one maintainer, ``mia``."""
        self.github.create_repository(name, {APP: BASE, "README.md": "# Rocket\n", **(files or {})})
        self.github.grant(name, "mia", "triage")
        self.github.install(self.app, name)
        return name

    def index(self, repository: str) -> str:
        """Run ``bouncer index``, and return what it prints."""
        return self.run("index", repository, "--pause", "0")

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command of ``bouncer`` with the server's environment, and return what it prints.

        If it is expected to end with another ``code``, return its error.
        """
        ran = forked.run(*words, environment=self.environment, folder=self.folder)
        assert ran.code == code, ran.err.decode()
        return (ran.err if code else ran.out).decode()

    def quiet(self, seconds: float = 60.0, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Wait until everything that happened so far was dealt with. Fail if nothing happens for ``seconds``.

        Nothing else happens before that, so no job waits for a newer event that would supersede its own.
        """
        self.github.settle()
        wait(lambda: not self.in_vain(), seconds, "every delivery was accepted in the end")
        progress, since = self._progress(0), time.monotonic()
        while left := self._left():
            if (now := self._progress(left)) != progress:
                progress, since = now, time.monotonic()
            if time.monotonic() - since > seconds:
                raise AssertionError(f"nothing happened for {seconds} s, {left} are left: {self.troubles()}")
            meanwhile()
            time.sleep(0.1)

    def _left(self) -> int:
        """Count what is unfinished, the jobs of the deliveries included that the last writes cause."""
        if not (counts := self.unfinished_by_state()):
            self.github.settle()
            counts = self.unfinished_by_state()
        if "DELAYED" in counts:
            start = text(_START.format(self.schema) + _DEBOUNCED)
            self.database.execute(start, {"seconds": DEBOUNCE_SECONDS + 0.1})
        return sum(counts.values())

    def hasten(self) -> None:
        """Start the jobs now that wait for their next try."""
        self.database.execute(text(_START.format(self.schema)))

    def _progress(self, left: int) -> tuple[int, ...]:
        """Numbers that change while anything is done: a slow machine is no failure, one that stands still is."""
        return left, len(self.github.requests), len(self.model.asked), self.log.stat().st_size

    def in_vain(self) -> set[str]:
        """Deliveries of which no attempt was accepted."""
        arrived = {delivery.guid for delivery in self.app.deliveries if 200 <= delivery.status_code < 300}
        return {delivery.guid for delivery in self.app.deliveries} - arrived

    def troubles(self) -> dict[str, str]:
        """Return the errors of jobs that are not done."""
        return {job.id: f"{job.state}: {job.error}" for job in self.jobs.list((*OPEN, "dead")) if job.error}

    def decided(self, repository: str, number: int, *kinds: Task) -> tuple[Decision, ...]:
        """Return the stored decisions about a subject, oldest first."""
        return self.ledger.decisions.decisions(f"{repository}#{number}", *kinds)

    def comments_on(self, repository: str, number: int) -> list[str]:
        """Our comments in the conversation."""
        return self.github.comments(repository, number, by=BOUNCER)

    def inline(self, repository: str, number: int) -> list[ReviewCommentState]:
        """Our comments on lines."""
        return [
            comment
            for comment in self.github.review_comments(repository, number)
            if comment.author.login == BOUNCER
        ]

    def pull(self, repository: str, number: int) -> Pull:
        pull = self.github.find(repository, number).pull
        assert pull is not None
        return pull

    def reviews(self, repository: str, number: int) -> list[Review]:
        return list(self.pull(repository, number).reviews)

    def head(self, repository: str, number: int) -> str:
        return self.pull(repository, number).head_sha

    def checks(self, repository: str, sha: str = "") -> list[CheckRunState]:
        """The checks on a commit, or on all, without those of reviews."""
        runs = self.github.checks(repository)
        return [run for run in runs if sha in ("", run.head_sha) and run.name != "bouncer / review"]

    def review_check(self, repository: str, number: int) -> CheckRunState:
        """The review's check on the head of a pull request."""
        head = self.head(repository, number)
        (run,) = [run for run in self.github.checks(repository, "bouncer / review") if run.head_sha == head]
        return run

    def browser(self) -> Browser:
        """Return a browser that is logged in by password."""
        return Browser(f"http://127.0.0.1:{self.port}")


class Browser:
    """Pages of the dashboard, without JavaScript."""

    def __init__(self, url: str, password: str = PASSWORD) -> None:
        self.start(url)
        token = re.search(r'name="token" value="([^"]+)"', self.get("/login"))
        assert token
        self.get("/login", {"token": token[1], "password": password})

    def start(self, url: str) -> None:
        """Open the browser on a server; nothing is known of it."""
        self.address = url
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(cookies, urllib.request.ProxyHandler({}))

    def get(self, path: str, form: dict[str, str] | None = None) -> str:
        """A page, by its path from the one that was read last; with a form, what comes of sending it."""
        data = None if form is None else urlencode(form).encode()
        with self._opener.open(urljoin(self.address, path), data, timeout=20) as answer:
            self.address = answer.url
            return str(answer.read().decode())


@contextmanager
def site(folder: Path, *names: str, url: str = "", **environment: str) -> Iterator[Site]:
    """Web and worker up, without the pauses that a real GitHub asks for."""
    with stopped(folder, *names, url=url) as shop:
        shop.environment |= environment
        shop.web()
        shop.worker()
        wait(shop.ready, 60, "web and worker up")
        shop.connect()
        yield shop


@contextmanager
def stopped(folder: Path, *names: str, url: str = "") -> Iterator[Site]:
    """A site in which nothing runs yet."""
    with provider() as model, SimulatedGitHub() as github:
        database = url or migrated_sqlite(folder / "bouncer.db")
        shop = Site(github, model, database, folder, *(names or ("acme/first",)))
        try:
            yield shop
        finally:
            # GitHub would wait for answers of a server that is gone.
            shop.app.webhook_url = ""
            shop.close()
