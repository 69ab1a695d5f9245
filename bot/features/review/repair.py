"""The repair that a finding proposes, tried on the code: it has to apply, and to change what the code does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, islice

from bot.code.change.diff import Diff, FileDiff
from bot.code.change.quotes import bare, offsets, without_margin
from bot.code.parsing.grammars import MAX_BYTES
from bot.core.text import squeeze
from bot.features.review.anchoring import files_named, in_indentation
from bot.features.review.meaning import same
from bot.features.review.record import RepairFlaw
from bot.features.shared.findings import Edit, Finding

#: Places that are compared.
MAX_MATCHES = 1_000


@dataclass
class Repairs:
    """Tries the repair of each finding once. ``text`` returns a file after the change, None if it is unknown."""

    diff: Diff
    text: Callable[[str], str | None]
    _flaws: dict[tuple[str, tuple[Edit, ...]], RepairFlaw | None] = field(default_factory=dict)

    def flaw(self, finding: Finding) -> RepairFlaw | None:
        """Return what is wrong with the repair; None if nothing is, or if it cannot be tried."""
        key = finding.fingerprint, finding.repair
        if key not in self._flaws:
            self._flaws[key] = self._try(finding)
        return self._flaws[key]

    def _try(self, finding: Finding) -> RepairFlaw | None:
        before: dict[str, list[str]] = {}
        after: dict[str, list[str]] = {}
        for edit in finding.repair:
            files = files_named(self.diff, edit.path)
            path = files[0].path if files else edit.path.strip().strip("`")
            whole = self._whole(path)
            if path not in before:
                before[path] = _hunk_texts(files) if whole is None else [whole]
                after[path] = list(before[path])
            near = finding.line if finding.line and path == finding.path and whole is not None else 1
            if not _apply(edit, after[path], near):
                return None if whole is None else "repair_does_not_apply"
        if not before or not _are_same(before, after, comments=False):
            return None
        is_for_readers = self._is_about_comment(finding) and not _are_same(before, after, comments=True)
        return None if is_for_readers else "repair_changes_nothing"

    def _whole(self, path: str) -> str | None:
        """Return a file after the change; None if it is unknown or too large to compare."""
        text = self.text(path)
        return None if text is None or len(text) > MAX_BYTES else text.replace("\r\n", "\n")

    def _is_about_comment(self, finding: Finding) -> bool:
        """Return True if the lines of the finding hold no code, so that a change of comments can repair it."""
        text = self.text(finding.path)
        if not text or finding.line is None or finding.side == "LEFT":
            return False
        lines = text.split("\n")
        rest = lines[: (finding.start_line or finding.line) - 1] + lines[finding.line :]
        return same(text, "\n".join(rest), finding.path, comments=False)


def _hunk_texts(files: Iterable[FileDiff]) -> list[str]:
    """Return the text of each hunk after the change."""
    hunks = (hunk for file in files for hunk in file.hunks)
    return ["\n".join(line.text for line in hunk.lines if line.mark != "-") for hunk in hunks]


def _apply(edit: Edit, texts: list[str], near: int) -> bool:
    """Edit the first text in which the edit has a place. Return True if there is one."""
    for number, text in enumerate(texts):
        new_text = replaced(text, edit, near)
        if new_text is not None:
            texts[number] = new_text
            return True
    return False


def _are_same(before: Mapping[str, list[str]], after: Mapping[str, list[str]], *, comments: bool) -> bool:
    """Return True if all texts certainly mean the same, by path."""
    return all(
        same(old, new, path, comments=comments)
        for path, texts in before.items()
        for old, new in zip(texts, after[path], strict=True)
    )


def replaced(text: str, edit: Edit, near: int) -> str | None:
    """Return the text with the edit at its place nearest to a line (from 1); None if it has none."""
    lines = text.split("\n")
    code, numbers, starts = _squeezed(text)
    for old, new in ((edit.old, edit.new), (without_margin(edit.old), without_margin(edit.new))):
        pattern = [line for line in bare(old).split("\n") if line]
        matches = islice(offsets("\n".join(["", *pattern, ""]), code), MAX_MATCHES) if pattern else ()
        places = [bisect_left(starts, at) for at in matches]
        if places:
            at = min(places, key=lambda at: abs(numbers[at] + 1 - near))
            first, end = numbers[at], numbers[at + len(pattern) - 1] + 1
            return "\n".join(lines[:first] + in_indentation(_lines(new), old, lines[first:end]) + lines[end:])
    part = edit.old.strip()
    numbers_with_part = [number for number, line in enumerate(lines) if part and part in line]
    if not numbers_with_part:
        return None
    number = min(numbers_with_part, key=lambda number: abs(number + 1 - near))
    lines[number] = lines[number].replace(part, edit.new.strip(), 1)
    return "\n".join(lines)


@lru_cache(maxsize=2)
def _squeezed(text: str) -> tuple[str, list[int], list[int]]:
    """Return the squeezed lines that are not blank, with their numbers, and where they start."""
    pairs = [(number, words) for number, line in enumerate(text.split("\n")) if (words := squeeze(line))]
    starts = accumulate((len(words) + 1 for _, words in pairs), initial=0)
    return "\n".join(["", *(words for _, words in pairs), ""]), [number for number, _ in pairs], list(starts)


def _lines(new: str) -> list[str]:
    """Return the lines of a replacement, without a fence around them."""
    lines = new.replace("\r\n", "\n").strip("\n").split("\n")
    if len(lines) > 1 and lines[0].strip().startswith("```"):
        lines = lines[1:-1] if lines[-1].strip() == "```" else lines[1:]
    return lines if any(line.strip() for line in lines) else []
