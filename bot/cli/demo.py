"""``bouncer demo``: the main job on this machine alone, with a simulated GitHub and a small local model.

Everything else is what a maintainer runs: ``bouncer serve`` receives signed deliveries over HTTP, records them,
asks the model, and posts through the same publisher.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from bot.errors import OperatorError

if TYPE_CHECKING:
    from bot.core.actions import Decision
    from bot.jobs.admin import Jobs
    from bot.simgithub import SimulatedGitHub
    from bot.store import Ledger

REPOSITORY = "acme/rocket"
SECRET = "demo"  # noqa: S105 - signs deliveries of this machine to itself
#: Seconds to wait for the server to come up, and for each decision.
START_SECONDS, DECISION_SECONDS = 60, 300


class DemoIssue(NamedTuple):
    """An issue to open."""

    kind: str
    title: str
    body: str


ISSUES = (
    DemoIssue(
        "clear",
        "Table.read returns None for an empty CSV file",
        """With rocket 4.2.1 on Python 3.11:

```python
from rocket import Table
open("empty.csv", "w").close()
print(Table.read("empty.csv"))
```

prints `None`. I expected a table with no rows, as `Table.read` documents ("always returns a Table"). The
early `return` in `rocket/table.py`, function `_read_csv`, leaves out the empty case.
""",
    ),
    DemoIssue(
        "vague", "Import is broken", "The import does not work well for some of our files. Please improve it."
    ),
    DemoIssue("empty", "Bug", ""),
)


@click.command()
@click.option("--model", metavar="ID", default="local:smollm2", show_default=True, help="Who judges.")
def command(model: str) -> int:
    """Open three issues on a simulated GitHub and show what Bouncer makes of them."""
    from rich.console import Console

    from bot.simgithub import SimulatedGitHub

    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="bouncer-demo-") as folder, SimulatedGitHub() as github:
        where = Path(folder)
        database = f"sqlite:///{where / 'bouncer.db'}"
        console.print(
            f"A simulated GitHub at {github.web_url}, `bouncer serve` on a temporary SQLite file, {model}."
        )
        if "local:" in model:
            console.print("[dim]The first run with the local model fetches its weights (about 90 MB).[/dim]")
        with _serving(github, where, database, model):
            memory = _memory(database)
            for report in ISSUES:
                number = github.open_issue(REPOSITORY, report.title, report.body)
                _show(console, report, number, _decision(memory, number), github)
    console.print(_closing(model))
    return 0


def _show(console: object, report: DemoIssue, number: int, decision: Decision, github: SimulatedGitHub) -> None:
    from rich.console import Console, Group
    from rich.markdown import Markdown
    from rich.panel import Panel
    from rich.text import Text

    assert isinstance(console, Console)
    posted = _posted(github, number)
    usage = decision.usage
    told = decision.verdict or f"not judged ({decision.reason})"
    parts: list[object] = [Text(f"{told}: {decision.evidence.get('explanation', '')}\n", style="italic")]
    if posted:
        parts += [Text("posted:", style="bold"), Markdown(posted)]
    else:
        parts.append(Text("nothing was posted", style="bold"))
    labels = ", ".join(github.labels(REPOSITORY, number)) or "none"
    spent = f"{usage.seconds:.1f} s, {usage.tokens}, {decision.model or 'no model'}"
    parts.append(Text(f"\nlabels: {labels}   {spent}", style="dim"))
    title = f"#{number} ({report.kind}) {report.title}"
    console.print(Panel(Group(*parts), title=title, title_align="left"))  # type: ignore[arg-type]


def _posted(github: SimulatedGitHub, number: int) -> str:
    """What stands on the issue, without the hidden marker and with the folded part unfolded."""
    text = "\n\n".join(github.comments(REPOSITORY, number))
    lines = [line for line in text.split("\n") if not line.startswith(("<!--", "</details>"))]
    return "\n".join(lines).replace("<details><summary>", "**").replace("</summary>", "**")


def _closing(model: str) -> str:
    from bot.core.disclaimer import caveat

    note = caveat(model)
    return (
        f"{model} spoke. {note}\nTry a real one: OPENAI_API_KEY=... bouncer demo --model openai:gpt-5-mini"
        if note
        else f"{model} spoke."
    )


def _decision(memory: tuple[Jobs, Ledger], number: int) -> Decision:
    """What the triage job of an issue decided, once it has also published it."""
    jobs, ledger = memory
    deadline = time.monotonic() + DECISION_SECONDS
    while time.monotonic() < deadline:
        for job in jobs.list(("done", "dead"), REPOSITORY):
            if (job.number, job.task) == (number, "triage"):
                if job.state == "done":
                    # Our own label is an event too, about which there is nothing to decide.
                    if decisions := ledger.decisions.of_job(job.id):
                        return decisions[0]
                    continue
                raise OperatorError(f"issue {number} was given up: {job.error}")
        time.sleep(0.1)
    raise OperatorError(f"no decision on issue {number} within {DECISION_SECONDS} s")


def _memory(url: str) -> tuple[Jobs, Ledger]:
    """What the server remembers, read beside it."""
    from bot.jobs.admin import Jobs
    from bot.store import open_database, open_ledger

    database = open_database(url)
    return Jobs(database), open_ledger(database)


@contextmanager
def _serving(github: SimulatedGitHub, where: Path, database: str, model: str) -> Iterator[None]:
    """``bouncer serve`` as an app that is installed on the simulated GitHub; its log goes to a file."""
    port = _free_port()
    github.create_repository(REPOSITORY, {"README.md": "# Rocket\n", "rocket/table.py": "def _read_csv(): ...\n"})
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
            [sys.executable, "-m", "bot", "serve"], env=environment, stdout=output, stderr=output, cwd=where
        )
        try:
            _wait(f"http://127.0.0.1:{port}/readyz", server, log)
            github.install(app)
            yield
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(40)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - loopback
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    last = log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["no output"]
    raise OperatorError(f"bouncer serve did not start: {last[0]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
