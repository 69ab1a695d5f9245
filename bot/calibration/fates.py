"""Outcomes of past issues and pull requests, by rules that a maintainer can check. Pure.

An issue was *actionable* if a merged pull request closed it. It was probably not if it was closed as not planned,
or if it had a label that asks for information and its author did not reply afterwards. An issue that was closed
otherwise counts neither way. A merged pull request was *good* if nothing reverted or repaired it within 30 days.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from bot.core.subjects import Fate
from bot.github.protocol import Message, PastIssue, PastPull

#: A merge that was not reverted or repaired within this time was good.
GRACE = timedelta(days=30)

#: Labels that ask the author for more, as projects spell them: in lower case, with hyphens for spaces.
ASKING = frozenset(
    {
        "needs-info", "needs-information", "needs-more-info", "needs-more-information", "more-information-needed",
        "need-info", "needinfo", "info-needed", "needs-repro", "needs-reproduction", "awaiting-response",
        "waiting-for-response", "awaiting-author", "waiting-for-author", "needs-feedback", "needs-details",
        "needs-clarification", "missing-information", "cannot-reproduce", "needs-author-feedback",
    }
)  # fmt: skip

_COMMIT = re.compile(r"\breverts? commit ([0-9a-f]{7,40})\b", re.IGNORECASE)
_PULL = re.compile(r"\breverts?:?\s+(?:[\w.-]+/[\w.-]+)?#(\d{1,9})\b", re.IGNORECASE)
#: Words that blame an earlier change, shortly before its number.
_BLAMES = re.compile(
    r"\b(?:regress\w*|introduced|broken?|caused|bug|breakage|mistake|repairs?|repaired|fix(?:es)?\s+up)\b"
    r"(?:\s+(?:in|by|from|since|with|of|after|the|of|merging|pull|request|pr)){1,4}\s+#(\d{1,9})\b",
    re.IGNORECASE,
)


def undone(text: str) -> frozenset[int]:
    """Return the numbers of the pull requests that a pull request or commit with this text reverts."""
    return frozenset(int(number) for number in _PULL.findall(text))


def blamed(text: str) -> frozenset[int]:
    """Return the numbers of the pull requests that a text says it repairs."""
    return frozenset(int(number) for number in _BLAMES.findall(text))


def of_issue(past: PastIssue, asking: Iterable[str] = ()) -> Fate | None:
    """Return the outcome of an issue, or None if it is unclear.

    ``asking``: labels that ask for information besides ``ASKING``.
    """
    if past.closed_by:
        return Fate(good=True, why=f"closed by the merged pull request #{past.closed_by[0]}")
    if past.state_reason == "not_planned":
        return Fate(good=False, why="closed as not planned")
    for label in past.labelled:
        if asks(label.name, asking) and (past.author_spoke_at is None or past.author_spoke_at <= label.at):
            return Fate(good=False, why=f"labelled {label.name}, and its author did not answer")
    return None


def asks(label: str, more: Iterable[str] = ()) -> bool:
    """Return True if a label asks the author for information. ``more``: more such labels."""
    return _plain(label) in ASKING | {_plain(name) for name in more}


class Undoings:
    """Reverts and repairs in a repository's history."""

    def __init__(self, pulls: Sequence[PastPull], messages: Sequence[Message], now: datetime) -> None:
        self._pulls = pulls
        self._now = now
        self._by_sha = [(sha.lower(), message) for message in messages for sha in _COMMIT.findall(message.text)]
        self._by_number: dict[int, list[Message]] = {}
        for message in messages:
            for number in undone(message.text):
                self._by_number.setdefault(number, []).append(message)

    def of_pull(self, past: PastPull) -> Fate | None:
        """Return the outcome of a merged pull request, or None if it is too recent."""
        why = next(self._reasons(past), None)
        if why is not None:
            return Fate(good=False, why=why)
        if self._now - past.merged_at < GRACE:
            return None
        return Fate(good=True, why="merged, and neither reverted nor repaired within 30 days")

    def _reasons(self, past: PastPull) -> Iterator[str]:
        number, issues = past.pull.number, {issue.number for issue in past.issues}
        for message in self._by_number.get(number, ()):
            if _soon(past, message.at):
                yield f"reverted by {message.sha[:10]}"
        for sha, message in self._by_sha:
            if past.merge_sha and past.merge_sha.startswith(sha) and _soon(past, message.at):
                yield f"reverted by {message.sha[:10]}"
        for later in self._pulls:
            if later.pull.number == number or not _soon(past, later.merged_at):
                continue
            text = f"{later.pull.title}\n{later.pull.body}"
            if number in undone(text):
                yield f"reverted by #{later.pull.number}"
            elif number in blamed(text):
                yield f"repaired by #{later.pull.number}"
            elif issues & {issue.number for issue in later.issues}:
                yield f"its issue was closed again by #{later.pull.number}"
        if any(_soon(past, at) for at in past.reopened):
            yield "its issue was reopened"


def _soon(past: PastPull, at: datetime) -> bool:
    return past.merged_at < at <= past.merged_at + GRACE


def _plain(label: str) -> str:
    """Normalise a label: without prefix, in lower case, with hyphens."""
    last = re.split(r"[:/]", label)[-1]
    return re.sub(r"[\s_-]+", "-", last.strip().lower())
