"""Reading what a server sends without trusting it to end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator


class TooLarge(Exception):
    """More bytes came than are wanted."""


class TooSlow(Exception):
    """It was not complete in time, however steadily it drips."""


def bounded(chunks: Iterable[bytes], max_bytes: int, seconds: float) -> Iterator[bytes]:
    """The chunks of an answer, after decompression. Raises TooLarge or TooSlow."""
    deadline, size = time.monotonic() + seconds, 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise TooLarge(f"more than {max_bytes} bytes")
        if time.monotonic() > deadline:
            raise TooSlow(f"longer than {seconds:.0f} s")
        yield chunk
