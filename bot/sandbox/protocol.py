"""The interface of a sandbox: run one isolated program and return its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field

from bot.core.frozen import Frozen

#: The default image by digest (Python 3.12.14). For a newer one:
#:   docker buildx imagetools inspect python:3.12-slim --format '{{.Manifest.Digest}}'
IMAGE = "python:3.12.14-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea"

#: How a run ended: on its own (``exited``), at the limit that is named (``timeout`` is wall-clock or CPU time), or
#: by a SIGKILL that no limit sent (``killed``): the program killed itself, its launcher, or the kernel ran short.
Ending = Literal["exited", "timeout", "memory", "disk", "output", "killed"]

#: The copy of ``workdir``, in every runner: an editable install, which records its path, then works for every
#: checkout, and no output shows a path of the host.
WORKDIR = "/repo"

#: The largest checkout that is copied, bytes: a bomb of zeros in a repository must not fill the host's disk.
TREE_BYTES = 2 << 30
#: Total size of the files collected from a run, bytes.
COLLECT_BYTES = 16 << 20


class Limits(Frozen):
    """Caps on one run; each is enforced from outside the program."""

    seconds: float = Field(120.0, gt=0, description="wall-clock time, seconds")
    cpu_seconds: int = Field(120, gt=0, description="CPU time, seconds, per process")
    memory_bytes: int = Field(2 << 30, gt=0, description="memory, page tables included, bytes")
    processes: int = Field(128, gt=0, description="processes and threads at once, two for the launcher included")
    disk_bytes: int = Field(
        512 << 20,
        gt=0,
        description="what may be written, bytes: half beside the work folder's own files, three eighths below "
        "/tmp, an eighth in shared memory; it is memory of the host while the program runs",
    )
    entries: int = Field(
        500_000,
        gt=0,
        description="files, folders and links in each writable place: an empty one costs an inode and about 1 KiB",
    )
    output_bytes: int = Field(1 << 20, gt=0, description="standard output and error together, bytes")


@dataclass(frozen=True)
class ProgramRun:
    """A program to run, in a temporary copy of ``workdir`` at ``WORKDIR``, with ``files`` written on top.

    ``workdir`` itself is never changed, and its ``.git`` is not copied (a clone's configuration may hold a token).
    ``files`` maps paths relative to it to text. ``env`` is added to a minimal environment; the operator's
    environment is not passed on. ``readable`` are further host folders that the program may read (an environment
    that we made, the operator's folders) at their own paths; a repository never decides them. ``collect`` names
    files relative to the workdir that are read back after the run, if they have ``COLLECT_BYTES`` at most in all.

    ``writable`` host folders and ``network`` (to public addresses only, or none if the operator forbids it)
    are for the repository's own set-up step only.
    """

    argv: Sequence[str]
    workdir: Path
    limits: Limits
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    collect: Sequence[str] = ()
    network: bool = False


class ProgramResult(Frozen):
    """The result of one run. A program that fails is a result, not an error."""

    ending: Ending
    exit_code: int | None = Field(description="None if a limit ended the run; 128 + n after signal n")
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

    @property
    def host_programs(self) -> bool:
        """True if programs and interpreters are the host's own; False if the runner has its own system."""
        ...

    @property
    def surroundings(self) -> str:
        """The inputs of an environment made in the sandbox: runner, source of programs, network."""
        ...

    @property
    def path(self) -> str:
        """PATH inside the sandbox."""
        ...

    def run(self, request: ProgramRun) -> ProgramResult:
        """Run a program, which sees only what ``request`` and the operator's settings allow.

        Of the host it also sees the system's programs and libraries and the interpreter that runs this.

        Raises SandboxError if the runner itself is missing or breaks, or the work folder is over
        ``TREE_BYTES``.
        """
        ...
