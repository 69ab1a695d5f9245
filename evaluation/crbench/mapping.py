"""From a fix to the one pull request that brought its bug in (CR-Bench, Algorithm 1, lines 3 to 7).

The removed lines are blamed at the base commit, each commit is traced to its pull request, and the instance
is kept if that makes exactly one. Commits without a pull request count for nothing, as in the
paper's union over GitHub's answers; ``unmapped="discard"`` lets a single one disqualify. Lines are blamed as git
does by default: renames are followed, a change of white space is a change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from bot.code.change.diff import FileDiff, Hunk, parse
from bot.code.change.file_classes import is_test
from bot.core.errors import BouncerError
from bot.core.frozen import Frozen, Lenient
from bot.core.text import amount
from evaluation.crbench.pulls import PullSource
from evaluation.git.repository import GitError, GitRepository

_DOC_FOLDERS = frozenset({"doc", "docs", "documentation"})
#: Lines of context around a change in a diff of git's.
_CONTEXT = 3
_DOC_SUFFIXES = frozenset({".md", ".rst", ".adoc"})


class FixError(BouncerError):
    """A patch that cannot be read, or that does not belong to the commit it is said to fix."""


def parse_fix(patch: str) -> tuple[FileDiff, ...]:
    """Every file of a fix. Raises FixError if a part of the patch cannot be read.

    Up to three blank lines of context are put back at the end if the published patch lacks them.
    """
    text = patch.removesuffix("\n") + "\n"
    for blank in range(_CONTEXT + 1):
        diff = parse(text + " \n" * blank)
        if not diff.flaws:
            return diff.files
    raise FixError(f"the patch cannot be read: {parse(text).flaws[0]}")


def is_code(path: str) -> bool:
    """Return True if a path is neither a test nor prose about the program: only lines of code are blamed."""
    file = PurePosixPath(path)
    in_docs = any(part.lower() in _DOC_FOLDERS for part in file.parts[:-1])
    return not (is_test(path) or in_docs or file.suffix.lower() in _DOC_SUFFIXES)


def removed_lines(file: FileDiff, content: bytes) -> tuple[int, ...]:
    """The 1-based numbers, in ``content``, of the lines that ``file`` takes away, ascending.

    Each hunk is looked for by its text, context included; if it occurs several times, the place nearest to
    the header's number (moved by as much as the hunk before it) wins. If the context differs, it is dropped
    line by line from both ends. Raises FixError if a hunk is nowhere.
    """
    lines = [line.removesuffix("\r") for line in content.decode("utf-8", "replace").split("\n")]
    removed: list[int] = []
    shift = floor = 0
    for hunk in file.hunks:
        if not any(line.mark == "-" for line in hunk.lines):
            continue
        place = _locate(hunk, lines, hunk.old_start - 1 + shift, floor)
        if place is None:
            raise FixError(f"removed lines of {file.old_path} (line {hunk.old_start}) are not in the base commit")
        shift = place - (hunk.old_start - 1)
        old = [line for line in hunk.lines if line.mark != "+"]
        numbers = [place + index + 1 for index, line in enumerate(old) if line.mark == "-"]
        floor = numbers[-1]
        removed += numbers
    return tuple(removed)


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as inclusive runs: 3 4 5 9 -> (3, 5) (9, 9)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] + 1 == number:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _locate(hunk: Hunk, lines: list[str], expected: int, floor: int) -> int | None:
    """The place (0-based) of the hunk's first old line; its removed lines start at ``floor`` or later."""
    old = [line for line in hunk.lines if line.mark != "+"]
    texts = [line.text for line in old]
    removed = [index for index, line in enumerate(old) if line.mark == "-"]
    first, last = removed[0], removed[-1] + 1
    for dropped in range(max(first, len(texts) - last) + 1):
        start, stop = min(dropped, first), max(len(texts) - dropped, last)
        needle = texts[start:stop]
        places = [
            place - start
            for place in range(len(lines) - len(needle) + 1)
            if lines[place] == needle[0] and lines[place : place + len(needle)] == needle
        ]
        if usable := [place for place in places if place + first >= floor]:
            return min(usable, key=lambda place: (abs(place - expected), place))
    return None


_ENTRY = re.compile(rb"([0-9a-f]{40}) \d+ \d+")


def blame_fix(repository: GitRepository, base: str, patch: str) -> dict[str, int]:
    """Commit -> how many of the lines that ``patch`` removes it wrote; empty if the fix only adds.

    Raises FixError if the patch does not belong to ``base``, GitError if git fails.
    """
    blamed: Counter[str] = Counter()
    for file in parse_fix(patch):
        path = file.old_path
        if path is None or not file.removed or not is_code(path):
            continue
        content = repository.blob(base, path)
        if content is None:
            raise FixError(f"{path} is not in the base commit")
        line_ranges = [f"-L{first},{last}" for first, last in ranges(removed_lines(file, content))]
        output = repository.run("blame", "--porcelain", "--no-textconv", *line_ranges, base, "--", path)
        entries = map(_ENTRY.match, output.split(b"\n"))  # a line of code begins with a tab
        blamed.update(entry[1].decode("ascii") for entry in entries if entry)
    return dict(blamed)


#: What becomes of an instance some of whose blamed commits no pull request brought in: it stays, or is discarded.
Unmapped = Literal["ignore", "discard"]

#: Rows of which only a part is known hold null, or nothing.
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]

_SHA = re.compile(r"[0-9a-f]{40}")


class Instance(Lenient):
    """A fixed bug, as SWE-bench describes one. Other fields of a row are not read."""

    instance_id: str
    repo: str = Field(description="owner/name")
    base_commit: Text = Field("", description="full SHA of the commit that the fix applies to")
    patch: Text = Field("", description="the fix, a unified diff without its tests")
    problem_statement: Text = Field("", description="title and body of the issue")


class MappedInstance(Frozen):
    """The result of Algorithm 1 for one instance: a line of ``--until mapping``."""

    instance_id: str
    repo: str
    blame_commits: tuple[str, ...] = Field((), description="full SHAs that wrote the removed lines, sorted")
    prs: tuple[int, ...] = Field((), description="numbers of the pull requests that brought them in, ascending")
    unmapped_commits: tuple[str, ...] = Field((), description="those of blame_commits with no pull request")
    kept: bool
    reason: str | None = Field(None, description="why it was discarded; None if it is kept")
    unfinished: bool = Field(False, description="a step failed that may succeed later; the build tries it again")


def map_instance(
    instance: Instance, repository: GitRepository, source: PullSource, unmapped: Unmapped
) -> MappedInstance:
    """Blame and trace one instance. What cannot be read is a reason to discard it, never an error.

    ``source`` may raise TransientError or ForgeError if it uses the network; those are passed on.
    """
    reason = unusable(instance, repository)
    if reason is not None:
        return discarded(instance, reason)
    try:
        commits = tuple(sorted(blame_fix(repository, instance.base_commit, instance.patch)))
    except (FixError, GitError) as error:
        return discarded(instance, str(error))
    pulls = {commit: source.pulls_of(commit, instance.base_commit) for commit in commits}
    numbers = tuple(sorted({number for pull_numbers in pulls.values() for number in pull_numbers}))
    orphans = tuple(commit for commit, pull_numbers in pulls.items() if not pull_numbers)
    reason = _reason(instance, commits, numbers, orphans, unmapped)
    return MappedInstance(
        instance_id=instance.instance_id,
        repo=instance.repo,
        blame_commits=tuple(pulls),
        prs=numbers,
        unmapped_commits=orphans,
        kept=reason is None,
        reason=reason,
    )


def unusable(instance: Instance, repository: GitRepository) -> str | None:
    """Why an instance cannot be looked at in this clone; None if it can."""
    if not instance.patch.strip():
        return "no fix: its patch is empty"
    if not _SHA.fullmatch(instance.base_commit):
        return f"base commit {instance.base_commit!r} is not a full SHA"
    if not repository.has_commit(instance.base_commit):
        return f"base commit {instance.base_commit} is not in the clone"
    return None


def discarded(instance: Instance, reason: str) -> MappedInstance:
    """The record of an instance that could not be looked at."""
    return MappedInstance(instance_id=instance.instance_id, repo=instance.repo, kept=False, reason=reason)


def _reason(
    instance: Instance,
    commits: tuple[str, ...],
    numbers: tuple[int, ...],
    orphans: tuple[str, ...],
    unmapped: Unmapped,
) -> str | None:
    if not commits:
        excluded = any(file.old_path is not None and file.removed for file in parse_fix(instance.patch))
        why = "only tests or documentation lose lines" if excluded else "the fix only adds lines"
        return f"nothing to blame: {why}"
    if not numbers:
        return f"no pull request: {amount(len(orphans), 'commit')} came in without one"
    if len(numbers) > 1:
        return f"{len(numbers)} pull requests: {', '.join(f'#{number}' for number in numbers)}"
    if orphans and unmapped == "discard":
        return f"{amount(len(orphans), 'commit')} of {len(commits)} came in without a pull request"
    return None


def tally(mapped: Iterable[MappedInstance]) -> Counter[str]:
    """How many instances were kept, and how many went for each kind of reason."""
    counts = Counter[str]()
    for instance in mapped:
        head = (instance.reason or "").partition(":")[0]
        several = head.endswith("pull requests") and head[:1].isdecimal()
        counts["kept" if instance.kept else "several pull requests" if several else head] += 1
    return counts
