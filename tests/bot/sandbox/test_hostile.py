"""A hostile program ends at its limit as a recorded result; the worker and the host do not change."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bot.sandbox.mounts import own_python
from tests.bot.sandbox.conftest import RunPython

pytestmark = [pytest.mark.debian("bubblewrap"), pytest.mark.usefixtures("untouched")]


def test_a_fork_bomb_is_limited_to_its_processes(python: RunPython) -> None:
    outcome = python(
        "import os, sys\n"
        "born = 0\n"
        "try:\n"
        "    while True:\n"
        "        if os.fork() == 0:\n"
        "            import time; time.sleep(60)\n"
        "        born += 1\n"
        "except OSError as error:\n"
        "    print(born, error)\n",
        processes=20,
    )
    assert outcome.ending == "exited"
    born, _, error = outcome.output.partition(" ")
    assert 10 <= int(born) < 20
    assert "Resource temporarily unavailable" in error


_EMPTY_FILES = "for number in range(10**5): open(f'/tmp/{number}', 'w').close()"
PROGRAMS: dict[str, tuple[str, dict[str, int], str]] = {
    "an endless fork bomb": (
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n",
        {"seconds": 1, "processes": 64},
        "timeout",
    ),
    "processor time": ("while True: pass", {"cpu_seconds": 1}, "timeout"),
    "memory of all processes together": (
        "import os, time\n"
        "for number in range(8):\n"
        "    if os.fork() == 0:\n"
        "        block = os.urandom(60 << 20); time.sleep(30)\n"
        "time.sleep(30)\n",
        {"memory_bytes": 256 << 20},
        "memory",
    ),
    "empty files": (_EMPTY_FILES, {"entries": 20_000}, "disk"),
    "empty files beside an ended process": (
        f"import os\nif not os.fork(): os._exit(0)\n{_EMPTY_FILES}",
        {"entries": 20_000},
        "disk",
    ),
}


@pytest.mark.parametrize(("code", "limits", "ending"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_ends_at_its_limit(python: RunPython, code: str, limits: dict[str, int], ending: str) -> None:
    started = time.monotonic()
    outcome = python(code, **limits)
    assert (outcome.ending, outcome.exit_code) == (ending, None)
    assert time.monotonic() - started < 10


def test_threads_count_as_processes(python: RunPython) -> None:
    outcome = python(
        "import threading, time\n"
        "for number in range(1000):\n"
        "    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n",
        processes=30,
    )
    assert "can't start new thread" in outcome.output


def test_ten_gigabytes_at_once_are_refused(python: RunPython) -> None:
    outcome = python("block = b'x' * (10 << 30)", memory_bytes=512 << 20)
    assert outcome.ending in ("exited", "memory")
    assert outcome.ending == "memory" or "MemoryError" in outcome.output


def test_pages_that_forks_share_count_once(python: RunPython) -> None:
    outcome = python(
        "import os, time\n"
        "block = os.urandom(100 << 20)\n"
        "children = []\n"
        "for number in range(6):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        time.sleep(0.5); os._exit(0)\n"
        "    children.append(child)\n"
        "for child in children: os.waitpid(child, 0)\n"
        "print('done')\n",
        memory_bytes=256 << 20,
    )
    assert (outcome.ending, outcome.output) == ("exited", "done\n")


def test_a_program_that_ignores_signals_is_killed(python: RunPython) -> None:
    outcome = python(
        "import signal, time\n"
        "for number in range(1, 65):\n"
        "    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "print('begun', flush=True)\n"
        "while True: time.sleep(1)",
        seconds=1,
    )
    assert (outcome.ending, outcome.output) == ("timeout", "begun\n")
    assert 1 <= outcome.seconds < 3


def test_a_flood_of_output_is_cut_and_ends_the_run(python: RunPython) -> None:
    outcome = python("while True: print('x' * 1000)", output_bytes=10_000)
    assert outcome.ending == "output"
    assert len(outcome.output) == 10_000


def test_the_operators_files_are_invisible(python: RunPython, untouched: Path) -> None:
    key, home = untouched / "key.pem", Path.home()
    # An interpreter below the operator's home is mounted at its own path, and no other files of that home.
    ways = {part.relative_to(home).parts[0] for part in own_python() if part.is_relative_to(home)}
    outcome = python(
        "import pathlib\n"
        f"for path in ({str(key)!r}, '/etc/shadow', '/proc/1/root{key}', '/repo/.git/config'):\n"
        "    print(pathlib.Path(path).exists())\n"
        f"print(sorted(path.name for path in pathlib.Path({str(home)!r}).glob('*')))\n"
        "print(sorted(path.name for path in pathlib.Path('/').iterdir() if not path.is_symlink()))\n"
        "print(pathlib.Path('/etc/passwd').read_text().count(':/bin/sh'))\n"
    )
    *exist, beside, root, shells = outcome.output.splitlines()
    assert exist == ["False"] * 4
    assert set(eval(beside)) <= ways
    system = {"dev", "etc", "lib", "lib64", "proc", "repo", "tmp", "usr", "bin", "sbin"}
    assert set(eval(root)) <= system | {part.parts[1] for part in own_python()}
    assert shells == "1"


def test_a_program_sees_and_kills_only_its_own_processes(python: RunPython) -> None:
    outcome = python(
        "import os, pathlib, signal\n"
        "print(len(list(pathlib.Path('/proc').glob('[0-9]*'))) < 8)\n"
        "os.kill(1, signal.SIGKILL); print('still here', flush=True)\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n"
        "os.kill(-1, signal.SIGKILL)\n"
    )
    assert outcome.output.startswith("True\nstill here\n")
    assert (outcome.ending, outcome.exit_code) == ("killed", 137)
    os.kill(os.getpid(), 0)


def test_daemons_end_with_the_run(python: RunPython) -> None:
    started = time.monotonic()
    outcome = python(
        "import os, signal, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "print('parent done')\n"
    )
    assert (outcome.ending, outcome.exit_code, outcome.output) == ("exited", 0, "parent done\n")
    assert time.monotonic() - started < 10


def test_collected_links_do_not_lead_out(python: RunPython, untouched: Path) -> None:
    outcome = python(
        "import os, pathlib\n"
        f"os.symlink({str(untouched / 'key.pem')!r}, 'link.xml')\n"
        "os.symlink('/etc/passwd', 'system.xml')\n"
        f"os.symlink({str(untouched)!r}, 'folder')\n"
        "os.mkfifo('pipe.xml')\n"
        "os.mkdir('directory.xml')\n"
        "pathlib.Path('good.xml').write_text('fine')\n",
        collect=("link.xml", "system.xml", "folder/key.pem", "pipe.xml", "directory.xml", "good.xml", "none.xml"),
    )
    assert dict(outcome.files) == {"good.xml": "fine"}


def test_a_huge_collected_file_is_ignored(python: RunPython) -> None:
    outcome = python("open('big.xml', 'wb').write(b'x' * (100 << 20))", collect=("big.xml",), seconds=60)
    assert (outcome.ending, dict(outcome.files)) == ("exited", {})


def test_a_full_disk_is_an_error_of_the_program(python: RunPython) -> None:
    outcome = python(
        "import pathlib\n"
        "total = 0\n"
        "for path in ('/repo/x', '/tmp/x', '/dev/shm/x'):\n"
        "    with open(path, 'wb', buffering=0) as stream:\n"
        "        try:\n"
        "            while True: total += stream.write(b'x' * (1 << 16))\n"
        "        except OSError as error: print(error)\n"
        "print(total <= (64 << 20) + (1 << 18))\n",
        disk_bytes=64 << 20,
    )
    assert outcome.output.splitlines() == ["[Errno 28] No space left on device"] * 3 + ["True"]


def test_address_space_is_limited(python: RunPython) -> None:
    code = "import mmap\nmmap.mmap(-1, {} << 30, prot=mmap.PROT_READ, flags=0x4022)\nprint('mapped')"
    assert python(code.format(40)).output == "mapped\n"
    assert "Cannot allocate memory" in python(code.format(80)).output


def test_undecodable_output_is_recorded_as_text(python: RunPython) -> None:
    outcome = python("import os; os.write(1, b'a\\x00\\xff\\xfeb\\\\ud800')")
    assert outcome.output.startswith("a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}")
    assert outcome.model_dump_json()
