"""Reads as much of a repository's past as calibration needs, and no more: newest first, in few requests.

It waits where GitHub asks for it, and reads nothing twice after a kill.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bot.calibration.fates import Undoings, of_issue
from bot.core.errors import ForgeError, OperatorError, TransientError
from bot.core.subjects import Repository
from bot.github.history import GitHubChronicle
from bot.github.protocol import ListPage, Message, Past, PastIssue, PastPull, PullDiff

T = TypeVar("T")
Read = TypeVar("Read", bound=BaseModel)

#: Of the pages that are read, for each page of cases that are wanted: many issues tell nothing.
_PAGES = 4
_PER_PAGE = 50
#: Pages of commits that are searched for reverts.
_COMMITS = 25
#: How often one request is tried where GitHub does not say when to come back.
TRIES = 6
#: Seconds that one request is waited for in all; GitHub's own limits end within the hour.
LONGEST = 2 * 3600.0
#: What was read is taken for the present for so long.
FRESH = timedelta(days=1)

#: Told what is read, how many cases were found, and how many are wanted.
Advance = Callable[[str, int, int], None]


class Journal:
    """What a command has done so far, a JSON object a line: killed at any moment, it goes on behind the last whole
    one. Safe to share between threads.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def rows(self) -> Iterator[dict[str, Any]]:
        """What was written before, oldest first; the end of a line that a kill cut off is no row.

        Raises OperatorError where the file cannot be read.
        """
        try:
            content = self._file.read_bytes() if self._file.is_file() else b""
        except OSError as error:
            raise OperatorError(f"{self._file}: {error.strerror}") from None
        if content and not content.endswith(b"\n"):
            self._write(b"\n")
        for line in content.split(b"\n"):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row

    def append(self, row: dict[str, Any]) -> None:
        """Write one line. Raises OperatorError where the disk refuses it."""
        self._write(json.dumps(row).encode("ascii") + b"\n")

    def clear(self) -> None:
        """Forget everything."""
        self._file.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        try:
            with self._lock, self._file.open("ab") as out:
                out.write(line)
        except OSError as error:
            raise OperatorError(f"{self._file}: {error.strerror}") from None


class SteadyChronicle:
    """A repository's past, read patiently. ``tell`` is told why it waits, ``requests`` counts those to GitHub.

    What was read is in the journal; one that was begun longer ago than ``FRESH`` is begun anew.
    """

    def __init__(
        self,
        chronicle: GitHubChronicle,
        journal: Journal,
        now: datetime,
        tell: Callable[[str], None],
        requests: Callable[[], int],
    ) -> None:
        self._chronicle, self._journal, self._tell = chronicle, journal, tell
        self._count = requests
        self._known: dict[str, Any] = {}
        self._before = 0
        #: When the reading began: the moment that the export is of.
        self.began = now
        for row in journal.rows():
            self._take(row)
        if now - self.began > FRESH:
            journal.clear()
            self._known, self._before, self.began = {}, 0, now
        if not self._known:
            journal.append({"began": now.isoformat()})

    @property
    def requests(self) -> int:
        """To GitHub, those before a kill too."""
        return self._before + self._count()

    def about(self) -> Repository:
        return self._once("about", Repository, self._chronicle.about)

    def diff(self, number: int) -> PullDiff:
        return self._once(f"diff {number}", PullDiff, lambda: self._chronicle.diff(number))

    def closed_issues(self, after: str | None) -> ListPage[PastIssue]:
        return self._once(f"issues {after}", ListPage[PastIssue], lambda: self._chronicle.closed_issues(after))

    def merged_pulls(self, after: str | None) -> ListPage[PastPull]:
        return self._once(f"pulls {after}", ListPage[PastPull], lambda: self._chronicle.merged_pulls(after))

    def messages(self, since: datetime, after: str | None) -> ListPage[Message]:
        asked = f"messages {since.isoformat()} {after}"
        return self._once(asked, ListPage[Message], lambda: self._chronicle.messages(since, after))

    def _take(self, row: dict[str, Any]) -> None:
        if "began" in row:
            self.began = datetime.fromisoformat(row["began"])
        elif {"asked", "answer", "requests"} <= set(row):
            self._known[row["asked"]] = row["answer"]
            self._before = row["requests"]

    def _once(self, asked: str, kind: type[Read], ask: Callable[[], Read]) -> Read:
        if asked in self._known:
            # What another version wrote is asked again.
            with suppress(ValidationError):
                return kind.model_validate(self._known[asked])
        answer = self._patiently(ask)
        plain = answer.model_dump(mode="json", exclude_defaults=True)
        self._journal.append({"asked": asked, "answer": plain, "requests": self.requests})
        return answer

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Tries again: as long as GitHub names a time to wait for, and a few times where it names none."""
        tries, waited = 1, 0.0
        while True:
            try:
                return ask()
            except TransientError as error:
                if tries == TRIES or waited > LONGEST:
                    raise
                if error.wait is None:
                    tries += 1
                wait = float(2**tries) if error.wait is None else error.wait
                self._tell(f"{error}. Waiting {wait:.0f} s, then going on.")
                time.sleep(wait)
                waited += wait


def export(chronicle: SteadyChronicle, limit: int, asking: Iterable[str], advance: Advance) -> Past:
    """The past with up to ``limit`` issues and ``limit`` pull requests whose fate is known.

    Raises what the forge raises.
    """
    now = chronicle.began
    repository = chronicle.about()
    issues = _issues(chronicle, limit, tuple(asking), advance)
    pulls = _pulls(chronicle, limit, advance)
    messages = _messages(chronicle, min((each.merged_at for each in pulls), default=now))
    pulls = _with_diffs(chronicle, pulls, Undoings(pulls, messages, now), limit, advance)
    return Past(
        repository=repository,
        exported_at=now,
        limit=limit,
        requests=chronicle.requests,
        issues=issues,
        pulls=pulls,
        messages=messages,
    )


def _pages(read: Callable[[str | None], ListPage[T]], most: int) -> Iterator[tuple[T, ...]]:
    after: str | None = None
    for _ in range(most):
        page = read(after)
        yield page.items
        after = page.after
        if after is None:
            return


def _most(limit: int) -> int:
    return _PAGES * -(-limit // _PER_PAGE)


def _issues(
    chronicle: SteadyChronicle, limit: int, asking: tuple[str, ...], advance: Advance
) -> tuple[PastIssue, ...]:
    found: list[PastIssue] = []
    for page in _pages(chronicle.closed_issues, _most(limit)):
        found += (each for each in page if each.whole and of_issue(each, asking) is not None)
        advance("issues", min(len(found), limit), limit)
        if len(found) >= limit:
            break
    return tuple(found[:limit])


def _pulls(chronicle: SteadyChronicle, limit: int, advance: Advance) -> tuple[PastPull, ...]:
    """All merged pull requests down to the oldest that may be judged: each may have undone an older one."""
    found: list[PastPull] = []
    for page in _pages(chronicle.merged_pulls, _most(limit)):
        found += page
        known = Undoings(found, (), chronicle.began)
        old = sum(_tells(each, known) for each in found)
        advance("pull requests", min(old, limit), limit)
        if old >= limit:
            break
    return tuple(found)


def _tells(past: PastPull, known: Undoings) -> bool:
    return past.whole and bool(past.issues) and known.of_pull(past) is not None


def _messages(chronicle: SteadyChronicle, since: datetime) -> tuple[Message, ...]:
    pages = _pages(lambda after: chronicle.messages(since, after), _COMMITS)
    return tuple(each for page in pages for each in page if "revert" in each.text.lower())


def _with_diffs(
    chronicle: SteadyChronicle, found: Sequence[PastPull], known: Undoings, limit: int, advance: Advance
) -> tuple[PastPull, ...]:
    """The same pull requests; those that are to be judged with their diffs, one request each."""
    read = 0
    pulls: list[PastPull] = []
    for each in found:
        if read < limit and _tells(each, known):
            read += 1
            advance("patches", read, limit)
            # Too large, or gone: it cannot be judged, and the others can.
            with suppress(ForgeError):
                each = each.model_copy(update={"diff": chronicle.diff(each.pull.number)})
        pulls.append(each)
    return tuple(pulls)
