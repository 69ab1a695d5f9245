"""Which pull request an event asks to have looked at, why one is left alone, and which issues it closes.

Shared by verify and review.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from bot.code.diff import parse
from bot.core import events
from bot.core.actions import Decision
from bot.core.commands import Command
from bot.core.config import PullConfig, gitignore
from bot.core.errors import ForgeError, NotFound
from bot.core.events import Event
from bot.core.frozen import Frozen
from bot.core.subjects import Issue, PullRequest
from bot.features.services import Services
from bot.features.shared.history import paused
from bot.features.shared.output_bouncer import Unjudged
from bot.features.shared.rights import Said, granted
from bot.github.protocol import Forge, IssueLink

#: Linked issues that are judged; a pull request that closes more is not about one thing.
MAX_ISSUES = 5
_NAME = r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+"
_CLOSING = re.compile(
    rf"""(?<![\w-])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?::[ \t]*|[ \t]+)
    (?:(?P<repository>{_NAME})?\#(?P<number>\d{{1,9}})
      |(?P<site>https?://[^\s/]+)/(?P<place>{_NAME})/issues/(?P<id>\d{{1,9}}))(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
#: Text that GitHub does not read for keywords: comments, fenced and inline code.
_SILENT = re.compile(
    r"<!--.*?(?:-->|\Z)|^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)|(`+)[^`].*?\2", re.DOTALL | re.MULTILINE
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


def concerns(event: Event, commands: Sequence[Command], check: str, words: frozenset[str]) -> bool:
    """Return True if the event can ask for a look at its pull request.

    It can if the pull request changed, ``check`` is re-run, or a comment has one of the words.
    """
    if isinstance(event, events.CheckRerequested):
        return event.name in ("", check)
    if isinstance(event, events.RecheckRequested):
        return event.issue.is_pull_request
    if not isinstance(event, Said):
        return isinstance(event, events.PullShown)
    if event.sender.is_bot or (isinstance(event, events.CommentCreated) and not event.issue.is_pull_request):
        return False
    return any(command.word in words for command in commands)


def asked(event: Event, services: Services, word: str) -> Asked | None:
    """The pull request that an event ``concerns``: it moved, ``/bouncer <word>`` was said, or a check is re-run.

    None where another word was said, or whoever asks may not.
    """
    if isinstance(event, events.PullShown):
        return Asked(pull_request=event.pull_request)
    if isinstance(event, events.CheckRerequested):
        return _rerun(event, services)
    if isinstance(event, events.RecheckRequested):
        return Asked(pull_request=services.forge.pull_request(event.number), rerun=True)
    return _commanded(event, services, word) if isinstance(event, Said) else None


def _commanded(event: Said, services: Services, word: str) -> Asked | None:
    # "recheck" is for everything that Bouncer does on a pull request; what says more than that goes before it.
    said = [command for command in granted(event, services) if command.word in (word, "recheck")]
    if not said:
        return None
    command = max(said, key=lambda each: (each.word == word, each.run or ""))
    return Asked(pull_request=services.forge.pull_request(event.number), command=command)


def _rerun(event: events.CheckRerequested, services: Services) -> Asked | None:
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


def no_run(asked: Asked, word: str) -> str | None:
    """Why a fork's head is not executed, empty where nobody asked for it; None where it may be.

    A maintainer names the commit that they read, in full: two commits with the same first digits are quickly made,
    and what was pushed meanwhile is another commit.
    """
    pull, run = asked.pull_request, asked.command.run if asked.command else None
    if not pull.from_fork or run == pull.head_sha:
        return None
    if run is None:
        return ""
    return (
        f"Not executed, this is a fork's code: read commit {pull.head_sha[:7]}, "
        f"then comment `/bouncer {word} --run {pull.head_sha}`."
    )


def why_not(pull: PullRequest, services: Services, past: Sequence[Decision]) -> tuple[str, str] | None:
    """Why a pull request is left alone: a word to count by and a sentence; None where it is not."""
    config = services.config.pulls
    if found := _unwanted(pull, config) or _elsewhere(pull, config.paths, services.forge):
        return found
    return ("skipped:paused", "paused by a maintainer") if paused(past) else None


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


def links(pull: PullRequest, services: Services) -> tuple[IssueLink, ...]:
    """The issues that the forge links, else those that closing words name (other base branches, old servers)."""
    try:
        linked = services.forge.linked_issues(pull.number)
    except ForgeError:
        # Without GraphQL, or without the right to ask.
        linked = ()
    if linked:
        return linked
    web_url = services.repository.html_url.removesuffix(f"/{services.repository.full_name}")
    return closing_links(f"{pull.title}\n\n{pull.body}", services.forge.repository, web_url)


def linked_issues(linked: Sequence[IssueLink], services: Services) -> tuple[list[Issue], list[Unjudged]]:
    """The linked issues that can be judged against, and what is said about the others."""
    found: list[Issue] = []
    unjudged: list[Unjudged] = []
    for link in linked:
        name = f"#{link.number}"
        if link.repository.lower() != services.forge.repository.lower():
            unjudged.append(Unjudged(issue=name, why="the linked issue is in another repository"))
        elif len(found) == MAX_ISSUES:
            unjudged.append(Unjudged(issue=name, why=f"more than {MAX_ISSUES} linked issues"))
        else:
            try:
                issue = services.forge.issue(link.number)
            except NotFound:
                unjudged.append(Unjudged(issue=name, why="the linked issue cannot be found"))
                continue
            if issue.is_pull_request:
                unjudged.append(Unjudged(issue=name, why="what is linked is a pull request"))
            else:
                found.append(issue)
    return found, unjudged


def closing_links(text: str, repository: str, web_url: str) -> tuple[IssueLink, ...]:
    """The issues that ``text`` closes, in order, each once; ``repository`` is what a bare ``#n`` refers to.

    A bare ``#n`` without a closing word is a mention, not a link. URLs count on the host of ``web_url`` only.
    """
    return tuple(dict.fromkeys(_links(_SILENT.sub(" ", text), repository, web_url.rstrip("/").lower())))


def _links(text: str, repository: str, web_url: str) -> Iterator[IssueLink]:
    for match in _CLOSING.finditer(text):
        if match["number"]:
            yield IssueLink(repository=match["repository"] or repository, number=int(match["number"]))
        elif match["site"].lower() == web_url:
            yield IssueLink(repository=match["place"], number=int(match["id"]))
