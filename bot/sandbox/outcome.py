"""From what was seen of a sandbox to the Outcome that is recorded. Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence

from bot.sandbox.protocol import Ending, Outcome
from bot.sandbox.watch import Watched


def outcome(argv: Sequence[str], watched: Watched, files: Mapping[str, str]) -> Outcome:
    """The outcome of running ``argv``."""
    ending = watched.ending or _own_ending(watched.exit_code)
    return Outcome(
        argv=tuple(argv),
        ending=ending,
        exit_code=_status(watched.exit_code) if ending in ("exited", "killed") else None,
        output=_text(watched.output),
        seconds=round(watched.seconds, 6),
        files={name: text.replace("\0", "\N{REPLACEMENT CHARACTER}") for name, text in files.items()},
    )


def _own_ending(exit_code: int) -> Ending:
    status = _status(exit_code)
    if status == 128 + signal.SIGXCPU:  # the kernel's answer to too much CPU time
        return "timeout"
    return "killed" if status == 128 + signal.SIGKILL else "exited"


def _status(exit_code: int) -> int:
    """A shell's way to write a death by signal."""
    return 128 - exit_code if exit_code < 0 else exit_code


def _text(data: bytes) -> str:
    # A database column of text takes no NUL.
    return data.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
