"""The other sandbox: a Docker engine, driven through the ``docker`` command, under the same limits.

For hosts without user namespaces, and for repositories that need more of a system than the host offers. What
Docker counts by itself (memory, processes) is left to it. The command line and the conversation with the
container are tested against a stand-in for ``docker``; no test here meets a real engine. A worker that is
killed leaves its container behind, labelled ``bouncer=sandbox``; bubblewrap leaves nothing.
"""

from __future__ import annotations

import csv
import io
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bot.core.errors import SandboxError
from bot.sandbox.launch import ENVIRONMENT, launch, pack
from bot.sandbox.monitor import Monitor
from bot.sandbox.mounts import WRITABLE_MOUNTS, own, to_mount
from bot.sandbox.protocol import IMAGE, Limits, ProgramResult, ProgramRun

_NOBODY = 65534
#: Seconds for a command of the engine, such as removing a container.
_TIMEOUT = 60
#: The client adds these from its own configuration, and they may hold a password.
_PROXIES = tuple(
    spelt
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")
    for spelt in (name, name.lower())
)


@dataclass(frozen=True)
class Docker:
    """Runs programs in containers of ``image``, which has a shell, GNU tar and the repository's interpreter."""

    name = "docker"
    host_programs = False
    path = ENVIRONMENT["PATH"]

    image: str = IMAGE
    program: str = "docker"
    #: A network of the engine that reaches neither this host nor private addresses, for set-up steps.
    network: str | None = None

    @property
    def surroundings(self) -> str:
        return f"{self.name} {self.image} {self.network}"

    def run(self, request: ProgramRun) -> ProgramResult:
        if shutil.which(self.program) is None:
            raise SandboxError(f"{self.program} is not installed")
        if request.network and self.network is None:
            raise SandboxError(
                "a set-up step needs a network that cannot reach this host, which Docker's own can: make one and "
                "name it in BOUNCER_SANDBOX_NETWORK, where none means that it has no network"
            )
        visible, changeable = to_mount(request.readable), to_mount(request.writable)
        user = os.geteuid() or _NOBODY
        own(changeable, user if os.geteuid() == 0 else None)
        packed = pack(request.workdir, request.files)
        with packed.stream:
            program, *words = launch(request, self.path, packed.size, processes=False)
            container = f"bouncer-{secrets.token_hex(8)}"
            network = self.network if request.network else None
            arguments = _isolation(container, user, request.limits, packed.size, network)
            arguments += [*_mounts(visible, "readonly"), *_mounts(changeable)]
            arguments += ["--entrypoint", program, self.image, *words]
            return self._run_container(container, arguments, packed.stream, request, changeable)

    def _run_container(
        self,
        container: str,
        arguments: Sequence[str],
        stdin: IO[bytes],
        request: ProgramRun,
        writable: Sequence[Path],
    ) -> ProgramResult:
        process = subprocess.Popen(  # noqa: S603
            [self.program, "run", *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

        def stop() -> None:
            self._ask("kill", "--signal", "KILL", container)
            process.kill()

        with process:
            try:
                monitor = Monitor(process, request, writable, stop)
                result = monitor.run()
                if not monitor.is_ready:
                    message = result.output.strip() or "no output"
                    raise SandboxError(f"docker could not start the program: {message}")
                was_killed = result.ending == "killed"
                state = self._ask("inspect", "--format", "{{.State.OOMKilled}}", container) if was_killed else ""
                if state.strip() == "true":
                    return result.model_copy(update={"ending": "memory", "exit_code": None})
                return result
            finally:
                process.kill()
                self._ask("rm", "--force", "--volumes", container)

    def _ask(self, *arguments: str) -> str:
        """Run a docker command and return its output; a container that is gone already is no error."""
        try:
            done = subprocess.run(  # noqa: S603
                [self.program, *arguments], capture_output=True, text=True, check=False, timeout=_TIMEOUT
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"docker {arguments[0]} did not answer in {_TIMEOUT} s") from error
        return done.stdout


def _isolation(container: str, user: int, limits: Limits, tree: int, network: str | None) -> list[str]:
    # Docker counts memory file systems as the container's memory.
    memory = str(limits.memory_bytes + limits.disk_bytes + tree)
    repo, tmp, _ = WRITABLE_MOUNTS
    return [
        "--name", container, "--label", "bouncer=sandbox", "--hostname", "sandbox",
        "--interactive", "--init", "--pull", "never",
        "--network", network or "none",
        "--read-only", "--user", f"{user}:{user}",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--pids-limit", str(limits.processes + 1), "--memory", memory, "--memory-swap", memory,
        "--ulimit", "core=0", "--oom-score-adj", "1000",
        "--tmpfs", f"{repo}:{_tmpfs(tree + limits.disk_bytes // 2, limits.entries)}",
        "--tmpfs", f"{tmp}:{_tmpfs(limits.disk_bytes * 3 // 8, limits.entries)}",
        "--shm-size", str(limits.disk_bytes // 8),
        *(() if network else (word for name in _PROXIES for word in ("--env", f"{name}="))),
    ]  # fmt: skip


def _tmpfs(size: int, entries: int) -> str:
    return f"rw,exec,nosuid,nodev,mode=1777,size={size},nr_inodes={entries}"


def _mounts(folders: Sequence[Path], *options: str) -> Iterator[str]:
    for folder in folders:
        line = io.StringIO()
        # The option's value is a line of CSV: a comma in a path is quoted, not cut.
        csv.writer(line, lineterminator="").writerow(
            ["type=bind", f"source={folder}", f"target={folder}", *options]
        )
        yield from ("--mount", line.getvalue())
