"""Attacks that a repository's command, its tests or its set-up can try; all with real bubblewrap.

Each runs for the worker that the tests run as (often root) and for one that is an ordinary user.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyseccomp
import pytest

from bot.sandbox import network
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.monitor import descendants
from bot.sandbox.protocol import Limits
from tests.bot.pipeline.rig import wait
from tests.bot.sandbox.conftest import RunPython, run
from tests.conftest import missing

pytestmark = pytest.mark.debian("bubblewrap")

SECRET = "ghs_planted_credentials"

CLOSED_CALLS = """
io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key userfaultfd ptrace process_vm_readv
process_vm_writev process_madvise pidfd_getfd kcmp personality mount umount2 move_mount open_tree fsopen fsconfig
fsmount mount_setattr pivot_root chroot bpf perf_event_open unshare setns clone3 kexec_load kexec_file_load
init_module finit_module delete_module open_by_handle_at memfd_create memfd_secret shmget shmat msgget swapon
reboot acct quotactl syslog iopl ioperm lookup_dcookie fanotify_init settimeofday clock_settime adjtimex
sethostname setdomainname vhangup modify_ldt
"""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """The operator's data folder with credentials, at the place where attacks search for it."""
    folder = tmp_path / "data"
    (folder / "x" / "bin").mkdir(parents=True)
    (folder / "x" / "lib" / "python3.11").mkdir(parents=True)
    for name in ("credentials.json", "x/credentials.json", "x/bin/credentials.json"):
        (folder / name).write_text(SECRET)
        (folder / name).chmod(0o600)
    return folder


def test_private_files_of_an_operators_folder_are_hidden(project: Path, planted: Path) -> None:
    """A worker that is root runs the program as another user, which cannot read a mounted file of mode 0600."""
    if os.geteuid() != 0:
        pytest.skip("an ordinary worker has no other user to give")
    (planted / "tool").write_text("tool")
    (planted / "tool").chmod(0o644)
    command = f"cat {planted}/tool; cat {planted}/credentials.json"
    result = run(project, ["sh", "-c", command], Bubblewrap(folders=(planted,)))
    assert result.output.startswith("tool")
    assert "Permission denied" in result.output
    assert SECRET not in result.output


def test_a_killed_worker_leaves_no_program_and_the_next_removes_its_folder(project: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("an ordinary worker makes no folder")
    tmp_path.chmod(0o700)  # the program's user may not enter it; it is mounted through a folder below /tmp
    script = (
        "import sys; from pathlib import Path\n"
        "from bot.sandbox.bubblewrap import Bubblewrap\n"
        "from bot.sandbox.protocol import Limits, ProgramRun\n"
        "folder, project = map(Path, sys.argv[1:])\n"
        "command = ['sh', '-c', f'touch {folder}/up; sleep 60']\n"
        "Bubblewrap().run(ProgramRun(command, project, Limits(), writable=[folder]))\n"
    )
    public = tmp_path / "shown"
    public.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", script, public, project], cwd=Path(__file__).parents[3]
    ) as worker:
        wait(lambda: (public / "up").exists())
        (child, *_) = descendants(worker.pid)[1:]
        match = re.search(rb"/tmp/bouncer-stage-[^/\0]+", Path(f"/proc/{child}/cmdline").read_bytes())
        assert match
        worker.kill()
        worker.wait()
    stage = Path(os.fsdecode(match[0]))
    os.utime(stage, (0, 0))
    wait(lambda: not Path(f"/proc/{child}").exists())
    run(project, ["true"], readable=[public])
    assert not stage.exists()


def test_forbidden_system_calls_fail_as_not_implemented(attack: RunPython) -> None:
    numbers = {name: pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) for name in CLOSED_CALLS.split()}
    available = {name: number for name, number in numbers.items() if number >= 0}
    assert len(available) > 45
    code = (
        "import ctypes, socket\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def closed(*words):\n"
        "    ctypes.set_errno(0)\n"
        "    return libc.syscall(*map(ctypes.c_long, words)) == -1 and ctypes.get_errno() == 38\n"
        f"print([name for name, number in {available!r}.items() if not closed(number, 0, 0, 0, 0, 0)])\n"
        f"clone = {pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, 'clone')}\n"
        "flags = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)\n"
        "print([hex(flag) for flag in flags if not closed(clone, flag | 17, 0, 0, 0, 0)])\n"
        "for family, kind, protocol in ((38, 5, 0), (40, 1, 0), (17, 3, 0), (16, 3, 9), (16, 3, 15)):\n"
        "    try: socket.socket(family, kind, protocol); print('opened', family)\n"
        "    except OSError as error:\n"
        "        if error.errno != 38: print(family, error)\n"
    )
    assert attack(["python3", "-c", code]).output == "[]\n[]\n"


@pytest.fixture
def key() -> int:
    """A key in the worker's session keyring, which every holder of that keyring may read."""
    if _key_call("keyctl", 1, None) == -1:  # a new session keyring: the present one may be closed or shared
        missing("the kernel, or this container, offers no keys")
    number = _key_call("add_key", b"user", b"bouncer-test", SECRET.encode(), len(SECRET), -3)
    assert _key_call("keyctl", 11, number, ctypes.create_string_buffer(99), 99) == len(SECRET)
    return number


def _key_call(name: str, *words: object) -> int:
    number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    return int(ctypes.CDLL(None).syscall(number, *words))


@pytest.mark.parametrize(("allowed", "refused"), [("", {"ENOSYS"}), ("keyctl", {"EACCES", "ENOKEY"})])
def test_keys_of_the_worker_cannot_be_read_with_and_without_the_filter(
    attack: RunPython, key: int, allowed: str, refused: set[str]
) -> None:
    code = (
        "import ctypes, errno\n"
        "libc, text = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(99)\n"
        f"size = libc.syscall({pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, 'keyctl')}, 11, {key}, text, 99)\n"
        "print(text.value if size > 0 else errno.errorcode[ctypes.get_errno()])\n"
        "print(open('/proc/keys').read() + open('/proc/key-users').read(), end='')\n"
    )
    assert attack(["python3", "-c", code], allowed=allowed).output.strip() in refused


def test_compilers_git_and_threads_work(attack: RunPython) -> None:
    script = (
        "git init -q x && cd x && git config user.email a@example.org && git config user.name a && touch a"
        " && git add a && git commit -qm a && git log --format=%s"
        " && python3 -c 'import concurrent.futures as c, multiprocessing as m\n"
        "with c.ThreadPoolExecutor(4) as p: print(sum(p.map(abs, range(5))))\n"
        'p = m.Process(target=print, args=("child",)); p.start(); p.join()\''
    )
    result = attack(["sh", "-c", script])
    assert result.output.splitlines()[-3:] == ["a", "10", "child"], result.output


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Sockets of the host: one below a folder, one in the abstract namespace, one on every address."""
    tmp_path.chmod(0o755)
    names = {"path": str(tmp_path / "s"), "abstract": f"\0bouncer-test-{os.getpid()}-{time.monotonic_ns()}"}
    listeners = []
    for name in names.values():
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(name)
        listeners.append(listener)
    Path(names["path"]).chmod(0o777)
    tcp = socket.create_server(("", 0))
    listeners.append(tcp)
    for listener in listeners:
        listener.listen()
    yield {**names, "port": str(tcp.getsockname()[1])}
    for listener in listeners:
        listener.close()


def _knock(where: dict[str, str], addresses: list[str]) -> str:
    return (
        "import socket\n"
        f"for name in ({where['path']!r}, {where['abstract']!r}):\n"
        "    try: socket.socket(socket.AF_UNIX).connect(name); print('reached', name)\n"
        "    except OSError: pass\n"
        f"for address in {addresses!r}:\n"
        f"    try: socket.create_connection((address, {where['port']}), timeout=3); print('reached', address)\n"
        "    except OSError: pass\n"
        "print('done')\n"
    )


def _addresses() -> list[str]:
    lines = subprocess.run(["ip", "-o", "-4", "address"], capture_output=True, text=True, check=False).stdout
    own = [line.split()[3].partition("/")[0] for line in lines.splitlines()]
    return list(dict.fromkeys([*own, "127.0.0.1", "127.0.0.53", "0.0.0.0", "198.51.100.2", "169.254.169.254"]))


def test_sockets_of_the_host_cannot_be_reached(attack: RunPython, listening: dict[str, str]) -> None:
    assert attack(["python3", "-c", _knock(listening, _addresses())]).output == "done\n"


@pytest.mark.debian("slirp4netns")
def test_a_set_up_with_a_network_cannot_reach_host_sockets(
    attack: RunPython, listening: dict[str, str], request: pytest.FixtureRequest
) -> None:
    ordinary = request.node.callspec.params["attack"] == "ordinary user"
    if ordinary and not network._TUN.stat().st_mode & 0o006:
        pytest.skip("no user-mode networking for this user")
    code = _knock(listening, _addresses()) + "print(open('/proc/net/route').read().count('tap0') > 0)\n"
    assert attack(["python3", "-c", code], network=True).output == "done\nTrue\n"


@pytest.mark.debian("slirp4netns")
def test_private_addresses_have_no_route_for_a_set_up(project: Path) -> None:
    code = (
        "import errno, socket\n"
        "for address in ('10.1.2.3', '172.16.9.9', '192.168.1.1', '169.254.169.254', '100.64.0.1', '224.0.0.1'):\n"
        "    try: socket.create_connection((address, 80), timeout=3); print('reached', address)\n"
        "    except OSError as error: print(errno.errorcode[error.errno])\n"
        "try: socket.socket(socket.AF_INET6).connect(('fd00::1', 80)); print('reached')\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
    )
    result = run(project, ["python3", "-c", code], limits=Limits(seconds=40), network=True)
    assert set(result.output.split()) <= {"EHOSTUNREACH", "ENETUNREACH"}
    assert len(result.output.split()) == 7


@pytest.mark.parametrize(
    "bomb",
    [
        # Pages of shared memory stay when the process releases them, so its resident set stays small.
        "import mmap\nm = mmap.mmap(-1, 4 << 30)\n"
        "for at in range(0, 4 << 30, 1 << 22):\n    m[at:at + (1 << 22)] = bytes(1 << 22)\n"
        "    m.madvise(mmap.MADV_DONTNEED, at, 1 << 22)\n",
        # Data in sockets belongs to no process.
        "import socket\nkept = []\n"
        "while True:\n    a, b = socket.socketpair()\n    a.setblocking(False)\n"
        "    try:\n        while True: a.send(bytes(1 << 16))\n"
        "    except BlockingIOError: kept.append((a, b))\n",
        # Page tables are in no resident set: one of 4 KiB for each byte that is read, 501 MiB in all.
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_size_t] * 5]\n"
        "libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]\n"
        "for _ in range(8):\n    if not os.fork(): break\n"
        "for _ in range(31):\n"
        "    start = libc.mmap(None, 1 << 30, 1, 0x4022, 2**64 - 1, 0)\n"
        "    libc.madvise(start, 1 << 30, 15)\n"
        "    for at in range(start, start + (1 << 30), 1 << 21): ctypes.c_char.from_address(at).value\n"
        "import time; time.sleep(15)\n",
        "open('/dev/shm/x', 'wb').write(bytes(1 << 20))\nblocks = []\n"
        "while True: blocks.append(bytearray(b'x' * (1 << 24)))\n",
        # The youngest process has ended, and has no sockets that could be counted.
        "import socket\nif not os.fork(): os._exit(0)\nkept = []\n"
        "while len(kept) < 1500:\n    a, b = socket.socketpair()\n    a.setblocking(False)\n"
        "    try:\n        while True: a.send(bytes(1 << 16))\n"
        "    except BlockingIOError: kept.append((a, b))\n",
        # The first thread has ended, and shows none of the memory of the others.
        "import ctypes, threading, time\ndef fill():\n    blocks = []\n"
        "    for _ in range(60): blocks.append(bytearray(b'x' * (1 << 23))); time.sleep(0.02)\n    os._exit(0)\n"
        "threading.Thread(target=fill).start()\nlibc = ctypes.CDLL(None)\n"
        f"libc.syscall({pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, 'exit')}, 0)\n",
    ],
    ids=["shared", "sockets", "page tables", "private", "sockets and an ended process", "an ended thread"],
)
def test_memory_outside_of_processes_counts(attack: RunPython, bomb: str) -> None:
    code = (
        "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(7)[1],) * 2)\n" + bomb
    )
    result = attack(["python3", "-c", code], memory_bytes=256 << 20)
    assert result.ending == "memory", result.output


def test_open_files_are_limited(attack: RunPython) -> None:
    """Pipes hold data that belongs to no process: without a limit, gigabytes."""
    code = "import resource; print(max(resource.getrlimit(resource.RLIMIT_NOFILE)) <= 4096)"
    assert attack(["python3", "-c", code]).output == "True\n"


def test_a_program_has_another_user_a_filter_and_oom_priority(project: Path) -> None:
    runner = threading.Thread(target=lambda: run(project, ["sleep", "20"], limits=Limits(seconds=3)))
    runner.start()
    deadline, facts = time.monotonic() + 20, {}
    while not facts and time.monotonic() < deadline:
        for pid in descendants(os.getpid()):
            try:
                if Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x0020\0":
                    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                    facts = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
                    facts["oom"] = Path(f"/proc/{pid}/oom_score_adj").read_text().strip()
            except (FileNotFoundError, ProcessLookupError):
                continue
        time.sleep(0.01)
    runner.join()
    assert facts["Seccomp"] == "2"
    assert facts["oom"] == "1000"
    assert int(facts["CapEff"], 16) == 0
    if os.geteuid() == 0:
        assert facts["Uid"].split()[0] not in ("0", str(os.getuid()))
