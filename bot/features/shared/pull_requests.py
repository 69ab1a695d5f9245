"""Pull requests for verify and review: which one an event requests, and why one is skipped."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from bot.code.change.diff import changed_paths
from bot.core import events
from bot.core.actions import Decision
from bot.core.commands import Command
from bot.core.config import gitignore
from bot.core.errors import ForgeError
from bot.core.frozen import Frozen
from bot.core.markdown import code_span
from bot.core.subjects import PullRequest
from bot.features.services import Services
from bot.features.shared.rights import CommandEvent, granted, is_paused, pull_of_check
from bot.github.protocol import Forge

#: Events that can ask for a look at a pull request.
Trigger = events.PullShown | CommandEvent | events.CheckRerequested | events.RecheckRequested


class JudgementRequest(Frozen):
    """A pull request to verify or review, and the person's request for it, if any."""

    pull_request: PullRequest
    command: Command | None = None
    rerun: bool = False

    @property
    def is_explicit(self) -> bool:
        """True if a person asked for it: filters and earlier decisions do not apply."""
        return self.command is not None or self.rerun


def concerns(event: Trigger, commands: Sequence[Command], words: frozenset[str], check: str) -> bool:
    """Return True if the event changes a pull request, re-runs the check, or has a command of ``words``."""
    if isinstance(event, events.CheckRerequested):
        return event.name in ("", check)
    if isinstance(event, events.RecheckRequested):
        return event.issue.is_pull_request
    if isinstance(event, events.PullShown):
        return True
    if event.sender.is_bot or (isinstance(event, events.CommentCreated) and not event.issue.is_pull_request):
        return False
    return any(command.word in words for command in commands)


def read_request(event: Trigger, services: Services, word: str) -> JudgementRequest | None:
    """Return the pull request that an event asks to have looked at.

    None for a comment without ``word`` or ``recheck``, or by a person who may not use them.
    """
    if isinstance(event, events.PullShown):
        return JudgementRequest(pull_request=event.pull_request)
    if isinstance(event, events.CheckRerequested):
        pull = pull_of_check(event, services.forge)
        return JudgementRequest(pull_request=pull, rerun=True) if pull else None
    if isinstance(event, events.RecheckRequested):
        return JudgementRequest(pull_request=services.forge.pull_request(event.number), rerun=True)
    # "recheck" is for everything that Bouncer does on a pull request; a more specific command takes precedence.
    commands = [command for command in granted(event, services) if command.word in (word, "recheck")]
    if not commands:
        return None
    command = max(commands, key=lambda command: (command.word == word, command.run or ""))
    return JudgementRequest(pull_request=services.forge.pull_request(event.number), command=command)


#: Nothing can be posted, so a review that a person asks for is refused too.
LOCKED = "skipped:locked", "the pull request is locked"


def skip_reason(pull: PullRequest, services: Services, past: Sequence[Decision]) -> tuple[str, str] | None:
    """Return why a pull request is skipped, as a word to count by and a clause; None if it is not."""
    config = services.config.pulls
    labels = {label.lower() for label in pull.labels}
    title, ignored_titles = pull.title.lower(), tuple(map(str.lower, config.ignore_titles))
    if pull.state == "closed":
        return "skipped:closed", "the pull request is closed"
    if pull.locked:
        return LOCKED
    if pull.draft and not config.drafts:
        return "skipped:draft", "it is a draft"
    if pull.author.is_bot and not config.bots:
        return "skipped:bot", "its author is a bot"
    if pull.author.login.lower() in map(str.lower, config.ignore_authors):
        return "skipped:author", "pulls.ignore_authors names its author"
    if config.branches and not any(fnmatchcase(pull.base_ref, glob) for glob in config.branches):
        return "skipped:branch", "its base branch is not among pulls.branches"
    if not labels.isdisjoint(map(str.lower, config.ignore_labels)):
        return "skipped:label", "pulls.ignore_labels names a label of it"
    if title.startswith(ignored_titles):
        return "skipped:title", "pulls.ignore_titles names how its title starts"
    if config.paths and _is_outside(config.paths, pull.number, services.forge):
        return "skipped:paths", "it changes no file in pulls.paths"
    return ("skipped:paused", "paused by a maintainer") if is_paused(past) else None


def _is_outside(paths: Sequence[str], number: int, forge: Forge) -> bool:
    """Return True if no changed file is in ``paths``; False if the changed files cannot all be read."""
    try:
        diff = forge.diff(number)
    except ForgeError:
        return False
    globs = gitignore(paths)
    names = (*changed_paths(diff.text), *diff.omitted)
    return not diff.unlisted and not any(globs.match_file(name) for name in names)


#: Paths that are named, and characters of a path.
MAX_NAMES, MAX_NAME = 5, 100


def not_analysed(paths: Sequence[str]) -> str:
    """Return the sentence that names files which took too long to parse; empty if there are none."""
    if not paths:
        return ""
    names = ", ".join(code_span(path, limit=MAX_NAME) for path in paths[:MAX_NAMES])
    more = f" and {len(paths) - MAX_NAMES} more" if len(paths) > MAX_NAMES else ""
    return f"Not analysed: too slow to parse: {names}{more}."
