"""Logs are JSON objects, or text on a terminal, without secrets; all threads share one arena of memory."""

from __future__ import annotations

import io
import json
import logging
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from bot.cli.running import configure_logs

CANARY = "canary-1f3870be274f6c49b3e31a0c6728957f"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def log_output(request):
    """Return a function that reads the log; logging is restored afterwards."""
    stream = getattr(request, "param", io.StringIO)()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    config = structlog.get_config()
    configure_logs("DEBUG", [CANARY], stream)
    yield stream.getvalue
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    for handler in before[0]:
        root.addHandler(handler)
    root.setLevel(before[1])
    structlog.configure(**config)


def test_a_line_is_one_json_object_with_what_is_bound(log_output):
    with structlog.contextvars.bound_contextvars(delivery="d-1"):
        structlog.get_logger("bot").info("decided", verdict="VAGUE", seconds=0.5, labels=("a", "b"))
    line = json.loads(log_output())
    del line["timestamp"]
    assert line == {
        "event": "decided",
        "verdict": "VAGUE",
        "seconds": 0.5,
        "labels": ["a", "b"],
        "delivery": "d-1",
        "level": "info",
    }


@pytest.mark.parametrize("log_output", [Terminal], indirect=True)
def test_on_a_terminal_a_line_is_text(log_output):
    structlog.get_logger("bot").info("decided", verdict="VAGUE", key=CANARY)
    assert re.search(r"\[info +\] decided +key=\S+ verdict=VAGUE\n", log_output())
    assert CANARY not in log_output()


def test_secrets_are_taken_out_of_every_value_however_deep(log_output):
    log = structlog.get_logger("bot")
    log.info(f"event {CANARY}", value=CANARY, deep={"a": [{"b": CANARY}]}, other=Path(f"/x/{CANARY}"))
    try:
        raise ValueError(f"bad key {CANARY}")
    except ValueError:
        log.exception("failed")
    log.warning("shape", token="ghp_" + "a1B2" * 9, url="postgresql://me:hush@db/x", half="\ud800")
    text = log_output()
    assert CANARY not in text
    assert "a1B2" not in text
    assert "hush" not in text
    assert len(text.splitlines()) == 3
    assert all(json.loads(line) for line in text.splitlines())


def test_libraries_log_through_the_same_door(log_output):
    logging.getLogger("some.library").warning("refused with %s", CANARY)
    logging.getLogger("dbos").info("our cloud is great")
    (line,) = map(json.loads, log_output().splitlines())
    assert line["event"] == "refused with REDACTED"
    assert line["logger"] == "some.library"


#: Has eight threads allocate at the same time, then writes what glibc says of its arenas.
_ALLOCATE = """
import ctypes, sys, threading
from bot.cli import share_heap

if sys.argv[2] == "shared":
    share_heap()
barrier = threading.Barrier(8)

def allocate():
    memory = bytearray(50_000)
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no arenas")
def test_all_threads_allocate_from_one_arena(tmp_path: Path) -> None:
    arenas = {}
    for choice in ("shared", "by default"):
        file = tmp_path / f"{choice}.xml"
        subprocess.run([sys.executable, "-c", _ALLOCATE, str(file), choice], check=True)
        arenas[choice] = file.read_text().count("<heap nr=")
    assert arenas["shared"] == 1
    assert arenas["by default"] > 1


#: Keeps every tenth of many blocks of two pages, then writes the resident pages before and after.
_HOLES = """
from pathlib import Path
from bot.cli.running import return_free_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

blocks = [bytearray(8_000) for _ in range(20_000)]
kept = blocks[::10]
del blocks
before = resident()
return_free_memory()
print(before, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such call")
def test_free_pages_between_used_ones_are_returned() -> None:
    output = subprocess.run([sys.executable, "-c", _HOLES], check=True, capture_output=True, text=True).stdout
    before, after = map(int, output.split())
    assert before - after > 20_000
