"""The error of a server that is started with a setting that cannot be right: one line, and exit code 2."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as elliptic_key
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bot.core.errors import SettingsError
from bot.settings import load
from tests import forked
from tests.bot.cli.github_commands import Ran

PEM = (Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good and bad files of an operator."""
    folder = tmp_path_factory.mktemp("operator")
    key = generate_private_key(65537, 2048).private_bytes(*PEM)
    (folder / "key.pem").write_bytes(key)
    (folder / "cut.pem").write_bytes(key[:300])
    (folder / "elliptic.pem").write_bytes(elliptic_key(SECP256R1()).private_bytes(*PEM))
    (folder / "replies.jsonl").write_text('{"model": "m", "subject": "s"}\n')
    return folder


GOOD = {
    "GITHUB_APP_ID": "7",
    "GITHUB_APP_PRIVATE_KEY_PATH": "key.pem",
    "GITHUB_WEBHOOK_SECRET": "canary-secret",
    "BOUNCER_MODEL": "recorded:replies.jsonl#m",
}


SERVERS = ("serve", "worker", "web")


def start(command: str, folder: Path, **wrong: str) -> tuple[int, str, str]:
    environment = {"PATH": os.environ["PATH"], **GOOD, **wrong}
    variables = {name: value for name, value in environment.items() if value}
    ended = forked.run(command, environment=variables, folder=folder)
    return ended.code, ended.out.decode(), ended.err.decode()


@pytest.mark.parametrize(
    ("command", "wrong", "why"),
    [
        ("worker", {"GITHUB_APP_ID": ""}, "GITHUB_APP_ID is not set"),
        # Half of the credentials are a mistake, and no first start.
        ("serve", {"GITHUB_APP_PRIVATE_KEY_PATH": "", "GITHUB_WEBHOOK_SECRET": ""}, "GITHUB_WEBHOOK_SECRET is"),
        ("web", {"GITHUB_WEBHOOK_SECRET": ""}, "GITHUB_WEBHOOK_SECRET is not set: deliveries cannot be verified"),
        (
            "serve",
            {"GITHUB_APP_PRIVATE_KEY_PATH": "cut.pem"},
            "GITHUB_APP_PRIVATE_KEY_PATH: cut.pem: the private key is damaged or cut off",
        ),
        (
            "worker",
            {"GITHUB_APP_PRIVATE_KEY_PATH": "elliptic.pem"},
            "GITHUB_APP_PRIVATE_KEY_PATH: elliptic.pem: GitHub Apps use RSA keys",
        ),
        (
            "serve",
            {"BOUNCER_PROMPTS_DIR": "nowhere"},
            "prompts (BOUNCER_PROMPTS_DIR): nowhere is not a folder",
        ),
        ("worker", {"BOUNCER_MODEL": "gpt-5"}, "model 'gpt-5' (--model, BOUNCER_MODEL): must be one of"),
        *((server, {"BOUNCER_MODEL": ""}, "BOUNCER_MODEL is not set: name the model") for server in SERVERS),
        (
            "worker",
            {"GITHUB_APP_PRIVATE_KEY_PATH": "", "GITHUB_APP_PRIVATE_KEY": "canary-key"},
            "GITHUB_APP_PRIVATE_KEY: ",
        ),
        ("worker", {"BOUNCER_NOTIFY_URL": "http://127.0.0.1:9/hook"}, "BOUNCER_NOTIFY_SECRET is not set"),
        ("web", {"PORT": "70000"}, "PORT"),
        ("web", {"HOST": "198.51.100.7"}, "HOST, PORT"),
        ("web", {"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
        ("web", {"DATABASE_URL": "mysql://me:canary-pw@127.0.0.1/x"}, "DATABASE_URL"),
        ("web", {"DATABASE_URL": "sqlite:///no/folder/b.db"}, "DATABASE_URL: cannot open"),
        ("web", {"DATABASE_URL": "postgresql://u:canary-pw@h:port/b"}, "DATABASE_URL: not a URL such as"),
        (
            "worker",
            {"DATABASE_URL": "postgresql://u:canary-pw@127.0.0.1:1/b", "BOUNCER_DATABASE_SECONDS": "0"},
            "DATABASE_URL: cannot reach",
        ),
    ],
)
def test_a_server_says_what_is_wrong_and_leaves_nothing_behind(
    operator: Path, command: str, wrong: dict[str, str], why: str
) -> None:
    code, out, err = start(command, operator, **wrong)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith(f"bouncer: {why}")
    assert "canary" not in err
    assert not list(operator.glob("bouncer.db*"))


@pytest.mark.parametrize("command", ["serve", "web"])
def test_a_port_in_use_is_found_before_anything_starts(operator: Path, command: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        code, _, err = start(command, operator, PORT=str(port))
    assert (code, err) == (2, f"bouncer: HOST, PORT: cannot listen on 127.0.0.1:{port}: Address already in use\n")


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (b"LOG_LEVEL=chatty\n", "LOG_LEVEL: must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
        (b"PORT=8000\nthis is no setting = 1\n", ".env, line 2: not of the form NAME=value"),
        (b'GITHUB_APP_PRIVATE_KEY="-----BEGIN\n', ".env, line 1: not of the form NAME=value"),
        (b"\xff\xfe\x00", ".env: not UTF-8 text"),
        (b"BOUNCER_SANDBOX=vm\n", "BOUNCER_SANDBOX: must be 'bubblewrap', 'docker' or 'off'"),
        (b"DATABASE_URL=postgresql://h:port/b\n", "DATABASE_URL: not a URL such as"),
        (b"DATABASE_URL=postgresql://[::1/b\n", "DATABASE_URL: not a URL such as"),
        (b"DATABASE_URL=sqlite://\n", "DATABASE_URL: sqlite needs a file"),
        (b"DATABASE_URL=mysql://h/b\n", "DATABASE_URL: must start with sqlite:/// or postgresql://"),
        (
            b"\xef\xbb\xbfDATABASE_URL=sqlite:///no/of-bom.db\r\n",
            "DATABASE_URL: {folder}/no/of-bom.db does not exist",
        ),
    ],
)
def test_a_bad_env_file_is_one_line(
    file: bytes,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bouncer: Callable[..., Ran],
) -> None:
    monkeypatch.chdir(tmp_path)
    # What the command puts into the environment goes with the test.
    monkeypatch.setattr(os, "environ", dict(os.environ))
    Path(".env").write_bytes(file)
    code, out, err = bouncer("jobs", "list", "--env-file", ".env")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"bouncer: {why.format(folder=tmp_path)}")


ADDRESSES = ("GITHUB_API_URL", "GITHUB_WEB_URL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "BOUNCER_NOTIFY_URL")


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.parametrize("host", ["ollama:11434", "192.0.2.1", "localhost.example", "127.0.0.1.example"])
def test_plain_http_to_another_machine_needs_a_setting(
    name: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, f"http://{host}/v1")
    with pytest.raises(SettingsError, match=f"^{name}: plain http:// to another machine.*BOUNCER_ALLOW_HTTP=true"):
        load()
    monkeypatch.setenv("BOUNCER_ALLOW_HTTP", "true")
    load()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.2:1", "http://[::1]:1", "http://localhost:1", "https://x.example"]
)
def test_this_machine_and_https_need_no_setting(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ADDRESSES:
        monkeypatch.setenv(name, url)
    load()
