"""``python -m tests.texts``: help, errors and pages as people meet them, written to ``texts.md`` for reading.

Every command's ``--help``, one line for each wrong usage below, and the words of every page of set-up, the
dashboard and the public part. Times, ports and folders are replaced, so that the file changes only if a text does.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
from flask import Flask
from flask.testing import FlaskClient

from bot import cli
from bot.pipeline.store import migrate
from bot.settings import Settings
from bot.web import public
from bot.web.app import Backend
from bot.web.setup import Guard, Setup
from bot.web.setup import blueprint as setup_blueprint

FILE = Path(__file__).with_name("texts.md")
#: Characters of a line of help.
WIDTH = 100
LINK = "the-link"

ISSUE, DIFF = "issue.md", "fix.diff"
FILES = {
    ISSUE: "Import is broken\n\nIt does not work.\n",
    "empty.md": "",
    "no.diff": "This is not a diff.\n",
    DIFF: "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n",
    "wrong.yml": "triage:\n  mode: loud\n  ignore_labels: docs\ntriag:\n  mode: off\nverify: {gate: maybe}\n",
    "broken.env": "=1\n",
}
MODEL = {"BOUNCER_MODEL": "recorded:none.jsonl#nothing"}
#: The arguments of a wrong command, and its environment.
MISTAKES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("triag issue.md", {}),
    ("triage", {}),
    ("triage issue.md", {}),
    ("triage nowhere.md", MODEL),
    ("triage empty.md", MODEL),
    ("triage issue.md --model openai/gpt-5", {}),
    ("triage issue.md --model openai:gpt-5", {}),
    ("triage issue.md --config wrong.yml", MODEL),
    ("triage issue.md --set triag.mode=off", MODEL),
    ("triage issue.md --set mode", MODEL),
    ("triage issue.md --set triage.bounce_above=200", MODEL),
    ("triage https://example.org/acme/rocket/issues/1", MODEL),
    ("verify --issue issue.md", MODEL),
    ("verify fix.diff", MODEL),
    ("review --diff no.diff", MODEL),
    ("reproduce --issue issue.md --repo . --test-command pytest", MODEL),
    ("calibrate rocket", MODEL),
    ("calibrate acme/rocket --harm few", MODEL),
    ("calibrate acme/rocket", MODEL),
    ("backlog rocket", MODEL),
    ("backlog acme/rocket --out nowhere/page.html", MODEL),
    ("action", MODEL),
    ("action --run triag", MODEL),
    ("jobs list", {}),
    ("jobs retry", {"DATABASE_URL": "sqlite:///present.db"}),
    ("jobs rejudge --since lately", {}),
    ("doctor --config nowhere.yml", {}),
    ("export --env-file broken.env", {}),
    ("export --database-url mysql://x", {}),
    ("doctor --config wrong.yml", {}),
    ("doctor --skip moon", {}),
    ("serve", {"PORT": "x"}),
    ("serve", {"BOUNCER_PAUSED": "perhaps"}),
    ("serve", {"BOUNCER_MODE": "loud"}),
    ("serve", {"BOUNCER_PUBLIC_URL": "bouncer.example.org"}),
    ("serve", {"GITHUB_API_URL": "http://github.example.org/api/v3"}),
    ("web", {}),
    ("worker", {}),
)

#: Paths of the dashboard that are shown.
PAGES = (
    "/", "/decisions", "/decisions/1", "/decisions/3", "/decisions/8", "/decisions/999", "/shadow",
    "/queue", "/queue?repository=acme/rocket",
    "/line?repository=acme/rocket", "/costs", "/jobs", "/jobs?state=dead", "/jobs/dead:triage",
    "/rejudge?since=2026-01-01&limit=10", "/installations",
)  # fmt: skip


class _Words(HTMLParser):
    """The visible words of a page, one block per line."""

    BLOCKS = frozenset(
        {"p", "h1", "h2", "h3", "li", "tr", "dt", "dd", "legend", "summary", "blockquote", "pre", "label"}
    )

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = [""]
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = dict(attrs)
        if tag in ("head", "svg"):
            self._hidden += 1
        if tag == "svg" and fields.get("aria-label"):
            self.lines.append(f"[picture: {fields['aria-label']}]")
        if tag in self.BLOCKS:
            self.lines.append("")
        if tag in ("td", "th"):
            self.lines[-1] += " | "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("head", "svg"):
            self._hidden -= 1
        if tag in self.BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.lines[-1] += data


def words(page: str) -> str:
    """Return what a page says, without its menu."""
    parser = _Words()
    parser.feed(page.partition("<main")[2].partition(">")[2].partition("</main>")[0])
    lines = (" ".join(line.split()).strip("| ") for line in parser.lines)
    return "\n".join(line for line in lines if line)


def steady(text: str, folder: str = "") -> str:
    """Replace everything that differs between two runs."""
    text = text.replace(folder, "FOLDER") if folder else text
    for pattern, word in (
        (r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?Z?)?", "DATE"),
        (r"\d+ (s|min|h|days) ago", "N s ago"),
        (r"overdue by \d+ min", "overdue by N min"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"[0-9a-f]{64}", "HASH"),
    ):
        text = re.sub(pattern, word, text)
    return text


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield the help of every command."""
    group = cli.BouncerGroup("bouncer", "A GitHub App that knows when not to act.", cli.COMMANDS)
    yield "bouncer", _help(group, click.Context(group, info_name="bouncer", terminal_width=WIDTH))
    for name in cli.COMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        context = click.Context(command, info_name=f"bouncer {name}", terminal_width=WIDTH)
        yield f"bouncer {name}", _help(command, context)
        if isinstance(command, click.Group):
            for part, subcommand in command.commands.items():
                context = click.Context(subcommand, info_name=f"bouncer {name} {part}", terminal_width=WIDTH)
                yield f"bouncer {name} {part}", _help(subcommand, context)


def _help(command: click.Command, context: click.Context) -> str:
    return command.get_help(context)


def errors() -> Iterator[tuple[str, str]]:
    """Yield wrong commands, with what they print."""
    with tempfile.TemporaryDirectory() as folder, _environment({}), contextlib.chdir(folder):
        for name, text in FILES.items():
            Path(name).write_text(text, "utf-8")
        for arguments, environment in MISTAKES:
            output = io.StringIO()
            with (
                _environment(environment),
                contextlib.redirect_stderr(output),
                contextlib.redirect_stdout(output),
                contextlib.suppress(SystemExit),
            ):
                cli.main(arguments.split())
            variables = "".join(
                f"{name}={value} " for name, value in environment.items() if environment is not MODEL
            )
            yield f"{variables}bouncer {arguments}", steady(output.getvalue().strip(), folder)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    prefixes = ("BOUNCER_", "GITHUB_", "OPENAI_", "ANTHROPIC_", "DATABASE_", "PORT", "HOST")
    others = {name: value for name, value in before.items() if not name.startswith(prefixes)}
    os.environ.clear()
    os.environ.update({**others, "COLUMNS": str(WIDTH), **variables})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of set-up, of the public part, and of a dashboard with decisions of every outcome."""
    with tempfile.TemporaryDirectory() as folder:
        yield from ((path, steady(words(page), folder)) for path, page in _setup_pages())
        backend = Backend(f"sqlite:///{folder}/bouncer.db")
        migrate(backend.ledger.database)
        try:
            yield from ((path, steady(words(page), folder)) for path, page in _dashboard_pages(backend))
        finally:
            backend.close()


def _setup_pages() -> Iterator[tuple[str, str]]:
    app = Flask("bot.web")
    settings = Settings(bouncer_public_url="https://bouncer.example.org")
    setup = Setup(Guard(LINK), settings, _refuse)
    app.register_blueprint(setup_blueprint(setup))
    app.register_blueprint(public.blueprint("Set BOUNCER_ADMIN_PASSWORD to open the dashboard."))
    client = app.test_client()
    for path in ("/", "/about", "/setup/installed", "/setup", "/setup?link=wrong", f"/setup?link={LINK}"):
        yield path, client.get(path).text
    client.post("/setup/begin", data={"link": LINK})
    form = client.get("/setup").text
    yield "/setup, begun", form
    fields = {"token": _token(form), "name": "bouncer-octo", "web_url": "https://github.com"}
    yield "/setup, wrong", client.post("/setup", data={**fields, "name": "", "owner": "organization"}).text
    fields["public_url"] = "http://localhost:8000"
    yield "/setup, confirm", client.post("/setup", data=fields).text
    yield "/setup/callback?state=x", client.get("/setup/callback?state=x").text
    for mode in ("shadow", "live"):
        yield f"/setup, done, {mode}", _done(app, mode)


def _done(app: Flask, mode: str) -> str:
    from flask import render_template

    choice = {"keep": "file", "mode": mode}
    credentials = {"app_id": 12, "slug": "bouncer-octo", "html_url": "https://github.com/apps/bouncer-octo"}
    with app.test_request_context():
        return render_template("setup/done.html", choice=choice, credentials=credentials, dashboard=True)


def _refuse(*arguments: Any) -> Any:
    raise AssertionError(f"nothing is registered here: {arguments}")


def _token(page: str) -> str:
    match = re.search(r'name="token" value="([^"]+)"', page)
    assert match is not None
    return match[1]


def _dashboard_pages(backend: Backend) -> Iterator[tuple[str, str]]:
    from tests.bot.web.dashboard.conftest import LOGIN, PASSWORD, dashboard, fill

    client = dashboard(backend, github=LOGIN, bouncer_mode="shadow").test_client()
    login = client.get("/login").text
    yield "/login", login
    yield "/login, wrong", client.post("/login", data={"token": _token(login), "password": "x"}).text
    client.post("/login", data={"token": _token(client.get("/login").text), "password": PASSWORD})
    yield "/, empty", client.get("/").text
    yield "/jobs, empty", client.get("/jobs").text
    fill(backend)
    yield from _read(client)


def _read(client: FlaskClient) -> Iterator[tuple[str, str]]:
    for path in PAGES:
        yield path, client.get(path).text


def text() -> str:
    """Return the whole file."""
    parts = ["# Every text of help, errors and pages", "", "Made by `python -m tests.texts`.", ""]
    for title, rows in (("Help", help_texts()), ("Errors", errors()), ("Pages", pages())):
        parts += [f"## {title}", ""]
        for name, content in rows:
            parts += [f"### `{name}`", "", "```text", content.rstrip(), "```", ""]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
