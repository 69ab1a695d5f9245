"""``bouncer doctor`` asks the server through its public address: what the proxies in front do with its headers."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask

from bot.github.webhook import sign
from bot.pipeline.store import migrated
from bot.settings import Settings
from bot.web.app import Backend, create_app
from tests.bot.cli.doctor.test_doctor import all_but
from tests.bot.cli.github_commands import Ran
from tests.bot.pipeline.rig import SECRET as RIG_SECRET
from tests.bot.pipeline.rig import Rig, rigged, wait
from tests.serving import served

SECRET = "a-secret-of-the-webhook"
Environ = dict[str, Any]


def passes_on(environ: Environ) -> None:
    """A proxy without any ``proxy_set_header``: what the client sent arrives."""
    environ["HTTP_HOST"] = "127.0.0.1:8000"


def replaces(environ: Environ) -> None:
    """docs/install.md, nginx and Caddy."""
    environ["HTTP_X_FORWARDED_HOST"] = environ["HTTP_HOST"]
    environ["HTTP_X_FORWARDED_FOR"] = "198.51.100.7"


def appends(environ: Environ) -> None:
    """``$proxy_add_x_forwarded_for``."""
    environ["HTTP_X_FORWARDED_HOST"] = environ["HTTP_HOST"]
    before = environ.get("HTTP_X_FORWARDED_FOR")
    environ["HTTP_X_FORWARDED_FOR"] = f"{before}, 198.51.100.7" if before else "198.51.100.7"


Proxy = Callable[[Environ], None]


@contextmanager
def public(folder: Path, trusted: int, *proxies: Proxy) -> Iterator[str]:
    """A server behind proxies, the outermost first."""
    url = f"sqlite:///{folder}/x.db"
    with migrated(url):
        pass
    app = create_app(Settings(bouncer_trust_proxy=trusted), Backend(url), lambda: (SECRET,))
    inner = app.wsgi_app

    def forward(environ: Environ, start: Any) -> Any:
        for proxy in proxies:
            proxy(environ)
        return inner(environ, start)

    outer = Flask("proxies")
    outer.wsgi_app = forward  # type: ignore[method-assign]
    with served(outer) as address:
        yield address


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, bouncer: Callable[..., Ran], tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)

    def run(**environment: str) -> tuple[int, str]:
        for name, value in {"GITHUB_WEBHOOK_SECRET": SECRET, **environment}.items():
            monkeypatch.setenv(name, value)
        return bouncer("doctor", "--verbose", *all_but("address"))[:2]

    return run


@pytest.mark.parametrize(
    ("trusted", "proxies", "line"),
    [
        ("0", (), "ok    public address: "),
        ("true", (replaces,), "ok    public address: "),
        ("1", (appends,), "ok    public address: "),
        ("2", (appends, appends), "ok    public address: "),
        ("1", (passes_on,), "fail  public address: a client can choose its own address"),
        ("2", (appends,), "fail  public address: a client can choose its own address"),
        ("0", (replaces,), "note  public address: X-Forwarded-For has addresses of 1 proxies"),
        ("1", (appends, appends), "note  public address: X-Forwarded-For has addresses of 2 proxies"),
    ],
)
def test_what_proxies_do_with_the_address_is_told(
    doctor: Any, tmp_path: Path, trusted: str, proxies: tuple[Proxy, ...], line: str
) -> None:
    settings = Settings(bouncer_trust_proxy=trusted)
    with public(tmp_path, settings.bouncer_trust_proxy, *proxies) as url:
        code, output = doctor(BOUNCER_PUBLIC_URL=url, BOUNCER_TRUST_PROXY=trusted)
    assert output.startswith(line)
    assert code == (1 if line.startswith("fail") else 0)


def test_another_secret_and_a_server_that_is_down_are_told(doctor: Any, tmp_path: Path) -> None:
    with public(tmp_path, 0) as url:
        code, output = doctor(BOUNCER_PUBLIC_URL=url, GITHUB_WEBHOOK_SECRET="another-secret-entirely")
        assert (code, "has another webhook secret" in output) == (1, True)
    code, output = doctor(BOUNCER_PUBLIC_URL=url)
    assert (code, "does not answer from here" in output) == (0, True)
    _, output = doctor(BOUNCER_PUBLIC_URL="")
    assert output.startswith("note  public address: not checked")


def test_a_stranger_learns_nothing_from_it(tmp_path: Path) -> None:
    with public(tmp_path, 0) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        connection.request("GET", "/doctor", headers={"X-Hub-Signature-256": "sha256=" + "0" * 64})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (401, b"")


def test_the_real_server_believes_no_proxy_unless_told(tmp_path: Path) -> None:
    """Through gunicorn, which by itself believes X-Forwarded-Proto of a client on this machine."""
    with rigged(tmp_path) as rig:
        rig.web()
        wait(lambda: arrival(rig, {}), 60, "the server is up")
        forwarded = {
            "X-Forwarded-For": "198.51.100.7",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "forged.invalid",
            "SCRIPT_NAME": "/forged",
        }
        reported = arrival(rig, forwarded)
    assert reported == {
        "address": "127.0.0.1",
        "forwarded_for": ["198.51.100.7"],
        "url": f"http://127.0.0.1:{rig.port}/",
    }


def arrival(rig: Rig, headers: dict[str, str]) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", rig.port, timeout=10)
    signed = {"X-Bouncer-Nonce": "doctor", "X-Hub-Signature-256": sign(b"doctor", RIG_SECRET)}
    try:
        connection.request("GET", "/doctor", headers={**headers, **signed})
        return json.loads(connection.getresponse().read())
    except OSError:
        return None
    finally:
        connection.close()
