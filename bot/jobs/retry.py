"""When to try again, and when to give up. Pure."""

from __future__ import annotations

#: Failures in a row after which a job is a dead letter: about an hour of an unreachable GitHub.
MAX_TRIES = 13
#: The same for errors that are most likely our own.
MAX_TRIES_BUG = 3

FIRST_SECONDS = 2.0
LONGEST_SECONDS = 15 * 60.0
#: No honest other side asks for more; GitHub's rate limits last an hour.
LONGEST_ASKED_SECONDS = 2 * 3600.0


def pause(tries: int, asked: float | None, jitter: float) -> float:
    """Seconds until the next try, after ``tries`` failures in a row.

    Doubles from two seconds to a quarter of an hour, but never earlier than the other side ``asked`` for.
    ``jitter`` in [0, 1) spreads jobs that failed together.
    """
    backoff = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** max(0, tries - 1))
    wait = max(backoff, min(asked or 0.0, LONGEST_ASKED_SECONDS))
    return wait + jitter * min(wait, 60.0) / 4
