"""The issues that a pull request closes, as the forge links them or as its text says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.core.errors import ForgeError, NotFound
from bot.core.subjects import Issue, PullRequest
from bot.features.services import Services
from bot.features.verify.record import Unjudged
from bot.github.protocol import IssueLink

#: Linked issues that are looked at.
MAX_ISSUES = 5
_NAME = r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+"
_CLOSING = re.compile(
    rf"""(?<![\w-])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?::[ \t]*|[ \t]+)
    (?:(?P<repository>{_NAME})?\#(?P<number>\d{{1,9}})
      |(?P<site>https?://[^\s/]+)/(?P<place>{_NAME})/issues/(?P<id>\d{{1,9}}))(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
#: Text that GitHub does not read for keywords: comments, fenced and inline code.
_NOT_READ = re.compile(
    r"<!--.*?(?:-->|\Z)|^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)|(?<!`)(`++).*?(?<!`)\2(?!`)",
    re.DOTALL | re.MULTILINE,
)


def issue_links(pull: PullRequest, services: Services) -> tuple[IssueLink, ...]:
    """Return the issues that the forge links, else those that closing words in the text name."""
    try:
        linked = services.forge.linked_issues(pull.number)
    except ForgeError:
        # No GraphQL, or no permission to use it.
        linked = ()
    if linked:
        return linked
    # GitHub links nothing for other base branches, and old servers cannot be asked.
    return links_in_text(pull, services)


def links_in_text(pull: PullRequest, services: Services) -> tuple[IssueLink, ...]:
    """Return the issues that closing words in a pull request's title and text name."""
    web_url = services.repository.html_url.removesuffix(f"/{services.repository.full_name}")
    return closing_links(f"{pull.title}\n\n{pull.body}", services.forge.repository, web_url)


def linked_issues(links: Sequence[IssueLink], services: Services) -> tuple[list[Issue], list[Unjudged]]:
    """Return the linked issues that can be judged against, and the reasons why the others cannot."""
    issues: list[Issue] = []
    unjudged: list[Unjudged] = []
    for link in links:
        name = f"#{link.number}"
        if link.repository.lower() != services.forge.repository.lower():
            why = "the linked issue is in another repository"
            unjudged.append(Unjudged(issue=f"{link.repository}{name}", why=why))
        elif len(issues) == MAX_ISSUES:
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
                issues.append(issue)
    return issues, unjudged


def closing_links(text: str, repository: str, web_url: str) -> tuple[IssueLink, ...]:
    """Return the issues that ``text`` closes, in order, without repetitions; ``#n`` is one of ``repository``.

    A ``#n`` without a closing word is a mention, not a link. URLs count on the host of ``web_url`` only.
    """
    links: list[IssueLink] = []
    for match in _CLOSING.finditer(_NOT_READ.sub(" ", _without_indented_code(text))):
        if match["number"]:
            links.append(IssueLink(repository=match["repository"] or repository, number=int(match["number"])))
        elif match["site"].lower() == web_url.rstrip("/").lower():
            links.append(IssueLink(repository=match["place"], number=int(match["id"])))
    return tuple(dict.fromkeys(links))


def _without_indented_code(text: str) -> str:
    """Remove the lines of indented code; other indented lines go on a list item or a paragraph."""
    if "    " not in text and "\t" not in text:
        return text
    from markdown_it import MarkdownIt

    lines = re.split(r"\r\n|\r|\n", text)
    for token in MarkdownIt("commonmark").disable("inline").parse(text):  # the blocks are enough
        if token.type == "code_block" and token.map:
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
    return "\n".join(lines)
