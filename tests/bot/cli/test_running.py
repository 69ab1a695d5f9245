"""How a process is set up before its command runs."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

#: Has eight threads allocate at the same time, then writes what glibc says of its arenas.
_ALLOCATE = """
import ctypes, sys, threading
from bot.cli.running import share_memory_arena

if sys.argv[2] == "shared":
    share_memory_arena()
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
