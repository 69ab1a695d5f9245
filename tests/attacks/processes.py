"""Runs commands as processes of their own that start quickly: a server that imported the program forks them."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["bot.cli.review", "bot.cli.bouncers", "bot.app", "bot.router"])


class Ended(NamedTuple):
    """The result of a command; a negative ``code`` is the signal that ended it."""

    code: int | None
    out: bytes
    err: bytes


def run(words: Sequence[str], folder: Path, stdin: bytes = b"", **environment: str) -> Ended:
    """``bouncer WORDS`` in ``folder``, with nothing in its environment but what is given."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "0").write_bytes(stdin)
        process = _FORKS.Process(target=_run, args=(tuple(words), str(folder), place, environment))
        process.start()
        process.join(60)
        if process.is_alive():
            process.kill()
            process.join()
        out, err = ((Path(place) / name).read_bytes() for name in "12")
        return Ended(process.exitcode, out, err)


def _run(words: Sequence[str], folder: str, place: str, environment: Mapping[str, str]) -> None:
    # What multiprocessing changed for its own sake is as in a fresh process again.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)):
        os.dup2(os.open(f"{place}/{number}", flags, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = (open(n, mode) for n, mode in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115, PTH123
    os.chdir(folder)
    # What is read without end or bound ends here, and not with the machine.
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    os.environ.clear()
    os.environ.update({"PATH": "/usr/bin:/bin", "HOME": folder, "LANG": "C.UTF-8", **environment})
    from bot.cli import main

    try:
        main(list(words))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
