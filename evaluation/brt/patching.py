"""Changes to texts of a checkout that is a stranger's: nothing is written, and links in it lead nowhere.

Diffs fit as with ``git apply``: every line of a hunk's old side must be there, in one piece; where the line
numbers are off the nearest place counts. There is no fuzz: a hunk whose context differs is rejected. Other than
git, a hunk without context at its one end need not lie at that end of the file.
"""

from __future__ import annotations

import ast
import difflib
import io
import os
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from bot.code.change.sections import unquote
from bot.core.errors import BouncerError

_NOWHERE = "/dev/null"
_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")


class PatchRejected(BouncerError):
    """The diff is malformed, does not fit, or does more than adding tests; the message says which, and where."""


def apply(patch: str, read: Callable[[str], str | None]) -> dict[str, str]:
    """The texts of the files that ``patch`` changes, by path.

    ``read`` gives a file's present text, None if there is no such file. Raises PatchRejected.
    """
    try:
        files = PatchSet(_without_returns(patch if patch.endswith("\n") else patch + "\n"))
    except UnidiffParseError as error:
        raise PatchRejected(f"not a unified diff: {str(error).strip()}") from error
    changed: dict[str, str] = {}
    for file in files:
        if file.target_file == _NOWHERE:
            raise PatchRejected(f"{_stripped(file.source_file)}: deleted, where tests are to be added")
        path = _stripped(file.target_file)
        if path in changed:
            raise PatchRejected(f"{path}: changed twice")
        if file.is_binary_file:
            raise PatchRejected(f"{path}: a binary change")
        if len(file) or file.is_rename or file.is_added_file:
            changed[path] = _patched(file, path, read)
    if not changed:
        raise PatchRejected("no change in it")
    return changed


def _without_returns(patch: str) -> str:
    """Remove carriage returns at the ends of headers, as git does; in a hunk they belong to the file's lines."""
    lines: list[str] = []
    old = new = 0  # lines of the hunk that are still to come
    for line in io.StringIO(patch, newline="\n"):
        if old > 0 or new > 0:
            old -= line[0] in " -\r\n"
            new -= line[0] in " +\r\n"
            lines.append(line)
        else:
            if header := _HUNK.match(line):
                old, new = (1 if count is None else int(count) for count in header.groups())
            lines.append(line.replace("\r\n", "\n"))
    return "".join(lines)


def _stripped(name: str) -> str:
    """The path without git's quotes, ``a/`` or ``b/``. Raises PatchRejected for one that leads outside."""
    path = unquote(name)
    path = path[2:] if path.startswith(("a/", "b/")) else path
    if not is_inside(path):
        raise PatchRejected(f"{name!r}: no path inside of the repository")
    return path


def is_inside(path: str) -> bool:
    """Return True if a path leads into a repository, and not to git's own files."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] != "/" and not {"..", ".git"} & set(parts) and path.isprintable()


def _patched(file: PatchedFile, path: str, read: Callable[[str], str | None]) -> str:
    if file.source_file == _NOWHERE:
        if read(path) is not None:
            raise PatchRejected(f"{path}: to be created, and there already")
        lines: list[str] = []
    else:
        source = _stripped(file.source_file)
        text = read(source)
        if text is None:
            raise PatchRejected(f"{source}: no such file")
        # Not splitlines: a form feed or a Unicode line separator ends no line of a diff.
        lines = list(io.StringIO(text, newline="\n"))
    return _with_hunks(file, path, lines)


def _with_hunks(file: PatchedFile, path: str, lines: list[str]) -> str:
    position = drift = 0
    for number, hunk in enumerate(file, 1):
        old, new = _sides(hunk)
        # The new side's numbers hold in a file that has all earlier hunks; an empty side names the line before.
        expected = hunk.target_start - (1 if hunk.target_length else 0) + drift
        place = _nearest(lines, old, _fixed_place(hunk, len(lines) - len(old)), expected, position)
        if place is None:
            raise PatchRejected(f"{path}: hunk {number} (line {hunk.source_start}) does not fit")
        lines[place : place + len(old)] = new
        position, drift = place + len(new), drift + place - expected
    return "".join(lines)


def _sides(hunk: Hunk) -> tuple[list[str], list[str]]:
    """The lines that a hunk looks for, and those that it leaves."""
    old: list[str] = []
    new: list[str] = []
    touched: tuple[list[str], ...] = ()
    for line in hunk:
        if line.line_type == "\\":  # no newline at the end of the line before
            for side in touched:
                side[-1] = side[-1].removesuffix("\n")
            continue
        touched = tuple(side for side, mark in ((old, "+"), (new, "-")) if line.line_type != mark)
        for side in touched:
            side.append(line.value)
    return old, new


def _fixed_place(hunk: Hunk, last: int) -> int | None:
    """Return the place on which ``git apply`` insists: the end if no context follows, the start for line 1."""
    kinds = [line.line_type for line in hunk if line.line_type != "\\"]
    if kinds[-1] != " ":
        return last
    return 0 if hunk.source_start <= 1 else None


def _nearest(lines: Sequence[str], old: list[str], fixed: int | None, expected: int, first: int) -> int | None:
    """Return the line at which ``old`` begins, from ``first`` on: ``fixed``, else the nearest to ``expected``."""
    if not old:
        # Nothing to recognise the place by: only an empty file leaves no doubt.
        return None if lines else 0
    last = len(lines) - len(old)
    places = sorted(range(first, last + 1), key=lambda place: (place != fixed, abs(place - expected)))
    return next((place for place in places if lines[place : place + len(old)] == old), None)


def difference(path: str, before: str | None, after: str) -> str:
    """The unified diff that makes a file, None if there is none yet, hold a text."""
    lines = difflib.unified_diff(
        io.StringIO(before or "", newline="\n").readlines(),
        io.StringIO(after, newline="\n").readlines(),
        "/dev/null" if before is None else f"a/{path}",
        f"b/{path}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def python_tree(text: str) -> ast.Module | None:
    """Return the syntax tree of an untrusted file; None if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


#: The largest file that a candidate may change, bytes.
_MAX_FILE = 8 << 20


def read_text(root: Path, path: str) -> str | None:
    """The text of ``path`` below ``root``, None if there is no such file; odd bytes survive as surrogates.

    Raises PatchRejected if it is no regular file, lies behind a link, or is too large.
    """
    try:
        data = _read(root, PurePosixPath(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PatchRejected(f"{path}: {error.strerror}") from error
    if len(data) > _MAX_FILE:
        raise PatchRejected(f"{path}: over {_MAX_FILE >> 20} MiB")
    return data.decode("utf-8", "surrogateescape")


def _read(root: Path, path: PurePosixPath) -> bytes:
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        for part in path.parts[:-1]:
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    with os.fdopen(file, "rb") as stream:
        return stream.read(_MAX_FILE + 1)
