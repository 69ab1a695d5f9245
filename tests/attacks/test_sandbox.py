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

from tests.attacks.corpus import cases
from tests.bot.sandbox.conftest import RunPython, attack, project  # noqa: F401

_LIBC = "__import__('ctypes').CDLL(None, use_errno=True)"
_SOCKET = "__import__('socket')"


def _exists(path: str) -> str:
    return f"os.path.lexists({path!r})"


def _reads(path: str) -> str:
    return f"open({path!r}, 'rb').read(1)"


def _writes(path: str) -> str:
    return f"os.write(os.open({path!r}, os.O_WRONLY | os.O_CREAT), b'x')"


def _connects(address: str) -> str:
    return f"{_SOCKET}.create_connection({address}, 2)"


#: ``HOST`` stands for a folder of theirs, ``PROCESS`` for the worker, ``PORT`` and ``ABSTRACT`` for those
#: that listen on the host.
TABLE = {
    "a file of the operator's is read": {
        "its path": _reads("HOST/key.pem"),
        "its folder": "os.listdir('HOST')",
        "through the first process": _reads("/proc/1/rootHOST/key.pem"),
        "through its own process": _reads("/proc/self/rootHOST/key.pem"),
        "through the folder it stands in": _reads("/proc/self/cwd/../HOST/key.pem"),
        "by a walk": (
            "[f for f, d, n in os.walk('/') if d.__setitem__(slice(None), [x for x in d if f != '/' or x not in"
            " ('usr', 'proc', 'dev')]) or 'key.pem' in n]"
        ),
        "through any process": (
            "[p for p in pids() for w in ('root', 'cwd') if os.path.exists(f'/proc/{p}/{w}/HOST/key.pem')]"
        ),
        "through open descriptors": (
            "[n for n in os.listdir('/proc/self/fd') if 'HOST' in os.readlink('/proc/self/fd/' + n)]"
        ),
        "through the parent's descriptors": (
            "[n for n in os.listdir('/proc/1/fd') if 'HOST' in os.readlink('/proc/1/fd/' + n)]"
        ),
        "through the mounts": "[m for m in open('/proc/self/mountinfo') if ' HOST' in m]",
        "passwords": _reads("/etc/shadow"),
        "sudo's rules": _exists("/etc/sudoers"),
        "keys of the host": "os.listdir('/etc/ssh')",
        "the checkout's credentials": _reads("/repo/.git/config"),
        "root's home": "os.path.exists('/root/.bashrc') or os.path.exists('/root/.ssh')",
        "homes": "os.listdir('/home')",
        "accounts": "'root:' in open('/etc/passwd').read()",
        "logs": "os.listdir('/var/log')",
        "the container's secrets": "os.listdir('/run/secrets')",
        "docker's socket": _exists("/var/run/docker.sock"),
        "the bus": _exists("/run/dbus/system_bus_socket"),
        "the environment of the worker": (
            "[e for e in os.environ if e.startswith(('BOUNCER', 'GITHUB', 'DATABASE'))]"
        ),
        "the environment of all processes": (
            "[p for p in pids() if b'PLANTED' in open(f'/proc/{p}/environ', 'rb').read()]"
        ),
        "the kernel's memory": _reads("/dev/mem"),
        "disks": "[n for n in os.listdir('/dev') if n.startswith(('sd', 'vd', 'nvme', 'loop', 'dm-'))]",
        "the kernel's symbols": "any(not l.startswith('0' * 16) for l in open('/proc/kallsyms'))",
        "keys of the kernel's": "open('/proc/keys').read().strip()",
    },
    "something outside is written": {
        "the root": _writes("/x"),
        "settings": _writes("/etc/x"),
        "devices": _writes("/dev/x"),
        "programs": _writes("/usr/bin/x"),
        "libraries": _writes("/usr/lib/x"),
        "accounts": _writes("/etc/passwd"),
        "the loader's list": _writes("/etc/ld.so.preload"),
        "the operator's key": _writes("HOST/key.pem"),
        "who handles crashes": _writes("/proc/sys/kernel/core_pattern"),
        "the kernel's magic key": _writes("/proc/sysrq-trigger"),
        "the kernel's modules": _writes("/proc/sys/kernel/modprobe"),
        "control groups": _writes("/sys/fs/cgroup/cgroup.procs"),
        "its own map of users": _writes("/proc/self/uid_map"),
        "who is ended first": "os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')",
        "a link to the operator's file": "(os.symlink('HOST/key.pem', '/tmp/l'), open('/tmp/l', 'w').write('x'))",
    },
    "another machine, or the host, is reached": {
        "a port of the host": _connects("('127.0.0.1', PORT)"),
        "a port by its name": _connects("('localhost', PORT)"),
        "a port of every address": _connects("('0.0.0.0', PORT)"),
        "version six": _connects("('::1', PORT)"),
        "the cloud's metadata": _connects("('169.254.169.254', 80)"),
        "a private address": _connects("('10.0.0.1', 80)"),
        "a public address": _connects("('192.0.2.1', 80)"),
        "a name": f"{_SOCKET}.getaddrinfo('example.org', 80)",
        "a datagram": f"{_SOCKET}.socket(2, 2).sendto(b'x', ('192.0.2.1', 53))",
        "an abstract socket": f"{_SOCKET}.socket(1).connect('\\0ABSTRACT') is None",
        "raw packets": f"{_SOCKET}.socket(2, 3, 1)",
        "packets of the wire": f"{_SOCKET}.socket(17, 3)",
        "the kernel by netlink": f"{_SOCKET}.socket(16, 3, 15)",
        "the machine around": f"{_SOCKET}.socket(40, 1)",
        "another interface": f"[n for _, n in {_SOCKET}.if_nameindex() if n != 'lo']",
    },
    "it becomes somebody else, or more": {
        "root": "os.setuid(0) is None",
        "root's group": "os.setgid(0) is None",
        "more groups": "os.setgroups([0]) is None",
        "root by being root already": "os.getuid() == 0 or os.geteuid() == 0",
        "capabilities": "int(status('CapEff'), 16) or int(status('CapBnd'), 16) or int(status('CapAmb'), 16)",
        "new rights by a program": "status('NoNewPrivs') != '1'",
        "no filter of system calls": "status('Seccomp') != '2'",
        "a user namespace": f"{_LIBC}.unshare(0x10000000) == 0",
        "a mount namespace": f"{_LIBC}.unshare(0x00020000) == 0",
        "a mount": f"{_LIBC}.mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0",
        "an unmount": f"{_LIBC}.umount2(b'/proc', 2) == 0",
        "a new root": f"{_LIBC}.chroot(b'/tmp') == 0",
        "a device": "os.mknod('/tmp/disk', 0o60600, os.makedev(254, 0)) is None",
        "another's name": f"{_LIBC}.sethostname(b'owned', 5) == 0",
        "another's time": "__import__('time').clock_settime(0, 0.0) is None",
        "another architecture": f"{_LIBC}.personality(0x0400000) != -1",
        "a trace of the first process": f"{_LIBC}.ptrace(16, 1, 0, 0) == 0",
        "a program without a file": "os.memfd_create('x')",
        "a ring of the kernel's": f"{_LIBC}.syscall(425, 1, 0) >= 0",
        "a key of the kernel's": f"{_LIBC}.syscall(250, 0, -3, 1) >= 0",
        "a program for the kernel": f"{_LIBC}.syscall(321, 0, 0, 0) >= 0",
        "a process of the host": "os.kill(PROCESS, 0) is None",
        "a parent outside": "len(pids()) > 6",
        "a terminal": "open('/dev/tty')",
        "characters typed for the operator": "__import__('fcntl').ioctl(0, 0x5412, b'x')",
    },
}

#: First words of a command: each is followed by a shell that reads the operator's files.
PROGRAMS = {
    "the first word of a command opens a folder": {
        "an assignment below a folder": "HOST/x/a=b",
        "a program of the operator's": "HOST/x/bin/python",
        "the program that runs": "/proc/self/exe",
        "the first process's program": "/proc/1/exe",
        "the root of a thread": "/proc/thread-self/root/bin/sh",
        "a link of the system's": "/etc/alternatives/awk",
        "a link and up": "/etc/alternatives/../passwd",
        "a descriptor": "/dev/fd/0",
        "relative steps": "../../HOST/x/bin/python",
        "an option": "-a",
        "the end of options": "--",
        "nothing": "",
    }
}

TABLES = (TABLE, PROGRAMS)


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
    doors = [(f"{never}: {name}", placed(door, host)) for never, name, door in cases(TABLE)]
    result = attack(["python3", "-c", RUNNER, json.dumps(doors)], seconds=90)
    assert result.output.splitlines() == ["all tried"]


def test_no_first_word_opens_a_folder(attack: RunPython, host: dict[str, str]) -> None:  # noqa: F811
    reads = placed(
        "cat HOST/*.pem HOST/x/*.pem HOST/x/bin/*.pem /proc/1/rootHOST/*.pem /etc/shadow; ls /etc", host
    )
    for never, name, program in cases(PROGRAMS):
        result = attack([placed(program, host), "sh", "-c", reads])
        assert not any(secret in result.output for secret in (SECRET, "root:", "sudoers")), (never, name)
