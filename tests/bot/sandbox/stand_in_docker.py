"""A stand-in for the ``docker`` command: it starts the program under bubblewrap and records its arguments.

Its folder, named by the variable STAND_IN, holds ``calls.jsonl`` and one file a container with its process id.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

FOLDER = Path(os.environ["STAND_IN"])
FLAGS = {"--interactive", "--init", "--read-only"}
IMAGES = {os.environ["STAND_IN_IMAGE"]}


def run(arguments: list[str]) -> int:
    options: list[tuple[str, str]] = []
    while arguments[0].startswith("--"):
        name = arguments.pop(0)
        options.append((name, "" if name in FLAGS else arguments.pop(0)))
    if arguments.pop(0) not in IMAGES:
        print("docker: No such image", file=sys.stderr)
        return 125
    command = [dict(options)["--entrypoint"], *arguments]
    bwrap = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--uid", "1000", "--gid", "1000"]
    bwrap += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    bwrap += [word for name in ("bin", "lib", "lib64") for word in ("--symlink", f"usr/{name}", f"/{name}")]
    for name, value in options:
        if name == "--tmpfs":
            bwrap += ["--tmpfs", value.partition(":")[0]]
        if name == "--mount":
            parts = dict(part.partition("=")[::2] for part in next(csv.reader([value])))
            bwrap += ["--ro-bind" if "readonly" in parts else "--bind", parts["source"], parts["target"]]
    process = subprocess.Popen([*bwrap, "--", *command], env={"PATH": os.defpath})
    (FOLDER / dict(options)["--name"]).write_text(str(process.pid))
    code = process.wait()
    return 128 - code if code < 0 else code


def main() -> int:
    verb, *arguments = sys.argv[1:]
    with (FOLDER / "calls.jsonl").open("a") as stream:
        stream.write(json.dumps([verb, *arguments]) + "\n")
    container = FOLDER / arguments[-1]
    if verb == "run":
        return run(arguments)
    if verb == "kill":
        os.kill(int(container.read_text()), signal.SIGKILL)
    if verb == "inspect":
        print("true" if (FOLDER / "out-of-memory").exists() else "false")
    if verb == "rm":
        container.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
