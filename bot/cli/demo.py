"""``bouncer demo``: the whole bot on this machine, with a simulated GitHub and recorded answers of a model.

Everything else is what a maintainer runs: ``bouncer serve`` receives signed deliveries over HTTP and records them,
asks the model, and posts through the same publisher.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from bot.cli.files import write_text
from bot.core.errors import OperatorError
from bot.core.page import render

if TYPE_CHECKING:
    from rich.console import Console

    from bot.pipeline.admin import Jobs
    from bot.simgithub import SimulatedGitHub

REPOSITORY = "acme/rocket"
SECRET = "demo"  # noqa: S105 - signs deliveries of this machine to itself
#: Seconds to wait for the server to come up, and for what follows from one round of deliveries.
START_SECONDS, ROUND_SECONDS = 60, 600

#: A capable language model's answers to the prompts of this story; the file says so too.
ANSWERS = Path(__file__).parent / "demo_answers.jsonl"
RECORDED = f"recorded:{ANSWERS.name}#capable-language-model-2026-11-22"
BOUNCER = "bouncer[bot]"

TABLE = '''"""Tables read from CSV text."""

import csv
import io


class Table:
    """Rows of cells under column names."""

    def __init__(self, names, rows):
        self.names = names
        self.rows = rows

    @classmethod
    def read(cls, text):
        """The table in a CSV text; always returns a Table."""
        lines = list(csv.reader(io.StringIO(text)))
        if not lines:
            return None
        return cls(lines[0], lines[1:])

    def column(self, name):
        """The cells of one column."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]
'''
SORTED = '''
    def sorted(self, name):
        """A new table with its rows in the order of one column; this one stays as it is."""
        place = self.names.index(name)
        self.rows.sort(key=lambda row: row[place])
        return Table(self.names, self.rows)
'''
TESTS = """import unittest

from rocket import Table


class TestTable(unittest.TestCase):
    def test_names_come_from_the_first_line(self):
        self.assertEqual(Table.read("a,b\\n1,2\\n").names, ["a", "b"])
"""
CONFIG = "reproduce:\n  mode: comment\n  samples: 3\n  command: python -m unittest {tests}\n"
FILES = {
    "README.md": "# Rocket\n",
    "rocket/__init__.py": "from rocket.table import Table\n",
    "rocket/table.py": TABLE,
    "tests/__init__.py": "",
    "tests/test_table.py": TESTS,
    ".github/bouncer.yml": CONFIG,
}

VAGUE = ("Import is broken", "The import does not work well for some of our files. Please improve it.")
ANSWER = """It is `Table.read` in rocket 4.2. Our spreadsheets save `;` between the cells, and then everything \
lands in one column: `Table.read("a;b\\n1;2\\n").names` is `['a;b']`. I would like to pass `delimiter=";"` and \
get `['a', 'b']`; without it, everything should stay as it is."""
CLEAR = (
    "Table.read returns None for an empty text",
    """With rocket 4.2 on Python 3.11:

```python
from rocket import Table
print(Table.read(""))
```

prints `None`. I expected a table without names and rows, as `Table.read` documents ("always returns a Table").
""",
)


class Scene(NamedTuple):
    """One event and what Bouncer posted about it. ``kind`` names the post: comment, check, review."""

    title: str
    event: str
    kind: str
    posted: str


@click.command()
@click.option("--model", metavar="ID", help="Ask this model instead, such as openai:gpt-5-mini.")
@click.option("--html", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Also make a page.")
def command(model: str | None, html: Path | None) -> int:
    """Play a day of a repository on a simulated GitHub and show what Bouncer posts."""
    from rich.console import Console

    from bot import settings
    from bot.cli.worker import check_thinking
    from bot.simgithub import SimulatedGitHub

    if html is not None:
        write_text(html, "")  # fails before the day is played if the page cannot be written
    console, model = Console(highlight=False), model or RECORDED
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bouncer-demo-") as folder, SimulatedGitHub() as github:
        where = Path(folder)
        shutil.copy(ANSWERS, where)
        with chdir(where):
            check_thinking(settings.load(bouncer_model=model))
        database = f"sqlite:///{where / 'bouncer.db'}"
        console.print(f"A simulated GitHub at {github.web_url}, `bouncer serve`.")
        console.print(f"[bold]{_model_credit(model)}[/bold]\n")
        with _serving(github, where, database, model):
            from bot.pipeline.admin import Jobs
            from bot.pipeline.store import open_database

            scenes = _story(github, Jobs(open_database(database)))
    for scene in scenes:
        _show(console, scene)
    console.print(f"{time.monotonic() - begun:.0f} s. {_model_credit(model)}")
    if html is not None:
        write_text(html, page(scenes, _model_credit(model)))
        console.print(f"Page: {html}")
    return 0


def page(scenes: Sequence[Scene], credit: str) -> str:
    """Return the day as HTML, each comment as GitHub shows it."""
    from bot.pipeline.body import as_html

    bodies = [(scene, as_html(scene.posted)) for scene in scenes]
    return render("bot.cli", "demo.html.jinja", scenes=bodies, who=credit)


def _model_credit(model: str) -> str:
    if model == RECORDED:
        return (
            "The answers are a capable language model's, recorded on 2026-11-22. Ask one yourself: "
            "OPENAI_API_KEY=... bouncer demo --model openai:gpt-5-mini"
        )
    return f"{model} answers."


def _story(github: SimulatedGitHub, jobs: Jobs) -> list[Scene]:
    """Play what people do, in two rounds, and return the scenes with what was posted."""
    github.grant(REPOSITORY, "mia", "triage")
    vague = github.open_issue(REPOSITORY, *VAGUE)
    clear = github.open_issue(REPOSITORY, *CLEAR, author="bob")
    wrong = github.open_pull(
        REPOSITORY,
        "Say that an empty text gives None",
        f"Closes #{clear}",
        "carl",
        files={"rocket/table.py": TABLE.replace("always returns a Table.", "None for an empty text.")},
        closes=[clear],
    )
    flawed = github.open_pull(
        REPOSITORY, "Add Table.sorted", "Rows in another order.", "dora", files={"rocket/table.py": TABLE + SORTED}
    )
    _settle(github, jobs)
    scenes = [
        Scene(f"#{vague} {VAGUE[0]}", f"alice opens a vague issue: {VAGUE[1]}", *_conversation(github, vague)),
        Scene(f"#{clear} {CLEAR[0]}", "bob opens a clear one.", *_conversation(github, clear)),
        Scene(f"#{wrong} Say that an empty text gives None", f"carl: Closes #{clear}", *_verified(github, wrong)),
        Scene(f"#{flawed} Add Table.sorted", "dora opens a pull request.", *_reviewed(github, flawed)),
    ]
    github.comment(REPOSITORY, vague, ANSWER)
    github.comment(REPOSITORY, clear, "/bouncer reproduce", "mia")
    _settle(github, jobs)
    return [
        *scenes,
        Scene(f"#{vague} {VAGUE[0]}", f"alice answers: {ANSWER}", *_conversation(github, vague)),
        Scene(f"#{clear} {CLEAR[0]}", "mia comments: /bouncer reproduce", *_conversation(github, clear)),
    ]


def _conversation(github: SimulatedGitHub, number: int) -> tuple[str, str]:
    labels = ", ".join(github.labels(REPOSITORY, number)) or "none"
    posted = "\n\n".join(github.comments(REPOSITORY, number, by=BOUNCER))
    return (f"comment; labels: {labels}", posted) if posted else (f"nothing was posted; labels: {labels}", "")


def _verified(github: SimulatedGitHub, number: int) -> tuple[str, str]:
    pull = github.find(REPOSITORY, number).pull
    runs = [run for run in github.checks(REPOSITORY) if pull and run.head_sha == pull.head_sha]
    if not runs:
        return "nothing was posted", ""
    return (
        f"check {runs[0].name}: {runs[0].conclusion}",
        f"**{runs[0].output['title']}**\n\n{runs[0].output['summary']}",
    )


def _reviewed(github: SimulatedGitHub, number: int) -> tuple[str, str]:
    pull = github.find(REPOSITORY, number).pull
    bodies = [review.body for review in pull.reviews] if pull else []
    lines = [
        f"**{comment.path}, line {comment.line}**\n\n{comment.body}"
        for comment in github.review_comments(REPOSITORY, number)
    ]
    return ("review", "\n\n".join([*bodies, *lines])) if lines else ("nothing was posted", "")


def _show(console: Console, scene: Scene) -> None:
    from rich.console import Group
    from rich.markdown import Markdown
    from rich.panel import Panel
    from rich.text import Text

    lines = [line for line in scene.posted.split("\n") if not line.startswith(("<!--", "</details>"))]
    plain = "\n".join(lines).replace("<details><summary>", "**▸ ").replace("</summary>", "**")
    parts = [Text(f"{scene.event}\n", style="italic"), Text(f"Bouncer: {scene.kind}", style="bold")]
    console.print(
        Panel(Group(*parts, *([Markdown(plain)] if plain else [])), title=scene.title, title_align="left")
    )


def _settle(github: SimulatedGitHub, jobs: Jobs) -> None:
    """Wait until all events so far are handled. Raises OperatorError."""
    github.settle()
    deadline = time.monotonic() + ROUND_SECONDS
    while _busy(jobs):
        if time.monotonic() > deadline:
            raise OperatorError(f"not every event was handled within {ROUND_SECONDS} s")
        time.sleep(0.2)
    github.settle()
    if _busy(jobs):
        # Our own labels and comments cause events too.
        _settle(github, jobs)
    if dead := jobs.list(("dead",), REPOSITORY):
        raise OperatorError(f"{dead[0].task} of #{dead[0].number} failed: {dead[0].error}")


def _busy(jobs: Jobs) -> bool:
    from bot.pipeline.job import OPEN

    return bool(jobs.untaken() or jobs.list(OPEN, REPOSITORY))


@contextmanager
def _serving(github: SimulatedGitHub, where: Path, database: str, model: str) -> Iterator[None]:
    """Run the server of an app on the simulated GitHub. Its log goes to a file."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    github.create_repository(REPOSITORY, FILES)
    app = github.create_app(owner="acme", webhook_url=f"http://127.0.0.1:{port}/webhook", webhook_secret=SECRET)
    environment = {
        **os.environ,
        "GITHUB_APP_ID": str(app.id),
        "GITHUB_APP_PRIVATE_KEY": app.private_key,
        "GITHUB_WEBHOOK_SECRET": SECRET,
        "GITHUB_API_URL": github.api_url,
        "GITHUB_WEB_URL": github.web_url,
        "DATABASE_URL": database,
        "BOUNCER_MODEL": model,
        "HOST": "127.0.0.1",
        "PORT": str(port),
    }
    log = where / "serve.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            # It need not leave GitHub time between two writes.
            [sys.executable, "-m", "bot", "serve", "--apart", "0.05"],
            env=environment,
            stdout=output,
            stderr=output,
            cwd=where,
            process_group=0,
        )
    try:
        # Import what this process needs while the other starts.
        import_module("bot.pipeline.worker")
        import_module("rich.markdown")
        _wait(f"http://127.0.0.1:{port}/readyz", server, log)
        github.install(app)
        yield
    finally:
        # The folder is temporary, so a clean shutdown is not needed.
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - loopback
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    last = log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["no output"]
    raise OperatorError(f"the server did not start: {last[0]}")
