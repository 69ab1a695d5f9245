"""Which pull request an event asks to have looked at, and why one is left alone. Shared by verify and review."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from bot.bouncers.granted import granted
from bot.core import events
from bot.core.commands import Command, Word, read
from bot.core.config import PullConfig, gitignore
from bot.core.events import Event
from bot.core.frozen import Frozen
from bot.core.model import PullRequest
from bot.errors import ForgeError, NotFound
from bot.forge.protocol import Forge
from bot.review.diff import parse
from bot.services import Services

_MOVED = (
    events.PullRequestOpened
    | events.PullRequestSynchronized
    | events.PullRequestReopened
    | events.PullRequestReadied
    | events.PullRequestEdited
)


class Asked(Frozen):
    """A pull request to look at."""

    pull_request: PullRequest
    command: Command | None = None
    rerun: bool = False

    @property
    def explicitly(self) -> bool:
        """Somebody asked for it in so many words: filters and earlier answers do not hold it back."""
        return self.command is not None or self.rerun


def concerns(event: Event, check: str, words: frozenset[Word]) -> bool:
    """Whether an event can ask to have its pull request looked at: it moved, ``check`` is re-run, or one of the
    words was said.
    """
    if isinstance(event, events.CheckRerequested):
        return event.name in ("", check)
    if isinstance(event, events.RecheckRequested):
        return event.issue.is_pull_request
    if not isinstance(event, events.CommentCreated | events.ReviewCommentCreated):
        return isinstance(event, _MOVED)
    if event.sender.is_bot or (isinstance(event, events.CommentCreated) and not event.issue.is_pull_request):
        return False
    return any(command.word in words for command in read(event.comment.body))


def asked(event: Event, services: Services, word: Word, check: str) -> Asked | None:
    """The pull request that an event is about: it moved, ``/bouncer <word>`` was said, or ``check`` is re-run.

    None where the event asks for nothing of the kind, or whoever asks may not.
    """
    if isinstance(event, _MOVED):
        return Asked(pull_request=event.pull_request)
    if isinstance(event, events.CheckRerequested):
        return _rerun(event, services, check)
    if isinstance(event, events.RecheckRequested):
        return Asked(pull_request=services.forge.pull_request(event.number), rerun=True)
    if isinstance(event, events.CommentCreated | events.ReviewCommentCreated):
        return _commanded(event, services, word)
    return None


def _commanded(
    event: events.CommentCreated | events.ReviewCommentCreated, services: Services, word: Word
) -> Asked | None:
    if isinstance(event, events.CommentCreated) and not event.issue.is_pull_request:
        return None
    # "recheck" is for everything that Bouncer does on a pull request; what says more than that goes before it.
    said = [command for command in granted(event, services) if command.word in (word, "recheck")]
    if not said:
        return None
    command = max(said, key=lambda each: (each.word == word, each.run or ""))
    return Asked(pull_request=services.forge.pull_request(event.number), command=command)


def _rerun(event: events.CheckRerequested, services: Services, check: str) -> Asked | None:
    if event.name not in ("", check):
        return None
    try:
        pulls = (
            tuple(services.forge.pull_request(number) for number in event.numbers)
            # Events about a fork's commit name no pull request.
            or services.forge.pulls_for_commit(event.head_sha)
        )
    except NotFound:
        return None
    here = [pull for pull in pulls if pull.head_sha == event.head_sha and pull.state == "open"]
    return Asked(pull_request=here[0], rerun=True) if here else None


def no_run(asked: Asked, word: Word) -> str | None:
    """Why a fork's head is not executed, empty where nobody asked for it; None where it may be.

    A maintainer names the commit that they read: what was pushed meanwhile is another one.
    """
    pull, run = asked.pull_request, asked.command.run if asked.command else None
    if not pull.from_fork or (run and pull.head_sha.startswith(run)):
        return None
    if run is None:
        return ""
    short = pull.head_sha[:7]
    return (
        f"Not executed, this is a fork's code: read commit {short}, then comment `/bouncer {word} --run {short}`."
    )


def why_not(pull: PullRequest, services: Services) -> tuple[str, str] | None:
    """Why a pull request is left alone: a word to count by and a sentence; None where it is not."""
    config = services.config.pulls
    return _unwanted(pull, config) or _elsewhere(pull, config.paths, services.forge)


def _elsewhere(pull: PullRequest, paths: Sequence[str], forge: Forge) -> tuple[str, str] | None:
    """Whether it changes nothing that counts; what cannot be read in whole may."""
    if not paths:
        return None
    try:
        diff = forge.diff(pull.number)
    except ForgeError:
        return None
    counted = gitignore(paths)
    names = [name for file in parse(diff.text).files for name in (file.path, file.old_path) if name]
    if diff.unlisted or any(counted.match_file(name) for name in (*names, *diff.omitted)):
        return None
    return "skipped:paths", "it changes no file in pulls.paths"


def _unwanted(pull: PullRequest, config: PullConfig) -> tuple[str, str] | None:
    if pull.state == "closed":
        return "skipped:closed", "the pull request is closed"
    if pull.draft and not config.drafts:
        return "skipped:draft", "it is a draft"
    if pull.author.is_bot and not config.bots:
        return "skipped:bot", "its author is a bot"
    if pull.author.login.lower() in {login.lower() for login in config.ignore_authors}:
        return "skipped:author", "pulls.ignore_authors names its author"
    if config.branches and not any(fnmatchcase(pull.base_ref, glob) for glob in config.branches):
        return "skipped:branch", "its base branch is not among pulls.branches"
    ignored = {label.lower() for label in config.ignore_labels}
    if any(label.lower() in ignored for label in pull.labels):
        return "skipped:label", "pulls.ignore_labels names a label of it"
    if any(pull.title.lower().startswith(start.lower()) for start in config.ignore_titles):
        return "skipped:title", "pulls.ignore_titles names how its title starts"
    return None
