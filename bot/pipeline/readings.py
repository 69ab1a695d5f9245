"""What jobs know of the forge: an event as it stands now, and ``bouncer.yml``.

A repository's file, over its owner's, is read once, and again when its default branch was pushed to. Recorded
deliveries tell of pushes, so every worker hears of one before it takes up what was delivered after it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import func, select

from bot.core import config_file, events
from bot.core.actions import Task
from bot.core.config import PATH, Problem, RepoConfig
from bot.core.errors import ForgeError, NotFound
from bot.core.events import Event
from bot.core.subjects import Actor, CheckRun, Comment, Issue, Permission, PullRequest, Repository, ReviewComment
from bot.github.offline import comment_key
from bot.github.protocol import Forge, IssueLink, PostedReview, PullDiff, Reactions, SourceTree
from bot.pipeline.store import Database
from bot.pipeline.store.tables import DELIVERIES

if TYPE_CHECKING:
    from bot.github.reader import GitHubForge


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

#: Tasks that judge what is there, whatever it was that happened to it.
JUDGING: frozenset[Task] = frozenset({"triage", "verify", "review"})


class ReadOnce:
    """Asks another forge each question once: a job thinks about one state of the world, and reads it once."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge
        self._answers: dict[str, Any] = {}
        self._missing: dict[str, NotFound] = {}

    @property
    def repository(self) -> str:
        return self._forge.repository

    def about(self) -> Repository:
        return self._single("about", self._forge.about)

    def identity(self) -> Actor:
        return self._single("identity", self._forge.identity)

    def issue(self, number: int) -> Issue:
        return self._keep("issues", number, lambda: self._forge.issue(number))

    def comments(self, number: int) -> tuple[Comment, ...]:
        return self._keep("comments", number, lambda: self._forge.comments(number))

    def pull_request(self, number: int) -> PullRequest:
        return self._keep("pull_requests", number, lambda: self._forge.pull_request(number))

    def diff(self, number: int) -> PullDiff:
        return self._keep("diffs", number, lambda: self._forge.diff(number))

    def linked_issues(self, number: int) -> tuple[IssueLink, ...]:
        return self._keep("linked_issues", number, lambda: self._forge.linked_issues(number))

    def review_comments(self, number: int) -> tuple[ReviewComment, ...]:
        return self._keep("review_comments", number, lambda: self._forge.review_comments(number))

    def reviews(self, number: int) -> tuple[PostedReview, ...]:
        return self._keep("reviews", number, lambda: self._forge.reviews(number))

    def resolved_threads(self, number: int) -> tuple[int, ...]:
        return self._keep("resolved_threads", number, lambda: self._forge.resolved_threads(number))

    def check_runs(self, sha: str, name: str) -> tuple[CheckRun, ...]:
        return self._keep("check_runs", f"{sha}:{name}", lambda: self._forge.check_runs(sha, name))

    def pulls_for_commit(self, sha: str) -> tuple[PullRequest, ...]:
        return self._keep("pulls_for_commit", sha, lambda: self._forge.pulls_for_commit(sha))

    def permission(self, login: str) -> Permission:
        return self._keep("permissions", login, lambda: self._forge.permission(login))

    def reactions(self, comment_id: int, *, review: bool = False) -> Reactions:
        key = comment_key(comment_id, review)
        return self._keep("reactions", key, lambda: self._forge.reactions(comment_id, review=review))

    def head(self, ref: str) -> str:
        return self._keep("heads", ref, lambda: self._forge.head(ref))

    def file(self, path: str, ref: str) -> bytes:
        return self._keep("files", f"{ref}:{path}", lambda: self._forge.file(path, ref))

    def checkout(self, ref: str, folder: Path) -> None:
        self._forge.checkout(ref, folder)

    def sources(self, ref: str) -> SourceTree:
        return self._forge.sources(ref)

    def _single(self, name: str, ask: Callable[[], T]) -> T:
        if name not in self._answers:
            self._answers[name] = ask()
        answer: T = self._answers[name]
        return answer

    def _keep(self, name: str, key: K, ask: Callable[[], T]) -> T:
        if missing := self._missing.get(f"{name} {key}"):
            raise NotFound(str(missing), missing.status)
        answers: dict[K, T] = self._answers.setdefault(name, {})
        if key not in answers:
            try:
                answers[key] = ask()
            except NotFound as error:
                self._missing[f"{name} {key}"] = error
                raise
        return answers[key]


def at_present(event: Event, task: Task, forge: Forge, *, moved: bool = False) -> Event:
    """The event with its issue or pull request read anew, where ``task`` judges that.

    Deliveries come late, twice, and in the wrong order. A late one takes the place of a newer one that still
    waits: it must not judge what has passed then, or nobody would judge what is there. ``moved``: what came with a
    comment is known to be stale.
    """
    if task not in JUDGING or (isinstance(event, events.RecheckRequested) and event.issue.is_pull_request):
        return event
    if isinstance(event, events.IssueShown | events.RecheckRequested) or (
        moved and isinstance(event, events.CommentCreated)
    ):
        return event.model_copy(update={"issue": forge.issue(event.number)})
    if isinstance(event, events.PullShown):
        return event.model_copy(update={"pull_request": forge.pull_request(event.number)})
    return event


#: It is asked for again after this long in any case, seconds: an app that was registered before pushes were among
#: its events hears of none.
FRESH_SECONDS = 300.0
#: Repositories whose file is kept; the least recently used one goes.
KEPT_FILES = 1000

Configuration = tuple[RepoConfig, tuple[Problem, ...]]
#: The repository of an owner whose file holds the defaults for all the others.
SHARED = ".github"


@dataclass(frozen=True)
class _Read:
    configuration: Configuration
    at: float
    after: int


class Configurations:
    """Each repository's ``bouncer.yml`` over its owner's; one per worker process."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, str, str], _Read] = OrderedDict()

    def of(self, installation: int, repository: Repository, forge: GitHubForge) -> Configuration:
        """The file on the default branch over its owner's, and what is wrong in it; else the defaults.

        Of the owner's file only the problems that put something into shadow mode are among them.
        """
        name, branch = repository.full_name, repository.default_branch
        found = self._read((installation, name, branch), lambda: own(forge, repository))
        if repository.name == SHARED:
            return found
        everywhere = f"{repository.owner}/{SHARED}"
        base = self._read((installation, everywhere, ""), lambda: shared(forge))
        config, problems = _over(base, found)
        held = tuple(each.model_copy(update={"file": everywhere}) for each in base[1] if each.shadowed)
        return config, (*problems, *held)

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
            if len(self._kept) > KEPT_FILES:
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
    found = own(forge, repository)
    return found if repository.name == SHARED else _over(shared(forge), found)


def own(forge: GitHubForge, repository: Repository) -> Configuration:
    """A repository's own file."""
    try:
        return config_file.load(forge.policy_file(PATH, repository))
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
    return here[0].over(everywhere[0]), here[1]
