"""Reads as much of a repository's past as calibration needs, and no more: newest first, in few requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from bot.calibration.fates import Undoings, of_issue
from bot.errors import ForgeError
from bot.forge.past import Chronicle, Message, Past, PastIssue, PastPull

#: Of the pages that are read, for each page of cases that are wanted: many issues tell nothing.
_PAGES = 4
_PER_PAGE = 50
#: Pages of commits that are searched for reverts.
_COMMITS = 25

#: Told what is read, how many cases were found, and how many are wanted.
Advance = Callable[[str, int, int], None]


def export(
    chronicle: Chronicle,
    limit: int,
    now: datetime,
    asking: Iterable[str],
    advance: Advance,
    requests: Callable[[], int],
) -> Past:
    """The past with up to ``limit`` issues and ``limit`` pull requests whose fate is known.

    ``requests`` counts the requests so far. Raises what the forge raises.
    """
    repository = chronicle.about()
    issues = _issues(chronicle, limit, tuple(asking), advance)
    pulls = _pulls(chronicle, limit, now, advance)
    messages = _messages(chronicle, min((each.merged_at for each in pulls), default=now))
    pulls = _with_diffs(chronicle, pulls, Undoings(pulls, messages, now), limit, advance)
    return Past(
        repository=repository,
        exported_at=now,
        limit=limit,
        requests=requests(),
        issues=issues,
        pulls=pulls,
        messages=messages,
    )


def _most(limit: int) -> int:
    return _PAGES * -(-limit // _PER_PAGE)


def _issues(chronicle: Chronicle, limit: int, asking: tuple[str, ...], advance: Advance) -> tuple[PastIssue, ...]:
    found: list[PastIssue] = []
    after: str | None = None
    for _ in range(_most(limit)):
        page = chronicle.closed_issues(after)
        found += (each for each in page.items if each.whole and of_issue(each, asking) is not None)
        advance("issues", min(len(found), limit), limit)
        after = page.after
        if after is None or len(found) >= limit:
            break
    return tuple(found[:limit])


def _pulls(chronicle: Chronicle, limit: int, now: datetime, advance: Advance) -> tuple[PastPull, ...]:
    """All merged pull requests down to the oldest that may be judged: each may have undone an older one."""
    found: list[PastPull] = []
    after: str | None = None
    for _ in range(_most(limit)):
        page = chronicle.merged_pulls(after)
        found += page.items
        known = Undoings(found, (), now)
        old = sum(bool(each.issues) and each.whole and known.of_pull(each) is not None for each in found)
        advance("pull requests", min(old, limit), limit)
        after = page.after
        if after is None or old >= limit:
            break
    return tuple(found)


def _messages(chronicle: Chronicle, since: datetime) -> tuple[Message, ...]:
    found: list[Message] = []
    after: str | None = None
    for _ in range(_COMMITS):
        page = chronicle.messages(since, after)
        found += (each for each in page.items if "revert" in each.text.lower())
        after = page.after
        if after is None:
            break
    return tuple(found)


def _with_diffs(
    chronicle: Chronicle, found: Sequence[PastPull], known: Undoings, limit: int, advance: Advance
) -> tuple[PastPull, ...]:
    """The same pull requests; those that are to be judged with their diffs, one request each."""
    read = 0
    pulls: list[PastPull] = []
    for each in found:
        if read < limit and each.whole and each.issues and known.of_pull(each) is not None:
            read += 1
            advance("patches", read, limit)
            # Too large, or gone: it cannot be judged, and the others can.
            with suppress(ForgeError):
                each = each.model_copy(update={"diff": chronicle.diff(each.pull.number)})
        pulls.append(each)
    return tuple(pulls)
