"""Measures pauses of the other threads of a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beats(every: float = 0.01) -> Iterator[Callable[[], float]]:
    """Measure the longest time in which another thread did not run, seconds."""
    longest, stop = 0.0, threading.Event()

    def beat() -> None:
        nonlocal longest
        last = time.monotonic()
        while not stop.wait(every):
            now = time.monotonic()
            longest, last = max(longest, now - last - every), now

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield lambda: longest
    finally:
        stop.set()
        thread.join()
