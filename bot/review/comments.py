"""What people read of a review: inline comments, the review's own line, and the sticky summary. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from bot.actions import InlineComment
from bot.bouncers.speaker import caveat
from bot.domain import PullRequest, Repository
from bot.review.findings import Finding
from bot.review.packing import Skipped
from bot.text import clean, clean_line

#: Characters of one finding's text, of one name, and bullets of one list.
COMMENT = 1_200
NAME = 200
BULLETS = 20

#: Left out on purpose, by the maintainers' globs or because no person reads such files: named, but no news.
EXPECTED = frozenset({"review.ignore", "binary", "lock file", "vendored", "generated", "minified"})


@dataclass(frozen=True, slots=True)
class Page:
    """Where the texts will stand: host and permalinks follow from it."""

    repository: Repository
    pull: PullRequest

    @property
    def host(self) -> str:
        return urlsplit(self.repository.html_url).netloc.lower()

    def link(self, path: str) -> str:
        """The path as code, linked to the file at the reviewed commit."""
        name = _code(path)
        if not self.repository.html_url:
            return name
        return f"[{name}]({self.repository.html_url}/blob/{self.pull.head_sha}/{quote(path)})"


def inline(finding: Finding, page: Page) -> InlineComment:
    """A finding on its line."""
    assert finding.line is not None
    return InlineComment(
        path=finding.path,
        line=finding.line,
        side=finding.side,
        start_line=finding.start_line,
        body=f"{clean(finding.comment, host=page.host, limit=COMMENT)}\n\nSeverity: {finding.severity}.",
        suggestion=finding.suggestion,
        fingerprint=finding.fingerprint,
    )


def opening(count: int, skipped: Sequence[Skipped], model: str, page: Page) -> str:
    """The review's own text: who spoke, how to answer back, what was left out on purpose."""
    number = "One possible defect" if count == 1 else f"{count} possible defects"
    lines = [f"{number} in {page.pull.head_sha[:7]}. Answer one that is wrong with `/bouncer dismiss`. `{model}`"]
    if note := caveat(model):
        lines.append(f"_{note}_")
    if left_out := [each for each in skipped if each.reason in EXPECTED]:
        lines.append(f"Not reviewed: {_names(left_out)}.")
    return "\n\n".join(lines)


def summary(
    unplaced: Sequence[Finding], skipped: Sequence[Skipped], gone: Sequence[Finding], page: Page
) -> str | None:
    """The sticky summary; None where nothing has to be said."""
    if not (unplaced or gone or any(each.reason not in EXPECTED for each in skipped)):
        return None
    sections = [
        _section(
            "Possible defects without a line to carry them:",
            (
                f"{page.link(each.path)}: {clean_line(each.comment, host=page.host, limit=COMMENT)} "
                f"Severity: {each.severity}."
                for each in unplaced
            ),
        ),
        _section(
            "Not reviewed:", (f"{_code(each.path)}: {clean_line(each.reason, limit=NAME)}" for each in skipped)
        ),
        _section(
            "No longer in the change:",
            (f"{_code(each.path)}: {_sentence(each.comment, page.host)}" for each in gone),
        ),
    ]
    head = f"**Review of {page.pull.head_sha[:7]}**"
    return "\n\n".join([head, *(section for section in sections if section)])


def settled(page: Page) -> str:
    """The sticky summary once there is nothing left to say in it."""
    return f"**Review of {page.pull.head_sha[:7]}**: nothing to add."


def nothing_found(page: Page, model: str) -> str:
    """The answer to somebody who asked for a review of a change in which nothing was found."""
    note = caveat(model)
    return f"**Review of {page.pull.head_sha[:7]}**: no defects found. `{model}`" + (
        f"\n\n_{note}_" if note else ""
    )


def _section(title: str, items: Iterable[str]) -> str:
    bullets = [f"- {item}" for item in items]
    more = len(bullets) - BULLETS
    shown = [*bullets[:BULLETS], f"- and {more} more"] if more > 0 else bullets
    return "\n".join([title, *shown]) if shown else ""


def _names(skipped: Sequence[Skipped]) -> str:
    shown = ", ".join(f"{_code(each.path)} ({each.reason})" for each in skipped[:BULLETS])
    more = len(skipped) - BULLETS
    return f"{shown} and {more} more" if more > 0 else shown


def _code(path: str) -> str:
    """A path as a code span: what it is called cannot become markup."""
    short = path if len(path) <= NAME // 2 else f"…{path[-NAME // 2 :]}"
    return clean_line(f"`{short.replace('`', '´')}`", limit=NAME)


def _sentence(text: str, host: str) -> str:
    first = text.replace("\n", " ").split(". ")[0]
    return clean_line(first, host=host, limit=NAME)
