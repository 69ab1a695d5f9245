"""Which pull request a commit's message names, where it was merged or squashed by one.

Merge commits: GitHub's ``Merge pull request #N``, merge robots' ``Auto merge of #N`` and ``Merge #N``,
Azure's ``Merged PR N``, and a title of one's own that ends in ``(#N)``. Other commits: a first line that
ends in ``(#N)`` (the last one, where several follow each other), as GitHub writes it when it squashes. A
number anywhere else in the line is most likely an issue and is not used. ``owner/name#N`` counts only where
that is the repository itself.
"""

from __future__ import annotations

import re

_MERGE = re.compile(
    r"^(?:Merge pull request|Merge PR|Pull request|Auto merge of|Merge) "
    r"(?P<repo>[\w.-]+/[\w.-]+)?#(?P<number>\d+)\b(?! #\d)"
    r"|^Merged PR (?P<azure>\d+)\b|\(pull request #(?P<bitbucket>\d+)\)$",
    re.IGNORECASE,
)
_ENDING = re.compile(r"\((?:#|GH-)(?P<number>\d+)\)\s*$")


def merge_number(subject: str, full_name: str) -> int | None:
    """The pull request that a merge commit with this first line merged; None if it names none."""
    match = _MERGE.search(subject)
    if match is None:
        return squash_number(subject)
    if match["repo"] and match["repo"].lower() != full_name.lower():
        return None
    return int(match["number"] or match["azure"] or match["bitbucket"])


def squash_number(subject: str) -> int | None:
    """The pull request that a commit with this first line was squashed from; None if it names none."""
    match = _ENDING.search(subject)
    return int(match["number"]) if match else None


def bare_title(subject: str) -> str:
    """A squash subject without the number that GitHub appended."""
    return _ENDING.sub("", subject).rstrip()
