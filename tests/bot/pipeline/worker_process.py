"""``bouncer worker`` without the pauses that a real GitHub asks for; run as a process by tests.

With ``--phoenix N`` it keeps N workers up: each is a process of its own, forked again when it dies, so that tests
can kill many in a short time. With ``--die URL`` it ends with 9 in the middle of the first job that it gets, and
a test holds place 0. With ``--hold URL`` it takes no job: it prints its place, and keeps it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from bot import settings
from bot.cli.running import configure_logs
from bot.cli.worker import work
from bot.pipeline.queue import Queue
from bot.pipeline.store import open_database
from bot.pipeline.worker import Consumer, Pace, Recovery, take_lease


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


def die(url: str) -> None:
    database = open_database(url)
    lease = take_lease(database)
    assert lease.number == 1, lease.number
    Recovery(database, Queue(database), lease).report_alive()
    Consumer(database, lease.executor, lambda job: os._exit(9), Pace(polling_seconds=0.05))
    time.sleep(30)


def hold(url: str) -> None:
    lease = take_lease(open_database(url))
    print(lease.number, flush=True)
    time.sleep(60)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["--phoenix", count]:
            phoenix(int(count))
        case ["--die", url]:
            die(url)
        case ["--hold", url]:
            hold(url)
        case _:
            run()


if __name__ == "__main__":
    main(sys.argv[1:])
