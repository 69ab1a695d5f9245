"""The way of one bounced issue through the program: files, functions, and the longest chain of modules.

Web server and worker run as processes with a profiler that notes every call of a function of ``bot`` (a template
in ``bot/models/prompts`` is a file with one) between the delivery and its comment, the rounds that a worker makes
meanwhile included. Start-up is over by then: what runs only there is not counted. A hop is a call from a module
into another; counted is the longest chain of them in the web server and in the worker, from the bytes to GitHub,
the command line's frames at the bottom of a process included. Of the web server's processes, of which one takes
the delivery, the one with the longest chain stands for all.

``python -m tests.bench path files`` lists the files, with the functions that ran in each.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from tests.bot.pipeline.rig import REPOSITORY, Rig, rigged, wait

#: Runs at the start of each process: notes calls while the file ``on`` is there.
PROFILER = """
import atexit, json, os, sys, threading, time
folder = os.environ["BOUNCER_PATH_FOLDER"]
package = os.environ["BOUNCER_PATH_PACKAGE"]
seen, chain, on = set(), [], [False]
role = "web" if "web" in sys.orig_argv else "worker"

def note(frame, event, _argument):
    if not on[0] or event != "call":
        return
    code = frame.f_code
    if not code.co_filename.startswith(package) or code.co_name.startswith("<"):
        return
    seen.add((code.co_filename, code.co_qualname))
    modules = []
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(package) and (not modules or modules[-1] != name):
            modules.append(name)
        frame = frame.f_back
    if len(modules) > len(chain):
        chain[:] = modules[::-1]

def watch():
    while True:
        present = os.path.exists(folder + "/on")
        if on[0] and not present:
            on[0] = False
            with open(f"{folder}/{os.getpid()}.json", "w") as file:
                json.dump({"role": role, "seen": sorted(seen), "chain": chain}, file)
        on[0] = present
        time.sleep(0.02)

if "-c" not in sys.argv[:1]:
    sys.setprofile(note)
    threading.setprofile(note)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: threading.Thread(target=watch, daemon=True).start())
"""


def main() -> None:
    """Measure and print."""
    package = Path(__file__).resolve().parents[2] / "bot"
    with tempfile.TemporaryDirectory() as place, rigged(Path(place)) as rig:
        folder = Path(place)
        (folder / "sitecustomize.py").write_text(PROFILER)
        rig.environment |= {
            "PYTHONPATH": f"{folder}:{package.parent}",
            "BOUNCER_PATH_FOLDER": place,
            "BOUNCER_PATH_PACKAGE": f"{package}/",
        }
        rig.start("bot", "web")  # no forks of a process that is up: the profiler has to start first
        rig.start("tests.bot.pipeline.worker_process")
        wait(rig.ready, 60, "web and worker up")
        _bounce(rig)
        (folder / "on").touch()
        time.sleep(0.2)
        _bounce(rig)
        (folder / "on").unlink()
        time.sleep(1)
        notes = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    calls = {tuple(item) for note in notes for item in note["seen"]}
    files = {file for file, _ in calls}
    if "files" in sys.argv:
        for file in sorted(files):
            names = sorted(name for here, name in calls if here == file)
            lines = len(Path(file).read_text().splitlines())
            print(f"{Path(file).relative_to(package)} ({lines}): {', '.join(names)}")
    print(f"one bounced issue: {len(files)} files, {len(calls)} functions")
    hops = 0
    for role in ("web", "worker"):
        chain = max((note["chain"] for note in notes if note["role"] == role), key=len)
        hops += len(chain) - 1
        print(
            f"{role}, {len(chain) - 1} hops: {' > '.join(str(Path(item).relative_to(package)) for item in chain)}"
        )
    print(f"hops in all: {hops}")


def _bounce(rig: Rig) -> None:
    number = rig.github.open_issue(REPOSITORY, "Broken", "It does not work.")
    assert rig.deliver("issues", rig.opened(number), f"path-{number}") == 202
    wait(lambda: rig.github.comments(REPOSITORY, number), 60, "the comment")


if __name__ == "__main__":
    main()
