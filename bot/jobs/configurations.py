"""Each repository's ``bouncer.yml``: read once, and again when its default branch was pushed to.

Recorded deliveries tell of pushes, so every worker hears of one before it takes up what was delivered after it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import func, select

from bot.core import config_file
from bot.core.config import PATH, RepoConfig
from bot.core.config_file import Problem
from bot.core.model import Repository
from bot.errors import NotFound
from bot.forge.protocol import Forge
from bot.store import Database
from bot.store.tables import DELIVERIES

#: It is asked for again after this long in any case, seconds: an app that was registered before pushes were among
#: its events hears of none.
FRESH_SECONDS = 300.0
#: Repositories whose file is kept; the least recently used one goes.
KEPT = 1000

Configuration = tuple[RepoConfig, tuple[Problem, ...]]


@dataclass(frozen=True)
class _Read:
    configuration: Configuration
    at: float
    after: int


class Configurations:
    """One per worker process."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, str, str], _Read] = OrderedDict()

    def of(self, installation: int, repository: Repository, forge: Forge) -> Configuration:
        """The file on the default branch, and what is wrong in it; the defaults where there is none."""
        key = (installation, repository.full_name, repository.default_branch)
        with self._lock:
            known = self._kept.get(key)
        now = self._clock()
        if known and now - known.at < FRESH_SECONDS and not self._pushed(repository, known.after):
            return known.configuration
        # First the place in the line of deliveries, then the file: a push in between is noticed next time.
        after = self._newest()
        read = _Read(_load(forge, repository.default_branch), now, after)
        with self._lock:
            self._kept[key] = read
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return read.configuration

    def _newest(self) -> int:
        with self._database.read() as connection:
            return connection.scalar(select(func.max(DELIVERIES.c.seq))) or 0

    def _pushed(self, repository: Repository, after: int) -> bool:
        pushed = select(DELIVERIES.c.seq).where(
            DELIVERIES.c.seq > after,
            DELIVERIES.c.kind == "branch_pushed",
            DELIVERIES.c.repository == repository.full_name,
        )
        with self._database.read() as connection:
            return connection.execute(pushed.limit(1)).first() is not None


def _load(forge: Forge, branch: str) -> Configuration:
    try:
        return config_file.load(forge.file(PATH, branch))
    except NotFound:
        return RepoConfig(), ()
