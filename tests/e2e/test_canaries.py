"""Every secret is a known canary: whatever happens, none of them is seen on a page, in a log, or in the ledger."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import inspect, text
from werkzeug import Request, Response

from bot.github.webhook import sign
from tests import forked
from tests.bot.pipeline.rig import wait
from tests.e2e.echo import Gateway, gateway
from tests.e2e.provider import VAGUE, completion, failure
from tests.e2e.site import APP, BROKEN, Browser, Site, stopped

#: Without prefix or shape: no pattern can recognise them.
SECRETS = {
    "GITHUB_WEBHOOK_SECRET": "canary-webhook-newer-Zk3v9,canary-webhook-older-Qm7x2",
    "OPENAI_API_KEY": "canary.openai.Wt5n8.Ab4c6",
    "ANTHROPIC_API_KEY": "canary.anthropic.Lr2h4.Xy9d1",
    "BOUNCER_ADMIN_PASSWORD": "canary admin password Ht6q3",
    "BOUNCER_METRICS_TOKEN": "canary-metrics-Jd7w4",
}
DATABASE_PASSWORD = "canary-database-Pf8s1"


class Canaries:
    """All that must not be seen, and where it was."""

    def __init__(self, shop: Site) -> None:
        self.shop = shop
        self.key = shop.app.private_key
        self.seen: list[str] = []

    def secrets(self) -> dict[str, str]:
        """Name -> value; tokens are minted as we go."""
        settings = {f"{name}/{index}": part for name, value in SECRETS.items() for index, part in parts(value)}
        lines = self.key.strip().splitlines()
        key = {f"private key, line {index}": lines[index] for index in (1, len(lines) - 2)}
        tokens = {f"token {index}": token for index, token in enumerate(self.shop.github.world.tokens)}
        return {**settings, **key, **tokens, "database": DATABASE_PASSWORD}

    def look(self, where: str, text: str) -> None:
        """Note every secret in ``text``; JSON Web Tokens and signatures too, which are never the same."""
        self.seen += [f"{name} in {where}" for name, value in self.secrets().items() if value in text]
        if re.search(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}", text):
            self.seen.append(f"a web token in {where}")
        if re.search(r"sha256=[0-9a-f]{64}", text):
            self.seen.append(f"a signature in {where}")


def parts(value: str) -> list[tuple[int, str]]:
    return list(enumerate(value.split(",")))


@contextmanager
def careless(folder: Path, url: str) -> Iterator[tuple[Site, Gateway]]:
    """A site at the most talkative log level, whose GitHub and model repeat what they were sent."""
    with stopped(folder, url=url) as shop, gateway(shop.github) as github:
        shop.environment |= {
            **SECRETS,
            "GITHUB_API_URL": github.url,
            "LOG_LEVEL": "DEBUG",
            # The second of a chain is asked where the first one fails: both keys are used.
            "BOUNCER_MODEL": "openai:gpt-5-mini,anthropic:claude-sonnet-4-5",
            "ANTHROPIC_BASE_URL": shop.model.url.removesuffix("/v1"),
        }
        shop.app.webhook_secret = SECRETS["GITHUB_WEBHOOK_SECRET"].split(",")[1]
        shop.web()
        shop.worker()
        wait(shop.ready, 60, "web and worker up")
        shop.connect()
        yield shop, github


@pytest.fixture
def with_password(postgres_uri: str) -> str:
    """A database whose URL carries a password; the server does not ask for it."""
    return re.sub(r"//[^/@]*@", f"//postgres:{DATABASE_PASSWORD}@", postgres_uri)


def key_of(request: Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ") or request.headers.get("X-Api-Key", "")


def refuses(status: int) -> object:
    return lambda request: failure(status, f"Incorrect API key provided: {key_of(request)}")


def page(request: Request) -> Response:
    return Response(f"<html>no access for {key_of(request)}</html>", content_type="text/html")


def babbles(request: Request) -> Response:
    """A gateway that lets the model see the headers."""
    output = {
        **VAGUE,
        "explanation": f"Your key is {key_of(request)}.",
        "open_points": [f"Is it {key_of(request)}?"],
    }
    return completion(json.dumps(output))


MOODS = {"401": refuses(401), "400": refuses(400), "500": refuses(500), "page": page, "babble": babbles}


@pytest.mark.timeout(480)
def test_no_secret_is_seen_anywhere(with_password: str, tmp_path: Path) -> None:
    with careless(tmp_path, with_password) as (shop, github):
        canaries = Canaries(shop)
        strange_deliveries(shop, canaries)
        github_repeats_tokens(shop, github)
        the_model_repeats_keys(shop)
        # A job whose keys were refused waits for an operator: this one is quick.
        shop.quiet(meanwhile=shop.hasten)
        assert {item.split(".")[0] for item in github.repeated} >= {"eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9"}
        assert set(shop.github.world.tokens) & set(github.repeated), "no token was repeated at all"
        keys = {question.key.removeprefix("Bearer ") for question in shop.model.asked}
        assert keys == {SECRETS["OPENAI_API_KEY"], SECRETS["ANTHROPIC_API_KEY"]}
        assert {job.state for job in shop.jobs.list(limit=500)} >= {"done", "dead"}
        crawl(shop, canaries)
        command_lines(shop, canaries)
        canaries.look("the log", shop.log.read_text())
        canaries.look("what was written to GitHub", str([(write.path, write.body) for write in writes(shop)]))
        canaries.look("what models were asked", str([question.text for question in shop.model.asked]))
        tables(shop, canaries)
        if canaries.seen:
            pytest.fail("\n".join(sorted(set(canaries.seen))), pytrace=False)


def strange_deliveries(shop: Site, canaries: Canaries) -> None:
    """Malformed in every way, with secrets where they do not belong."""
    secret = SECRETS["GITHUB_WEBHOOK_SECRET"].split(",")[0]
    key = SECRETS["OPENAI_API_KEY"]
    bodies = (b"{", b"[]", f'{{"{key}": "{key}"}}'.encode(), b"\xff\xfe", f'"{key}"'.encode())
    for body in bodies:
        for signature in (sign(body, secret), sign(body, "another"), secret, ""):
            for event, delivery in (("issues", "d-1"), ("", "d-2"), ("issues", "../" + key), ("issues", "")):
                headers = {
                    "X-Hub-Signature-256": signature,
                    "X-GitHub-Event": event,
                    "X-GitHub-Delivery": delivery,
                }
                status, answer = post(shop, body, headers)
                assert 400 <= status < 500, (body, headers, status)
                canaries.look(
                    f"the answer to {body[:9]!r}", answer.replace(key, "") if key in str(body) else answer
                )


def post(shop: Site, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{shop.port}/webhook",
        body,
        {"Content-Type": "application/json", **{name: value for name, value in headers.items() if value}},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def github_repeats_tokens(shop: Site, github: Gateway) -> None:
    """Each kind of refusal, on a token that is minted, on something read and on something written."""
    for status in (401, 403, 404, 422, 429, 500, 200):
        home = shop.repository(f"acme{status}/rocket")
        places = (("POST", "/issues/1/comments"), ("POST", "/check-runs"), ("POST", "/pulls/2/reviews"))
        for method, path in places:
            github.refuse(method, f"/repos/{home}{path}", status, 99 if status in (403, 404, 422) else 1)
        github.refuse("GET", f"/repos/{home}/pulls/2$", status, 1)
        if status not in (404, 422):
            github.refuse("POST", f"/app/installations/{shop.installed(home)}/access_tokens", status, 1)
        shop.github.open_issue(home, "It breaks", "It does not work any more.")
        shop.github.open_pull(home, "Read", "Fixes #1", files={APP: BROKEN}, closes=[1])


def the_model_repeats_keys(shop: Site) -> None:
    home = shop.repository("acme/keys")
    for name, mood in MOODS.items():
        # Enough for both providers, twice; what passes then ends well.
        shop.model.misbehave(f"mood {name};", *[mood] * 4)
        shop.github.open_issue(home, f"mood {name};", "It does not work any more.")
        text = f"Fixes #1 mood {name};"
        shop.github.open_pull(home, f"mood {name};", text, files={APP: f"# {name}\n{BROKEN}"}, closes=[1])


def crawl(shop: Site, canaries: Canaries) -> None:
    """Look at every page that is linked from the front page, and at those without a link."""
    browser = Browser(f"http://127.0.0.1:{shop.port}", SECRETS["BOUNCER_ADMIN_PASSWORD"])
    waiting, visited = (
        ["/", "/metrics", "/healthz", "/readyz", "/setup", "/nothing", "/decisions/999999"],
        set[str](),
    )
    while waiting:
        path = waiting.pop()
        if path in visited or len(visited) > 400:
            continue
        visited.add(path)
        page_text = visit(browser, path)
        canaries.look(f"the page {path}", page_text)
        waiting += re.findall(r'href="(/[^"#]*)"', page_text.replace("&amp;", "&"))
    assert len([path for path in visited if path.startswith("/decisions/")]) > 20
    dead = shop.jobs.list(("dead",))[0]
    page_text = visit(browser, f"/jobs/{dead.id}")
    assert dead.error
    assert "GitHub answered" in page_text


def visit(browser: Browser, path: str) -> str:
    try:
        return browser.get(path)
    except urllib.error.HTTPError as error:
        return error.read().decode()


def command_lines(shop: Site, canaries: Canaries) -> None:
    """Look at the output of operators' commands, and of starts with a wrong setting."""
    job = shop.jobs.list(("dead",))[0].id
    shows = [("jobs", "show", job, *flags) for flags in ((), ("--json",))]
    for arguments in (("doctor",), ("jobs", "list", "--json", "--limit", "999"), *shows):
        canaries.look(f"bouncer {' '.join(arguments)}", output_of(shop, *arguments))
    key = SECRETS["OPENAI_API_KEY"]
    wrong = {
        "GITHUB_APP_PRIVATE_KEY": f"-----BEGIN RSA PRIVATE KEY-----\n{key}\n-----END RSA PRIVATE KEY-----",
        "GITHUB_APP_ID": key,
        "DATABASE_URL": f"mysql://me:{DATABASE_PASSWORD}@127.0.0.1/x",
        "OPENAI_BASE_URL": f"https://me:{key}@127.0.0.1/",
        "BOUNCER_MODEL": "nobody:knows",
    }
    for name, value in wrong.items():
        output = output_of(shop, "serve", **{name: value})
        assert name in output or "nobody:knows" in output
        assert "Traceback" not in output
        canaries.look(f"bouncer serve with a wrong {name}", output)
    unreachable = f"postgresql://me:{DATABASE_PASSWORD}@127.0.0.1:9/x"
    canaries.look(
        "bouncer serve without a database",
        output_of(shop, "serve", DATABASE_URL=unreachable, BOUNCER_DATABASE_SECONDS="1"),
    )


def output_of(shop: Site, *arguments: str, **environment: str) -> str:
    variables = {**shop.environment, "PORT": "0", **environment}
    ran = forked.run(*arguments, environment=variables, folder=shop.folder)
    return (ran.out + ran.err).decode()


def writes(shop: Site) -> list[object]:
    return [request for request in shop.github.requests if request.method != "GET"]


def tables(shop: Site, canaries: Canaries) -> None:
    """Every cell of the database, the queue's own tables included."""
    looked = 0
    with shop.database.read() as connection:
        inspector = inspect(connection)
        for schema in inspector.get_schema_names():
            for table in inspector.get_table_names(schema=schema):
                for row in connection.execute(text(f'SELECT * FROM "{schema}"."{table}"')):
                    looked += 1
                    canaries.look(f"the table {table}", str(tuple(row)))
    assert looked > 100
