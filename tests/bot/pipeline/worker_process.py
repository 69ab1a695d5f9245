"""``bouncer worker`` without the pauses that a real GitHub asks for; run as a process by tests.

With ``--phoenix N`` it keeps N workers up: each is a process of its own, forked again when it dies, so that a test
can kill many of them in a short time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from bot import settings
from bot.cli.running import configure_logs
from bot.cli.worker import work
from bot.pipeline.worker import Pace


def run() -> None:
    loaded = settings.load()
    configure_logs(loaded.log_level, loaded.secrets)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    alive = work(
        loaded,
        stop,
        Pace(concurrency=4, apart=0, polling_seconds=0.2, round_seconds=1.0),
        float(os.environ.get("DAY_SECONDS", 86_400)),
    )
    os._exit(0 if alive else 1)


def phoenix(count: int) -> None:
    # What takes long at a start is reading the program: once, here.
    from bot.github.app import GitHubApp  # noqa: F401

    running = 0
    while True:
        while running < count:
            if os.fork() == 0:
                run()
            running += 1
        os.wait()
        running -= 1


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--phoenix"]:
        phoenix(int(arguments[1]))
    run()


if __name__ == "__main__":
    main(sys.argv[1:])
