"""The network of a set-up step: its own namespace, and user-mode networking that leads to public addresses only.

slirp4netns carries the traffic. Routes in the namespace refuse this host, its networks and all addresses that are
not public; the program may not change them. There is no IPv6.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from bot.core.errors import SandboxError

#: An address range of documentation, which no network has: the namespace's own side.
_CIDR = "198.51.100.0/24"
NAMESERVER = "198.51.100.3"
#: Not public: special-purpose ranges of RFC 6890, multicast and reserved addresses.
_CLOSED = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
)  # fmt: skip
_TUN = Path("/dev/net/tun")
_NS_GET_USERNS = 0xB701
#: Seconds that namespace and network get to be ready.
_TIMEOUT = 20.0


def missing() -> str | None:
    """Return why set-up steps can have no network here, in one line; None if they can."""
    for program, package in (("slirp4netns", "slirp4netns"), ("ip", "iproute2"), ("nsenter", "util-linux")):
        if _find_program(program) is None:
            return f"{program} is not installed (Debian, Ubuntu: apt-get install {package})"
    if not os.access(_TUN, os.R_OK | os.W_OK):
        return f"{_TUN} cannot be opened by this user (in a container: --device {_TUN})"
    return None


def _find_program(program: str) -> str | None:
    return shutil.which(program, path=f"{os.defpath}:/usr/sbin:/sbin")


@dataclass
class Gate:
    """Delays bwrap until its network is ready; ``resources`` closes the descriptors."""

    resources: ExitStack
    descriptors: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        why = missing()
        if why is not None:
            raise SandboxError(
                f"a set-up step cannot have a network of its own: {why}; BOUNCER_SANDBOX_NETWORK=none runs "
                "set-up steps without any"
            )
        self._info_pipe, self._info_write = self._pipe()
        self._waits, self._opens = self._pipe()
        self.descriptors += [self._info_write, self._waits]

    @property
    def arguments(self) -> list[str]:
        return ["--info-fd", str(self._info_write), "--block-fd", str(self._waits)]

    @contextmanager
    def connected(self, user: int | None) -> Iterator[None]:
        """Connect the sandbox that was started with ``arguments``, as ``user``, and let it begin."""
        os.close(self._info_write)
        pid = self._child()
        if pid is None:  # bwrap ended by itself and printed the reason
            yield
            return
        _wait_for_users(pid)
        net = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.resources.callback(os.close, net)
        owner = fcntl.ioctl(net, _NS_GET_USERNS)
        self.resources.callback(os.close, owner)
        with _holder(net, owner, user) as holder, _carrier(holder, user):
            _close_routes(net, owner, user)
            os.write(self._opens, b"1")
            yield

    def _child(self) -> int | None:
        text, deadline = b"", time.monotonic() + _TIMEOUT
        while select.select([self._info_pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = os.read(self._info_pipe, 4096)
            text += data
            if not data or b"}" in text:
                return int(json.loads(text)["child-pid"]) if text else None
        raise SandboxError("bubblewrap did not say which process it started")

    def _pipe(self) -> tuple[int, int]:
        reads, writes = os.pipe2(os.O_CLOEXEC)
        for descriptor in (reads, writes):
            self.resources.callback(_close, descriptor)
        return reads, writes


def _wait_for_users(pid: int) -> None:
    """Wait until the namespace has users: a process that enters it earlier has no rights there."""
    deadline = time.monotonic() + _TIMEOUT
    while not Path(f"/proc/{pid}/uid_map").read_text().strip():
        if time.monotonic() > deadline:
            raise SandboxError("bubblewrap did not set up its user namespace")
        time.sleep(0.001)


def _close(descriptor: int) -> None:
    with suppress(OSError):  # closed before: bwrap's end of the pipe
        os.close(descriptor)


@contextmanager
def _holder(net: int, owner: int, user: int | None) -> Iterator[int]:
    """Keep a process in both namespaces until the block ends. Yield its id.

    bwrap itself enters a namespace without a root user. slirp4netns would follow it there and fail.
    """
    process = subprocess.Popen(  # noqa: S603
        [*_enter(net, owner), "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.defpath},
        pass_fds=(net, owner),
        **_as_user(user),
    )
    with process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"1")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], _TIMEOUT)[0] or process.stdout.read(1) != b"1":
                raise SandboxError("the network namespace of a set-up step cannot be entered")
            yield process.pid
        finally:
            process.kill()


def _enter(net: int, owner: int) -> list[str]:
    return ["nsenter", f"--user=/proc/self/fd/{owner}", f"--net=/proc/self/fd/{net}", "--preserve-credentials"]


def _as_user(user: int | None) -> dict[str, Any]:
    """Arguments of subprocess: run as ``user`` in no other group; None: as this process."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": ()}


@contextmanager
def _carrier(pid: int, user: int | None) -> Iterator[None]:
    """Run slirp4netns for the namespaces of ``pid`` until the block ends."""
    reads, writes = os.pipe2(os.O_CLOEXEC)
    # If only root may open the device, slirp4netns starts as root and drops its rights itself.
    as_user = user if _TUN.stat().st_mode & stat.S_IWOTH else None
    command = ["slirp4netns", "--configure", "--disable-host-loopback", f"--cidr={_CIDR}", f"--ready-fd={writes}"]
    command += ["--enable-sandbox", "--enable-seccomp", str(pid), "tap0"]
    process = subprocess.Popen(  # noqa: S603
        [_find_program("slirp4netns") or command[0], *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        env={"PATH": os.defpath},
        pass_fds=(writes,),
        **_as_user(as_user),
    )
    os.close(writes)
    with process:
        try:
            ready = select.select([reads], [], [], _TIMEOUT)[0] and os.read(reads, 1) == b"1"
            if not ready:
                process.kill()
                message = (process.stderr.read() if process.stderr else b"").decode(errors="replace").strip()
                raise SandboxError(f"slirp4netns could not connect a set-up step: {message or 'no output'}")
            yield
        finally:
            os.close(reads)
            process.kill()


def _close_routes(net: int, owner: int, user: int | None) -> None:
    # Only the user that started bubblewrap is root in the namespace that owns the network.
    lines = "".join(f"route add unreachable {network}\n" for network in (*_CLOSED, *_own_networks()))
    done = subprocess.run(  # noqa: S603
        [*_enter(net, owner), _find_program("ip") or "ip", "-batch", "-"],
        input=lines.encode(),
        capture_output=True,
        check=False,
        env={"PATH": os.defpath},
        pass_fds=(net, owner),
        **_as_user(user),
    )
    if done.returncode != 0:
        raise SandboxError(f"routes of a set-up step cannot be closed: {done.stderr.decode(errors='replace')}")


def _own_networks() -> tuple[str, ...]:
    """Return the IPv4 networks of this host, except loopback, which is the program's own inside."""
    command = [_find_program("ip") or "ip", "-4", "-json", "address"]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise SandboxError("the addresses of this host cannot be read")
    entries = [entry for interface in json.loads(done.stdout) for entry in interface.get("addr_info", ())]
    networks = [IPv4Network(f"{entry['local']}/{entry['prefixlen']}", strict=False) for entry in entries]
    closed_networks = [IPv4Network(network) for network in _CLOSED]
    return tuple(
        str(network)
        for network in dict.fromkeys(networks)
        if not network.is_loopback and not any(network.subnet_of(other) for other in closed_networks)
    )
