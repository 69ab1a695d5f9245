"""Which commits wrote the lines that a fix takes away (CR-Bench, Algorithm 1, line 3).

``git blame`` at the base commit with git's defaults: a renamed file is followed, white space counts like
anything else, and a line that was moved between files belongs to the commit that moved it. ``BlameOptions``
changes the last two. Test files are left out, and so is documentation: neither holds the bug, and who
edited a changelog last says nothing about who introduced it. One git process a file, however many lines.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from bot.review.diff import FileDiff
from evaluation.crbench.fix import FixError, is_documentation, is_test, parse_fix, ranges, removed_lines
from evaluation.git.repository import GitRepository

_ENTRY = re.compile(rb"([0-9a-f]{40,64}) \d+ \d+")


@dataclass(frozen=True)
class BlameOptions:
    """What differs from git's defaults."""

    ignore_whitespace: bool = False
    follow_moves: bool = False
    include_tests: bool = False
    include_documentation: bool = False

    def arguments(self) -> list[str]:
        """Further arguments of ``git blame``."""
        whitespace = ["-w"] if self.ignore_whitespace else []
        return whitespace + (["-M", "-C"] if self.follow_moves else [])

    def counts(self, path: str) -> bool:
        """Whether a file's lines are blamed."""
        return (self.include_tests or not is_test(path)) and (
            self.include_documentation or not is_documentation(path)
        )


def blame_fix(repository: GitRepository, base: str, patch: str, options: BlameOptions) -> dict[str, int]:
    """Commit -> how many of the lines that ``patch`` removes it wrote; empty where the fix only adds.

    Raises FixError where the patch does not belong to ``base``, GitError where git fails.
    """
    blamed: Counter[str] = Counter()
    for file in parse_fix(patch):
        if file.old_path is not None and file.removed and options.counts(file.old_path):
            blamed += blame_file(repository, base, file, file.old_path, options)
    return dict(blamed)


def blame_file(
    repository: GitRepository, base: str, file: FileDiff, path: str, options: BlameOptions
) -> Counter[str]:
    """The same for one file of a fix."""
    content = repository.blob(base, path)
    if content is None:
        raise FixError(f"{path} is not in the base commit")
    wanted = [f"-L{first},{last}" for first, last in ranges(removed_lines(file, content))]
    output = repository.run(
        "blame", "--porcelain", "--no-textconv", *options.arguments(), *wanted, base, "--", path
    )
    return Counter(
        entry[1].decode("ascii")
        for entry in (_ENTRY.match(line) for line in output.split(b"\n") if not line.startswith(b"\t"))
        if entry
    )
