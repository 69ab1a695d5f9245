"""A repository's past, read steadily: waits where GitHub asks for it, and reads nothing twice after a kill."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bot.calibration.journal import Journal
from bot.core.model import Repository
from bot.errors import TransientError
from bot.forge.past import Chronicle, ListPage, Message, PastIssue, PastPull
from bot.forge.protocol import PullDiff

T = TypeVar("T", bound=BaseModel)

#: How often one request is tried where GitHub does not say when to come back.
TRIES = 6
#: Seconds that one request is waited for in all; GitHub's own limits end within the hour.
LONGEST = 2 * 3600.0
#: What was read is taken for the present for so long.
FRESH = timedelta(days=1)


class SteadyChronicle:
    """A ``Chronicle`` over another one. ``tell`` is told why it waits, ``requests`` counts those to GitHub.

    What was read is in the journal; one that was begun longer ago than ``FRESH`` is begun anew.
    """

    def __init__(
        self,
        chronicle: Chronicle,
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
        return self._once(
            f"messages {since.isoformat()} {after}",
            ListPage[Message],
            lambda: self._chronicle.messages(since, after),
        )

    def _take(self, row: dict[str, Any]) -> None:
        if "began" in row:
            self.began = datetime.fromisoformat(row["began"])
        elif {"asked", "answer", "requests"} <= set(row):
            self._known[row["asked"]] = row["answer"]
            self._before = row["requests"]

    def _once(self, asked: str, kind: type[T], ask: Callable[[], T]) -> T:
        if asked in self._known:
            try:
                return kind.model_validate(self._known[asked])
            except ValidationError:
                pass  # written by another version: asked again
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
