"""Every door that a program in the sandbox tries is shut, for a worker that is root and for an ordinary user.

One run tries all of them. With real bubblewrap; bombs and endless programs stand in ``tests/bot/sandbox``.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.corpus import each
from tests.attacks.sandbox import PROGRAMS, TABLE
from tests.bot.sandbox.conftest import RunPython, attack, project  # noqa: F401

pytestmark = pytest.mark.debian("bubblewrap")

SECRET = "ghs_planted_credentials"
RUNNER = """\
import json, os, sys
def pids(): return [n for n in os.listdir('/proc') if n.isdigit()]
def status(field): return open('/proc/self/status').read().split(field + ':')[1].split()[0]
for name, door in json.loads(sys.argv[1]):
    try: opened = eval(door)
    except (OSError, ValueError, AttributeError, KeyError): continue
    if opened: print(name, '->', repr(opened)[:80])
print('all tried')
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Plant secrets on the host."""
    monkeypatch.setenv("BOUNCER_PLANTED", "PLANTED")
    folder = tmp_path / "data"
    (folder / "x" / "bin").mkdir(parents=True)
    for name in ("key.pem", "x/key.pem", "x/bin/key.pem"):
        (folder / name).write_text(SECRET)
    abstract = f"bouncer-attack-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX) as unix, socket.create_server(("", 0)) as tcp:
        unix.bind(f"\0{abstract}")
        unix.listen()
        yield {
            "PROCESS": str(os.getpid()),
            "HOST": str(folder),
            "PORT": str(tcp.getsockname()[1]),
            "ABSTRACT": abstract,
        }
    assert (folder / "key.pem").read_text() == SECRET


def placed(text: str, host: dict[str, str]) -> str:
    for name, value in host.items():
        text = text.replace(name, value)
    return text


def test_every_door_is_shut(attack: RunPython, host: dict[str, str]) -> None:  # noqa: F811
    doors = [(f"{never}: {name}", placed(door, host)) for never, name, door in each(TABLE)]
    result = attack(["python3", "-c", RUNNER, json.dumps(doors)], seconds=90)
    assert result.output.splitlines() == ["all tried"]


def test_no_first_word_opens_a_folder(attack: RunPython, host: dict[str, str]) -> None:  # noqa: F811
    reads = placed(
        "cat HOST/*.pem HOST/x/*.pem HOST/x/bin/*.pem /proc/1/rootHOST/*.pem /etc/shadow; ls /etc", host
    )
    for never, name, program in each(PROGRAMS):
        result = attack([placed(program, host), "sh", "-c", reads])
        assert not any(secret in result.output for secret in (SECRET, "root:", "sudoers")), (never, name)
