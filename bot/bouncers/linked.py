"""The issues that a pull request is held against: read from the forge, those that cannot be read named."""

from __future__ import annotations

from collections.abc import Sequence

from bot.bouncers.links import closing_links
from bot.bouncers.output_check import Unjudged
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
