"""Export a repository's history as far as calibration needs it: newest first, in few requests.

Wait as long as GitHub asks for. Nothing is read twice after a kill.
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
from bot.core.errors import ForgeError, OperatorError, TransientError, Unauthorized
from bot.core.subjects import Repository
from bot.github.history import GitHubChronicle
from bot.github.protocol import ListPage, Message, Past, PastIssue, PastPull, PullDiff

T = TypeVar("T")
Read = TypeVar("Read", bound=BaseModel)

#: Pages that are read at most, per page of cases that are wanted: many issues have no verdict.
_PAGES = 4
_PER_PAGE = 50
#: Pages of commits that are searched for reverts.
_COMMITS = 25
#: Tries of one request if GitHub does not say when to come back.
TRIES = 6
#: Seconds that one request waits in all; GitHub's own limits end within the hour.
LONGEST = 2 * 3600.0
#: An interrupted export is continued within this time, and started again after it.
FRESH = timedelta(days=1)

#: Called with the name of what is read, the number of cases so far, and the number that is wanted.
Advance = Callable[[str, int, int], None]


class Journal:
    """Progress of a command, one JSON object per line. Thread-safe.

    A command that was killed continues after the last complete line.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of earlier runs, oldest first. Skip a line that a kill cut off.

        Raises OperatorError if the file cannot be read.
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
        """Write one line. Raises OperatorError if the disk refuses it."""
        self._write(json.dumps(row).encode("ascii") + b"\n")

    def clear(self) -> None:
        self._file.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        try:
            with self._lock, self._file.open("ab") as out:
                out.write(line)
        except OSError as error:
            raise OperatorError(f"{self._file}: {error.strerror}") from None


class SteadyChronicle:
    """A repository's history that waits for GitHub's rate limits and keeps every answer in a journal.

    ``tell`` gets the reason for a wait, ``requests`` counts the requests to GitHub. A journal older than ``FRESH``
    is started again.
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
        #: When the export began: its point in time.
        self.began = now
        for row in journal.rows():
            if "began" in row:
                self.began = datetime.fromisoformat(row["began"])
            elif {"asked", "answer", "requests"} <= set(row):
                self._known[row["asked"]] = row["answer"]
                self._before = row["requests"]
        if now - self.began > FRESH:
            journal.clear()
            self._known, self._before, self.began = {}, 0, now
        if not self._known:
            journal.append({"began": now.isoformat()})

    @property
    def requests(self) -> int:
        """Requests to GitHub, including those before a kill."""
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
        key = f"messages {since.isoformat()} {after}"
        return self._once(key, ListPage[Message], lambda: self._chronicle.messages(since, after))

    def _once(self, key: str, kind: type[Read], ask: Callable[[], Read]) -> Read:
        if key in self._known:
            # An answer that another version wrote is requested again.
            with suppress(ValidationError):
                return kind.model_validate(self._known[key])
        answer = self._patiently(ask)
        plain = answer.model_dump(mode="json", exclude_defaults=True)
        self._journal.append({"asked": key, "answer": plain, "requests": self.requests})
        return answer

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Retry as long as GitHub names a time to wait, and a few times if it names none."""
        tries, waited = 1, 0.0
        while True:
            try:
                return ask()
            except TransientError as error:
                if tries == TRIES or waited > LONGEST or isinstance(error, Unauthorized):
                    raise
                if error.wait is None:
                    tries += 1
                wait = float(2**tries) if error.wait is None else error.wait
                self._tell(f"{error}. Waiting {wait:.0f} s, then going on.")
                time.sleep(wait)
                waited += wait


def export(chronicle: SteadyChronicle, limit: int, asking: Iterable[str], advance: Advance) -> Past:
    """Return the history with up to ``limit`` issues and ``limit`` pull requests whose outcome is known.

    Raises the errors of the forge.
    """
    now = chronicle.began
    repository = chronicle.about()
    labels = tuple(asking)
    issues: list[PastIssue] = []
    for page in _pages(chronicle.closed_issues, _most(limit)):
        issues += (issue for issue in page if issue.whole and of_issue(issue, labels) is not None)
        advance("issues", min(len(issues), limit), limit)
        if len(issues) >= limit:
            break
    pulls = _pulls(chronicle, limit, advance)
    since = min((pull.merged_at for pull in pulls), default=now)
    messages = tuple(
        message
        for page in _pages(lambda after: chronicle.messages(since, after), _COMMITS)
        for message in page
        if "revert" in message.text.lower()
    )
    pulls = _with_diffs(chronicle, pulls, Undoings(pulls, messages, now), limit, advance)
    return Past(
        repository=repository,
        exported_at=now,
        limit=limit,
        requests=chronicle.requests,
        issues=tuple(issues[:limit]),
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


def _pulls(chronicle: SteadyChronicle, limit: int, advance: Advance) -> tuple[PastPull, ...]:
    """Return all merged pull requests down to the oldest case: any of them may have reverted an older one."""
    pulls: list[PastPull] = []
    for page in _pages(chronicle.merged_pulls, _most(limit)):
        pulls += page
        undoings = Undoings(pulls, (), chronicle.began)
        cases = sum(_has_verdict(pull, undoings) for pull in pulls)
        advance("pull requests", min(cases, limit), limit)
        if cases >= limit:
            break
    return tuple(pulls)


def _has_verdict(past: PastPull, undoings: Undoings) -> bool:
    return past.whole and bool(past.issues) and undoings.of_pull(past) is not None


def _with_diffs(
    chronicle: SteadyChronicle, merged: Sequence[PastPull], undoings: Undoings, limit: int, advance: Advance
) -> tuple[PastPull, ...]:
    """Add the diffs of the pull requests that are cases, with one request per diff."""
    read = 0
    pulls: list[PastPull] = []
    for pull in merged:
        if read < limit and _has_verdict(pull, undoings):
            read += 1
            advance("patches", read, limit)
            # A diff that is too large or deleted makes one case impossible, not the others.
            with suppress(ForgeError):
                pull = pull.model_copy(update={"diff": chronicle.diff(pull.pull.number)})
        pulls.append(pull)
    return tuple(pulls)
