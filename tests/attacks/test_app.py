"""Attacks on a running app: signed and unsigned webhooks over HTTP, comments, files and replies that it reads.

Attacks of a class are made one after the other, then the app comes to rest, then each is looked at.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Sequence
from urllib.parse import urlencode, urljoin

import pytest
from sqlalchemy import func, select

from bot.core.config import PATH
from bot.pipeline.store.tables import DELIVERIES
from tests.attacks import commands, configuration, dashboard, gate, model_text, webhook
from tests.attacks.commands import AUTHOR, MACHINE, MAINTAINER, READER, STRANGER
from tests.attacks.corpus import cases, named, params
from tests.attacks.dashboard import HOSTILE, Visit
from tests.attacks.test_life import WORDS
from tests.bot.pipeline.publishing.rendering import fault
from tests.bot.pipeline.publishing.surfaces import HOST
from tests.e2e.provider import CLEAR, completion
from tests.e2e.site import PASSWORD, Site


def send(shop: Site, request: bytes) -> bytes:
    """The answer to bytes on the wire; empty where the server just hangs up."""
    with socket.create_connection(("127.0.0.1", shop.port), 20) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except OSError:
            return b""


def recorded(shop: Site) -> int:
    with shop.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(DELIVERIES)) or 0


@pytest.mark.parametrize(("never", "attack"), params(webhook.TABLE))
def test_webhook(shop: Site, never: str, attack: bytes) -> None:
    before = recorded(shop)
    answer = send(shop, attack)
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 501", b"HTTP/1.1 204")), never
    assert recorded(shop) == before, never
    assert webhook.SECRET.encode() not in answer


@pytest.mark.parametrize(("never", "attack"), params(webhook.TWICE))
def test_webhook_twice(shop: Site, never: str, attack: Sequence[bytes]) -> None:
    before = recorded(shop)
    answers = [send(shop, request)[9:12] for request in attack]
    assert (answers, recorded(shop) - before) == ([b"202", b"202"], 1), never


@pytest.fixture(scope="module")
def comments(shop: Site) -> dict[str, int]:
    """Post every comment on its own issue. Return the number of the issue by the name of the attack."""
    home, attacks, edited = "acme/commands", list(cases(commands.TABLE)), list(cases(commands.EDITED))
    shop.github.create_repository(home, {PATH: "triage: {mode: 'off', accepted_label: ready}"})
    shop.github.world.user(MACHINE, "Bot")
    for login, role in ((MAINTAINER, "triage"), (READER, "read"), (MACHINE, "admin")):
        shop.github.grant(home, login, role)
    # The app is installed after that, so that it has nothing to decide about the issues themselves.
    names = ["control", *(name for _, name, _ in (*attacks, *edited))]
    issues = {name: shop.github.open_issue(home, "It breaks", author=AUTHOR) for name in names}
    shop.github.install(shop.app, home)
    shop.github.comment(home, issues["control"], "/bouncer accept", MAINTAINER)
    for _, name, (sender, text) in attacks:
        shop.github.comment(home, issues[name], text, sender)
    for _, name, (sender, text, editor, later) in edited:
        comment = shop.github.comment(home, issues[name], text, sender)
        shop.github.edit_comment(home, comment, later, by=editor)
    shop.quiet()
    return issues


def obeys(shop: Site, number: int) -> bool:
    """Return True if a comment on an issue was accepted as a command."""
    issue = shop.github.find("acme/commands", number)
    reactions = [reaction.content for comment in issue.comments for reaction in comment.reactions]
    return "+1" in reactions or bool(issue.labels)


@pytest.mark.parametrize(("never", "name"), [*named(commands.TABLE), *named(commands.EDITED)])
def test_commands(shop: Site, comments: dict[str, int], never: str, name: str) -> None:
    assert not obeys(shop, comments[name]), never


def test_a_maintainer_is_obeyed(shop: Site, comments: dict[str, int]) -> None:
    assert obeys(shop, comments["control"])
    assert STRANGER != MAINTAINER


@pytest.fixture(scope="module")
def gated(shop: Site) -> dict[str, int]:
    """Open a pull request of a stranger for every text. Return its number by the name of the attack."""
    off = "triage: {mode: 'off'}\nverify: {mode: 'off'}\nreview: {mode: 'off'}\n"
    home = shop.repository(gate.HOME, {PATH: f"{off}gate: {{mode: draft}}"})
    secret = shop.repository(gate.SECRET, {})
    shop.github.world.repositories[secret].private = True
    shop.github.open_issue(secret, "It breaks", labels=["ready"])
    assert [shop.github.open_issue(home, "It breaks", author="bob") for _ in range(2)] == [gate.PLAIN, gate.READY]
    shop.github.label(home, gate.READY, "ready", by=MAINTAINER)
    pulls = {}
    for _, name, (title, body, comment) in cases(gate.TABLE):
        files = {"src/app.py": "x = 1\n" * 100}
        pulls[name] = shop.github.open_pull(home, title, body, STRANGER, files=files, fork=True)
        shop.github.comment(home, pulls[name], comment, STRANGER)
    shop.github.comment(home, gate.PLAIN, "/bouncer accept", STRANGER)
    shop.quiet()
    return pulls


@pytest.mark.parametrize(("never", "name"), named(gate.TABLE))
def test_gate(shop: Site, gated: dict[str, int], never: str, name: str) -> None:
    (check,) = shop.checks(gate.HOME, shop.head(gate.HOME, gated[name]))
    assert (check.name, check.conclusion) == ("bouncer / ready", "failure"), never
    issue = shop.github.find(gate.HOME, gated[name])
    assert issue.pull is not None
    assert issue.pull.draft, never
    assert (issue.state, issue.labels) == ("open", []), never
    # The issues that GitHub links itself are named so that they can be followed.
    comments = [
        comment.replace("- #1 is", "- is").replace("- #3 is", "- is")
        for comment in shop.comments_on(gate.HOME, gated[name])
    ]
    assert [text for comment in comments if (text := alive(shop, comment))] == [], never


def alive(shop: Site, posted: str) -> str:
    """Return the active part of a comment that is not ours, or an empty text."""
    text = posted.replace(shop.github.web_url, f"https://{HOST}")
    return fault(text, HOST, folds=posted.count("<details>"))


@pytest.fixture(scope="module")
def configured(shop: Site) -> dict[str, str]:
    """Make a repository with an issue for every file. Return its name by the name of the attack."""
    repositories = {}
    for number, (_, name, text) in enumerate(cases(configuration.TABLE)):
        repositories[name] = shop.repository(f"acme/c{number}", {PATH: text})
        shop.github.open_issue(repositories[name], "It breaks", "It does not work any more.")
    shop.quiet(120)
    return repositories


@pytest.mark.parametrize(("never", "name"), named(configuration.TABLE))
def test_configuration(shop: Site, configured: dict[str, str], never: str, name: str) -> None:
    (decision,) = shop.decided(configured[name], 1, "triage")
    assert decision.verdict == "VAGUE", never
    comments = shop.comments_on(configured[name], 1)
    assert [text for comment in comments if (text := alive(shop, comment))] == [], never
    labels = shop.github.labels(configured[name], 1)
    if decision.withheld:
        # A file that cannot be read may have asked for silence.
        assert (comments, labels) == ([], []), never
    else:
        assert any("bouncer:triage:v1" in comment for comment in comments), (never, comments)
        assert labels == ["needs-info"], never


@pytest.fixture(scope="module")
def replied(shop: Site) -> dict[str, int]:
    """Open an issue for every reply. Return its number by the name of the attack."""
    home = shop.repository("acme/replies")
    issues = {}
    for index, (_, name, text) in enumerate(cases(model_text.REPLIES)):
        shop.model.misbehave(f"reply {index};", *(completion(text) for _ in range(6)))
        issues[name] = shop.github.open_issue(home, f"reply {index}; {HOSTILE}", "It does not work.", "stranger")
    shop.quiet(120)
    return issues


@pytest.mark.parametrize(("never", "name"), named(model_text.REPLIES))
def test_model_text(shop: Site, replied: dict[str, int], never: str, name: str) -> None:
    comments = shop.comments_on("acme/replies", replied[name])
    assert [text for comment in comments if (text := alive(shop, comment))] == [], never
    (decision,) = shop.decided("acme/replies", replied[name], "triage")
    if "verdict" in never:
        assert (decision.verdict, comments) == (None, []), never
    else:
        assert decision.verdict == "VAGUE", never


@pytest.fixture(scope="module")
def alike(shop: Site) -> dict[str, tuple[int, int]]:
    """Open two alike issues for every text, and accept the second. Return their numbers by the attack's name."""
    config = "triage: {brief: true}\nduplicates: {mode: comment, suggest_above: 90}\n"
    home = shop.repository("acme/life", {PATH: config})
    words = {name: f"w{index}ord" for index, (_, name, _) in enumerate(cases(WORDS))}
    roots = {
        name: shop.github.open_issue(home, f"{words[name]} {text}", "With version 4.2.", STRANGER, [text[:50]])
        for _, name, text in cases(WORDS)
    }
    shop.quiet(120)
    shop.index(home)
    issues = {}
    for _, name, text in cases(WORDS):
        brief = {**CLEAR, "request": text}
        same = {"number": roots[name], "both": text, "relation": "same cause", "p_same_cause": 95}
        replies = (brief, {"comparisons": [same]})
        shop.model.misbehave(words[name], *(completion(json.dumps(reply)) for reply in replies))
        issues[name] = roots[name], shop.github.open_issue(home, f"{words[name]} {text}", "Since 4.2.", STRANGER)
        shop.quiet()
        shop.github.comment(home, issues[name][1], "/bouncer accept", MAINTAINER)
    shop.quiet(120)
    return issues


@pytest.mark.parametrize(("never", "name"), named(WORDS))
def test_words_of_a_bugs_life(shop: Site, alike: dict[str, tuple[int, int]], never: str, name: str) -> None:
    root, number = alike[name]
    suggestion = f"This may be the same as #{root}: "
    comments = shop.comments_on("acme/life", number)
    assert any(suggestion in comment for comment in comments), comments
    assert any("<summary>Brief</summary>" in comment for comment in comments), comments
    assert [text for comment in comments if (text := alive(shop, comment.replace(suggestion, "")))] == [], never
    assert shop.github.labels("acme/life", number) == ["ready"], never


class Client:
    """A client that is logged in to the dashboard and does not follow redirections."""

    def __init__(self, shop: Site) -> None:
        self.url = f"http://127.0.0.1:{shop.port}"
        self._port = shop.port
        self.cookie = ""
        self.cookie = _cookie(self.log_in("/"))

    def log_in(self, back: str) -> http.client.HTTPResponse:
        """The answer to the right password; ``back`` is where it is said to lead."""
        page, text = self.visit(Visit("/login", (200,)))
        token = re.search(r'name="token" value="([^"]+)"', text)
        assert token, text
        form = {"token": token[1], "password": PASSWORD, "next": back}
        return self.visit(Visit("/login", (302,), form, headers={"Cookie": _cookie(page)}))[0]

    def visit(self, visit: Visit) -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        body = None if visit.form is None else urlencode(visit.form)
        headers = {"Cookie": self.cookie} if visit.logged_in else {}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        method = visit.method or ("GET" if body is None else "POST")
        connection.request(method, visit.path, body, {**headers, **visit.headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text


def _cookie(answer: http.client.HTTPResponse) -> str:
    return str(answer.headers["Set-Cookie"]).partition(";")[0]


@pytest.fixture(scope="module")
def client(shop: Site) -> Client:
    return Client(shop)


def leads_away(client: Client, answer: http.client.HTTPResponse) -> bool:
    target = urljoin(client.url, answer.headers.get("Location", "/").replace("\\", "/"))
    return not target.startswith(f"{client.url}/")


@pytest.mark.usefixtures("replied")
@pytest.mark.parametrize(("never", "attack"), params(dashboard.TABLE))
def test_dashboard(shop: Site, client: Client, never: str, attack: Visit) -> None:
    job = shop.jobs.list(limit=1)[0].id
    for decision in range(1, 4 if "{decision}" in attack.path else 2):
        path = attack.path.replace("{job}", job).replace("{decision}", str(decision))
        answer, text = client.visit(attack._replace(path=path))
        assert answer.status in attack.statuses, (never, answer.status)
        assert not re.search(r"<script|<img|\"'>", text), never
        assert not leads_away(client, answer), never
    assert shop.jobs.get(job).state == "done", never


@pytest.mark.parametrize(("never", "attack"), params(dashboard.BACK))
def test_dashboard_leads_back(client: Client, never: str, attack: str) -> None:
    answer = client.log_in(attack)
    assert (answer.status, leads_away(client, answer)) == (302, False), never


@pytest.mark.usefixtures("alike", "comments", "configured", "gated", "replied")
def test_nothing_of_it_broke_the_app(shop: Site) -> None:
    assert shop.troubles() == {}
    assert "Traceback" not in shop.log.read_text()
