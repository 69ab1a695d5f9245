"""Each repository's ``bouncer.yml`` over its owner's: read once, and again when its default branch was pushed to.

Recorded deliveries tell of pushes, so every worker hears of one before it takes up what was delivered after it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from bot.core import config_file
from bot.core.config import PATH, RepoConfig
from bot.core.config_file import Problem
from bot.core.model import Repository
from bot.errors import ForgeError, NotFound
from bot.store import Database
from bot.store.tables import DELIVERIES

if TYPE_CHECKING:
    from bot.forge.github import GitHubForge

#: It is asked for again after this long in any case, seconds: an app that was registered before pushes were among
#: its events hears of none.
FRESH_SECONDS = 300.0
#: Repositories whose file is kept; the least recently used one goes.
KEPT = 1000

Configuration = tuple[RepoConfig, tuple[Problem, ...]]
#: The repository of an owner whose file holds the defaults for all the others.
SHARED = ".github"


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

    def of(self, installation: int, repository: Repository, forge: GitHubForge) -> Configuration:
        """The file on the default branch over its owner's, and what is wrong in it; else the defaults."""
        name, branch = repository.full_name, repository.default_branch
        found = self._read((installation, name, branch), lambda: own(forge, branch))
        if repository.name == SHARED:
            return found
        everywhere = f"{repository.owner}/{SHARED}"
        return _over(self._read((installation, everywhere, ""), lambda: shared(forge)), found)

    def _read(self, key: tuple[int, str, str], load: Callable[[], Configuration]) -> Configuration:
        with self._lock:
            known = self._kept.get(key)
        now = self._clock()
        if known and now - known.at < FRESH_SECONDS and not self._pushed(key[1], known.after):
            return known.configuration
        # First the place in the line of deliveries, then the file: a push in between is noticed next time.
        after = self._newest()
        read = _Read(load(), now, after)
        with self._lock:
            self._kept[key] = read
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return read.configuration

    def _newest(self) -> int:
        with self._database.read() as connection:
            return connection.scalar(select(func.max(DELIVERIES.c.seq))) or 0

    def _pushed(self, repository: str, after: int) -> bool:
        pushed = select(DELIVERIES.c.seq).where(
            DELIVERIES.c.seq > after,
            DELIVERIES.c.kind == "branch_pushed",
            DELIVERIES.c.repository == repository,
        )
        with self._database.read() as connection:
            return connection.execute(pushed.limit(1)).first() is not None


def configuration(forge: GitHubForge, repository: Repository) -> Configuration:
    """The same as ``Configurations.of``, read now."""
    found = own(forge, repository.default_branch)
    return found if repository.name == SHARED else _over(shared(forge), found)


def own(forge: GitHubForge, branch: str) -> Configuration:
    """A repository's own file."""
    try:
        return config_file.load(forge.file(PATH, branch))
    except NotFound:
        return RepoConfig(), ()


def shared(forge: GitHubForge) -> Configuration:
    """Its owner's file for all repositories. What is wrong in it is told where it stands."""
    try:
        return config_file.load(forge.shared_file(PATH))
    except ForgeError:
        # Not there, or not for us: repositories work without.
        return RepoConfig(), ()


def _over(everywhere: Configuration, here: Configuration) -> Configuration:
    return config_file.over(everywhere[0], here[0]), here[1]
