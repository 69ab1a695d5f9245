"""Rounds: after the first, only lines that changed since the last reviewed head and their dependents are reviewed.

A round leaves a hash of each changed line of the pull request, in order. So a rebase or a merge of the base branch
changes nothing, no commit has to be read again, and no code is stored.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from hashlib import sha256
from itertools import takewhile

import re2

from bot.code.change.diff import Diff, DiffLine, FileDiff, Sides
from bot.code.change.filling import Place
from bot.code.context.changed import around
from bot.code.parsing.syntax import definitions
from bot.core.actions import Decision
from bot.core.subjects import PullRequest
from bot.features.review.record import ReviewRecord
from bot.features.shared.findings import Finding
from bot.features.shared.review_history import VERDICTS, PastFindings, is_of_change

#: Characters of a line's hash: two lines of one author are not to collide.
WIDTH = 16
#: Changed lines whose hashes are kept; a larger change is reviewed as a whole each time.
MAX_LINES = 10_000
#: Pairs of lines that are compared; beyond it all lines of a file count as changed.
MAX_PAIRS = 1_000_000
#: Names that are looked for, and characters of a line in which they are.
MAX_NAMES, MAX_WIDTH = 200, 2_000


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a pull request so far."""

    number: int = 1
    """Of this round."""
    since: str = ""
    """The last reviewed head; empty if the whole change is to be reviewed."""
    reviewed: Mapping[str, str] = field(default_factory=dict)
    """The record of the last reviewed head, by path."""
    again: bool = False
    """True if the head was reviewed on another base branch."""


def rounds(past: Sequence[Decision], memory: PastFindings, pull: PullRequest) -> Rounds:
    """Return the rounds before a review. A second one of the same head and base is of the whole change.

    Rounds that were never posted do not count: in shadow mode, or because a push came before their comments.
    """
    fingerprints = {finding.fingerprint for finding in memory.findings}
    published = [decision for decision in past if _was_published(decision, fingerprints)]
    others = [decision for decision in published if not is_of_change(decision, pull)]
    reviewed_changes = {
        (decision.subject.revision, decision.record_of(ReviewRecord).base)
        for decision in others
        if decision.record_of(ReviewRecord).rounds or decision.verdict == "defects"
    }
    number = len(reviewed_changes) + 1
    again = any(decision.subject.revision == pull.revision for decision in others)
    last = next((decision for decision in reversed(others) if decision.record_of(ReviewRecord).reviewed), None)
    if last is None or len(others) < len(published):
        return Rounds(number, again=again)
    since = last.subject.revision.removeprefix("sha:")
    return Rounds(number, since, last.record_of(ReviewRecord).reviewed, again)


def _was_published(decision: Decision, fingerprints: Collection[str]) -> bool:
    """Return True for a review whose findings on lines are all among those that were posted."""
    if decision.kind != "review" or decision.verdict not in VERDICTS or not decision.actions:
        return False
    posted = decision.record_of(ReviewRecord).posted
    return all(finding.fingerprint in fingerprints for finding in posted if finding.line)


def line_hashes(diff: Diff, paths: Collection[str]) -> dict[str, str]:
    """Return the hashes of the changed lines of these files; nothing if there are too many."""
    files = [file for file in diff.files if file.path in paths]
    if sum(file.added + file.removed for file in files) > MAX_LINES:
        return {}
    return {file.path: "".join(_hash(line) for _, line in _changed(file)) for file in files}


def _hash(line: DiffLine) -> str:
    content = f"{line.mark}{line.text}".encode("utf-8", "surrogatepass")
    return b64encode(sha256(content).digest()[: WIDTH * 3 // 4]).decode()


def _lines(file: FileDiff) -> Iterator[tuple[Place, DiffLine]]:
    for number, hunk in enumerate(file.hunks):
        for at, line in enumerate(hunk.lines):
            yield (number, at), line


def _changed(file: FileDiff) -> list[tuple[Place, DiffLine]]:
    return [(place, line) for place, line in _lines(file) if line.mark != " "]


class Scope:
    """The lines of a change to review: all of them, but for files of which ``reviewed`` has an earlier head."""

    def __init__(self, diff: Diff, reviewed: Mapping[str, str], sides: Sides | None = None) -> None:
        self._diff = diff
        self._remaining_pairs = MAX_PAIRS
        #: Lines to review in the files that were reviewed before.
        self._places = {
            file.path: self._new_lines(file, reviewed[file.path])
            for file in diff.files
            if file.path in reviewed and len(diff.named(file.path)) == 1
        }
        #: The number of lines that changed, by path; those that depend on them do not count.
        self.changed = {file.path: file.added + file.removed for file in diff.files}
        self.changed |= {path: len(places) for path, places in self._places.items()}
        if self._places:
            self._add_dependents(sides)

    @property
    def unchanged(self) -> dict[str, frozenset[int]]:
        """The hunks without a line to review, counted from 0, of each file that was reviewed before."""
        return {
            file.path: frozenset(range(len(file.hunks))) - {hunk for hunk, _ in self._places[file.path]}
            for file in self._diff.files
            if file.path in self._places
        }

    def holds(self, finding: Finding) -> bool:
        """Return True if a finding is about a line to review; one about a whole file, if the file has any."""
        places = self._places.get(finding.path)
        if places is None:
            return True
        (file,) = self._diff.named(finding.path)
        numbers = {file.hunks[hunk].lines[at].number(finding.side) for hunk, at in places}
        if finding.line is None:
            return bool(places)
        return any(number in numbers for number in range(finding.start_line or finding.line, finding.line + 1))

    def _new_lines(self, file: FileDiff, before: str) -> set[Place]:
        """Return the changed lines that were not in the diff before, and those next to where one went away."""
        lines = _changed(file)
        new = [_hash(line) for _, line in lines]
        old = [before[start : start + WIDTH] for start in range(0, len(before), WIDTH)]
        head = _count_equal(new, old)
        tail = _count_equal(reversed(new[head:]), reversed(old[head:]))
        new, old = new[head : len(new) - tail], old[head : len(old) - tail]
        self._remaining_pairs -= len(new) * len(old)
        numbers: set[int] = set()
        if self._remaining_pairs < 0:
            numbers.update(range(head, head + len(new)))
        else:
            for tag, _, _, first, last in SequenceMatcher(None, old, new).get_opcodes():
                if tag == "delete":
                    numbers.update({head + first - 1, head + first})
                elif tag != "equal":
                    numbers.update(range(head + first, head + last))
        return {lines[number][0] for number in numbers if 0 <= number < len(lines)}

    def _add_dependents(self, sides: Sides | None) -> None:
        """Add lines that mention a function or class around a new line, or in the same file a name it sets."""
        names: set[str] = set()
        names_in_file: dict[str, set[str]] = {}
        for file in self._diff.files:
            places = self._places.get(file.path)
            lines = [line for place, line in _changed(file) if places is None or place in places]
            text = "\n".join(line.text[:MAX_WIDTH] for line in lines)
            names.update(_DEFINITION.findall(text))
            names_in_file.setdefault(file.path, set()).update(_ASSIGNMENT.findall(text))
            source = sides.after(file) if sides and lines else None
            if source is not None:
                numbers = {line.new for line in lines if line.new is not None}
                names.update(outer.name for outer, _ in around(definitions(source, file.path), numbers))
        for path, places in self._places.items():
            pattern = _mentioning(names | names_in_file[path])
            if pattern is not None:
                (file,) = self._diff.named(path)
                places.update(place for place, line in _lines(file) if pattern.search(line.text[:MAX_WIDTH]))


def _count_equal(left: Iterable[str], right: Iterable[str]) -> int:
    """Return how many items are equal before the first difference."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


_KEYWORDS = r"def|class|func|fun|fn|function|struct|enum|interface|trait|type|record|module|macro_rules!"
_DEFINITION = re2.compile(rf"\b(?:{_KEYWORDS})\s+([A-Za-z_$][\w$]*)")
_ASSIGNMENT = re2.compile(
    r"([A-Za-z_$][\w$]*)(?:\[[^\[\]\n]*\])?(?:\s*:\s*[\w.$\[\], |]+)?\s*(?::|[-+*/%&|^])?=(?:[^=>]|$)"
)


def _mentioning(names: Collection[str]) -> re2.Pattern[str] | None:
    """Return a pattern for lines that mention one of the names; None if all of them are too short or common."""
    words = sorted(name for name in names if len(name) > 2 and name not in ("self", "this"))[:MAX_NAMES]
    if not words:
        return None
    return re2.compile(rf"(?:^|[^\w$])(?:{'|'.join(map(re2.escape, words))})(?:[^\w$]|$)")
