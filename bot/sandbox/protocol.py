"""What a sandbox promises: run one program, cut off from everything, and say what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field

from bot.frozen import Frozen

#: How a run ended: on its own (``exited``) or at the limit that is named.
Ending = Literal["exited", "timeout", "memory", "output", "killed"]


class Limits(Frozen):
    """Caps on one run; each is enforced from outside the program."""

    seconds: float = Field(120.0, gt=0, description="wall-clock time, seconds")
    cpu_seconds: int = Field(120, gt=0, description="CPU time, seconds, per process")
    memory_bytes: int = Field(2 << 30, gt=0, description="memory, bytes")
    processes: int = Field(128, gt=0, description="processes and threads at once")
    disk_bytes: int = Field(512 << 20, gt=0, description="what may be written, bytes")
    output_bytes: int = Field(1 << 20, gt=0, description="standard output and error together, bytes")


class Outcome(Frozen):
    """What came of one run. A program that fails is an outcome, not an error."""

    argv: tuple[str, ...]
    ending: Ending
    exit_code: int | None = Field(description="None where a limit ended the run")
    output: str = Field(description="output and error, interleaved, cut at the cap, undecodable bytes replaced")
    seconds: float = Field(ge=0)
    files: Mapping[str, str] = Field(
        default_factory=dict, description="text of the ``collect``ed files that exist, by relative path"
    )


class Sandbox(Protocol):
    """Runs programs with no network, no tokens and an allow-listed environment."""

    @property
    def name(self) -> str:
        """The runner, as recorded in evidence: ``bubblewrap`` or ``docker``."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        workdir: Path,
        files: Mapping[str, str],
        limits: Limits,
        env: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
        collect: Sequence[str] = (),
        network: bool = False,
    ) -> Outcome:
        """Run ``argv`` in a throw-away copy-on-write view of ``workdir`` with ``files`` written on top.

        ``workdir`` itself is never changed. ``files`` maps paths relative to it to text. ``env`` is added to
        a minimal environment; nothing of the operator's environment is passed on. ``readable`` are further
        host folders that the program may read (an interpreter, a virtual environment); everything else of
        the host but the system's own programs and libraries is invisible. ``collect`` names files
        relative to the workdir that are read back after the run. ``network`` is for the repository's own
        set-up step only.

        Raises SandboxError where the runner itself is missing or breaks.
        """
        ...
