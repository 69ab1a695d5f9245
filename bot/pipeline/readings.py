"""Reads of a job before its feature decides: the present subject, and ``bouncer.yml``.

Reads of GitHub are cached by the HTTP client (``bot.github.http``), where an unchanged answer costs no quota. The
one answer that is remembered here is ``bouncer.yml``: most repositories have none, and GitHub sends no ETag with a
404, so each attempt of a job would pay for two of them, the repository's and its owner's. It is read again after a
push to its default branch. Pushes are stored deliveries, so a worker knows of one before it runs a later event.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from bot.core import config_file, events
from bot.core.actions import Task
from bot.core.config import PATH, Problem, RepoConfig
from bot.core.errors import ForgeError, NotFound
from bot.core.events import Event
from bot.core.subjects import Repository
from bot.github.protocol import Forge
from bot.pipeline.store import Database
from bot.pipeline.store.tables import DELIVERIES
from bot.router import JUDGES

if TYPE_CHECKING:
    from bot.github.reader import GitHubForge


def at_present(event: Event, task: Task, forge: Forge, *, moved: bool = False) -> Event:
    """Return the event with its issue or pull request read again, if ``task`` judges it.

    Deliveries arrive late, twice and out of order. A late one may supersede a newer one that still waits, so it
    has to judge the present state. ``moved``: the issue that came with a comment is known to be stale.
    """
    if task not in JUDGES:
        return event
    if isinstance(event, events.RecheckRequested) and event.issue.is_pull_request:
        return event
    if isinstance(event, events.CommentCreated) and not moved:
        return event
    if isinstance(event, events.IssueShown | events.RecheckRequested | events.CommentCreated):
        return event.model_copy(update={"issue": forge.issue(event.number)})
    if isinstance(event, events.PullShown):
        return event.model_copy(update={"pull_request": forge.pull_request(event.number)})
    return event


#: Longest time without a read, seconds: an app that was registered before pushes were among its events gets none.
FRESH_SECONDS = 300.0
#: Files that are remembered; the least recently used one is dropped.
MAX_FILES = 250

Configuration = tuple[RepoConfig, tuple[Problem, ...]]
#: The repository of an owner whose file holds the defaults for all the others.
SHARED = ".github"


#: Returns the file of a repository and branch: a remembered one, or what the function reads.
Read = Callable[[str, str, Callable[[], Configuration]], Configuration]


def configuration(
    forge: GitHubForge, repository: Repository, read: Read = lambda name, branch, load: load()
) -> Configuration:
    """Return the repository's file over its owner's, or the defaults, with the problems in it.

    Of the problems in the owner's file, only those that put a feature into shadow mode are included.
    """
    config, problems = read(
        repository.full_name,
        repository.default_branch,
        partial(_load, lambda: forge.policy_file(PATH, repository), NotFound),
    )
    if repository.name == SHARED:
        return config, problems
    owners = f"{repository.owner}/{SHARED}"
    # It is optional: missing, or not readable for us.
    defaults, owners_problems = read(owners, "", partial(_load, lambda: forge.shared_file(PATH), ForgeError))
    shadowing = tuple(
        problem.model_copy(update={"file": owners}) for problem in owners_problems if problem.shadowed
    )
    merged = config.over(defaults)
    # A section that is off in the defaults of Bouncer may be on in those of the owner.
    if sections := {section for problem in problems for section in problem.shadowed}:
        merged = merged.in_shadow(*sections)
    return merged, (*problems, *shadowing)


def _load(read_file: Callable[[], bytes], absence: type[ForgeError]) -> Configuration:
    try:
        return config_file.load(read_file())
    except absence:
        return RepoConfig(), ()


@dataclass(frozen=True)
class _Remembered:
    configuration: Configuration
    read_at: float
    last_delivery: int


class Configurations:
    """The remembered ``bouncer.yml`` of each repository; one object per worker process."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[int, str, str], _Remembered] = OrderedDict()

    def of(self, installation: int, repository: Repository, forge: GitHubForge) -> Configuration:
        """Return the same as ``configuration``, and read only what may have changed."""
        return configuration(forge, repository, partial(self._read, installation))

    def _read(self, installation: int, name: str, branch: str, load: Callable[[], Configuration]) -> Configuration:
        key, now = (installation, name, branch), self._clock()
        with self._lock:
            file = self._files.get(key)
        if file and now - file.read_at < FRESH_SECONDS and not self._was_pushed(name, file.last_delivery):
            return file.configuration
        # Before the file is read: a push in between is then noticed the next time.
        last_delivery = self._database.scalar(select(func.max(DELIVERIES.c.seq))) or 0
        file = _Remembered(load(), now, last_delivery)
        with self._lock:
            self._files[key] = file
            self._files.move_to_end(key)
            if len(self._files) > MAX_FILES:
                self._files.popitem(last=False)
        return file.configuration

    def _was_pushed(self, repository: str, last_delivery: int) -> bool:
        pushes = select(DELIVERIES.c.seq).where(
            DELIVERIES.c.seq > last_delivery,
            DELIVERIES.c.kind == "branch_pushed",
            DELIVERIES.c.repository == repository,
        )
        return self._database.scalar(pushes.limit(1)) is not None
