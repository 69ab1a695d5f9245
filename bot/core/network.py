"""What a server sends is read without trusting it to end; and how long it asks to be left alone."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime


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


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that ``retry-after`` asks for, as a number or as a date; None where it says nothing readable."""
    if (milliseconds := _seconds(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _seconds(value)) is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(moment - (time.time() if now is None else now), 0.0)


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
