"""``bouncer worker`` without the pauses that a real GitHub asks for; run as a process by tests."""

from __future__ import annotations

import os
import signal
import threading

from bot import settings
from bot.cli.running import configure_logs
from bot.cli.worker import work
from bot.jobs.worker import Pace


def main() -> None:
    loaded = settings.load()
    configure_logs(loaded)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    kept = work(loaded, stop, Pace(concurrency=4, debounce={}), apart=0.0)
    os._exit(0 if kept else 1)


if __name__ == "__main__":
    main()
