"""The issues that a pull request is held against: read from the forge, those that cannot be read named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.bouncers.output import Unjudged
from bot.core.model import Issue, PullRequest
from bot.errors import NotFound
from bot.forge.protocol import IssueLink
from bot.services import Services

#: Linked issues that are judged; a pull request that closes more is not about one thing.
MAX_ISSUES = 5


def links(pull: PullRequest, services: Services) -> tuple[IssueLink, ...]:
    """The issues that the forge links, else those that closing words name (other base branches, old servers)."""
    try:
        linked = services.forge.linked_issues(pull.number)
    except NotFound:
        linked = ()
    if linked:
        return linked
    web_url = services.repository.html_url.removesuffix(f"/{services.repository.full_name}")
    return closing_links(f"{pull.title}\n\n{pull.body}", services.forge.repository, web_url)


def issues(linked: Sequence[IssueLink], services: Services) -> tuple[list[Issue], list[Unjudged]]:
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
