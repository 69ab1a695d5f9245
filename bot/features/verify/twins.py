"""Earlier open pull requests for the same issue, or with the same change. This costs no request and no model call.

The changed lines come from the diff that is judged; their hashes stay in the record, for later pull requests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bot.code.diff import Diff, parse
from bot.core.errors import ForgeError
from bot.core.subjects import PullRequest
from bot.features.services import Services
from bot.features.verify.record import PullContent, Twin, VerifyRecord
from bot.github.protocol import IssueLink

#: Share of the changed lines, percent, from which on two pull requests make the same change.
SAME_LINES = 60
#: Lines of a change that are compared at most; a larger one is not compared by lines.
MAX_LINES = 500


def content_of(pull: PullRequest, links: Sequence[IssueLink], services: Services) -> PullContent | None:
    """Return what a pull request changes and closes, with the earlier ones like it; None if it is not compared."""
    if services.config.duplicates.mode == "off":
        return None
    newest = services.history.newest(services.forge.repository, "verify")
    if newest is None:
        return None
    try:
        diff = services.forge.diff(pull.number)
    except ForgeError:
        return None
    repository = services.forge.repository.lower()
    content = PullContent(
        closes=tuple(link.number for link in links if link.repository.lower() == repository),
        lines=() if diff.omitted or diff.unlisted else changed_lines(parse(diff.text)),
    )
    earlier = {
        decision.subject.number: decision.record.content
        for decision in newest
        if isinstance(decision.record, VerifyRecord)
        and decision.record.content is not None
        and decision.subject.number < pull.number
    }
    twins: list[Twin] = []
    for number, other in sorted(earlier.items()):
        closes = tuple(sorted(set(content.closes) & set(other.closes)))
        common = len(set(content.lines) & set(other.lines))
        share = 100 * common // len(content.lines) if content.lines else 0
        if closes or share >= SAME_LINES:
            twins.append(Twin(number=number, closes=closes, share=share if share >= SAME_LINES else 0))
    return content.model_copy(update={"twins": tuple(twins)})


def changed_lines(diff: Diff) -> tuple[str, ...]:
    """Return the sorted hashes of the changed lines with a letter or digit; none if there are too many."""
    lines = {
        f"{file.path}\0{line.mark}{' '.join(line.text.split())}"
        for file in diff.files
        for hunk in file.hunks
        for line in hunk.lines
        if line.mark != " " and any(character.isalnum() for character in line.text)
    }
    if len(lines) > MAX_LINES:
        return ()
    return tuple(sorted(hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:10] for line in lines))
