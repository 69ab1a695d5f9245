"""A set-up step reaches public addresses only. The test server has one, inside this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, missing

pytestmark = [pytest.mark.debian("bubblewrap"), pytest.mark.debian("slirp4netns")]

#: A replacement of the internet: a network namespace with an address of documentation, behind a router of the
#: worker, which also has its own namespace. No packet can leave this machine.
_INTERNET = """\
set -eu
mount -t tmpfs -o mode=0755 devices /mnt
mknod /mnt/tun c 10 200
chmod "$5" /mnt/tun
mount --bind /mnt/tun /dev/net/tun
cd "$1"
ip link set lo up
unshare --net sh -c 'ip link set lo up && ip address add 203.0.113.10/32 dev lo && exec "$@"' server \
    "$2" -m http.server 8080 --bind 203.0.113.10 --directory "$3" >/dev/null 2>&1 &
server=$!
trap 'kill $server' EXIT
while [ "$(readlink /proc/$server/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add here type veth peer name there netns $server || exit 77
ip address add 10.77.0.1/30 dev here
ip link set here up
nsenter --net=/proc/$server/ns/net sh -c 'ip address add 10.77.0.2/30 dev there && ip link set there up'
ip route add default via 10.77.0.2
"$2" -c "$4"
"""
_WORKER = """\
import socket, time
from pathlib import Path
from bot.sandbox.bubblewrap import Bubblewrap
from bot.sandbox.protocol import Limits, ProgramRun
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    try: socket.create_connection(("203.0.113.10", 8080), timeout=5).close()
    except OSError: time.sleep(0.05)
    else: break
for network in (True, False):
    argv, limits = ["python3", "-c", {code!r}], Limits(seconds=60)
    print(Bubblewrap().run(ProgramRun(argv, Path({workdir!r}), limits, network=network)).output)
"""
_DOWNLOAD = """\
import urllib.request
for address in ("203.0.113.10", "10.77.0.1", "10.77.0.2"):
    try: print(len(urllib.request.urlopen(f"http://{address}:8080/wheel", timeout=20).read()))
    except OSError as error: print(type(error.reason).__name__, error.reason.errno)
"""


@pytest.mark.parametrize("device_mode", ["600", "666"], ids=["tun for root", "tun for all"])
def test_a_set_up_downloads_from_a_public_address_and_from_no_other(
    project: Path, tmp_path: Path, device_mode: str
) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
        pytest.skip("making network namespaces is for root alone")
    served = tmp_path / "served"
    served.mkdir()
    (served / "wheel").write_bytes(bytes(3_000_000))
    worker = _WORKER.format(code=_DOWNLOAD, workdir=str(project))
    words = ["unshare", "--net", "--mount", "sh", "-c", _INTERNET, "internet", str(ROOT), sys.executable]
    words += [str(served), worker, device_mode]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode == 77:
        missing(f"this kernel has no virtual Ethernet: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    no_route, unreachable = "OSError 113", "OSError 101"
    assert done.stdout.split("\n\n") == [
        f"3000000\n{no_route}\n{no_route}",
        f"{unreachable}\n{unreachable}\n{unreachable}",
        "",
    ]
