"""Unified diffs as git writes them, and the lines of them that take a comment."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.simgithub.state import Side

MAX_PATCH_BYTES = 1_000_000
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class FileChange:
    """One file of a diff; ``patch`` is None if GitHub would not show it (binary, or over 1 MB)."""

    path: str
    status: str
    patch: str | None
    additions: int
    deletions: int


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[FileChange]:
    """Return every file that differs, by path. A rename is a removal and an addition."""
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return [_change(path, before.get(path), after.get(path)) for path in paths]


def _change(path: str, old: bytes | None, new: bytes | None) -> FileChange:
    status = "added" if old is None else "removed" if new is None else "modified"
    if b"\0" in (old or b"") + (new or b""):
        return FileChange(path, status, None, 0, 0)
    lines = list(_hunks(old or b"", new or b""))
    patch = "\n".join(lines)
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return FileChange(path, status, patch if len(patch) <= MAX_PATCH_BYTES else None, added, removed)


def _hunks(old: bytes, new: bytes) -> Iterator[str]:
    body = difflib.unified_diff(_lines(old), _lines(new), lineterm="\n")
    for number, line in enumerate(body):
        if number < 2:  # the two file headers; git writes its own
            continue
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _lines(text: bytes) -> list[str]:
    # Only a line feed ends a line for git; str.splitlines knows a dozen others.
    return re.findall(r"[^\n]*\n|[^\n]+", text.decode("utf-8", "replace"))


def unified(files: list[FileChange]) -> str:
    return "".join(_file(file) for file in files)


def _file(change: FileChange) -> str:
    old, new = _quoted("a/" + change.path), _quoted("b/" + change.path)
    head = f"diff --git {old} {new}\n"
    head += {"added": "new file mode 100644\n", "removed": "deleted file mode 100644\n"}.get(change.status, "")
    source = "/dev/null" if change.status == "added" else old
    target = "/dev/null" if change.status == "removed" else new
    if change.patch is None:
        return f"{head}Binary files {source} and {target} differ\n"
    if not change.patch:
        return head
    return f"{head}--- {source}\n+++ {target}\n{change.patch}\n"


def _quoted(path: str) -> str:
    if re.fullmatch(r'[^"\\\x00-\x1f\x7f-\U0010ffff]*', path):
        return path
    special = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("\t"): "\\t"}
    characters = (
        special.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in path.encode("utf-8", "surrogateescape")
    )
    return f'"{"".join(characters)}"'


def commentable(patch: str) -> dict[tuple[Side, int], range]:
    """Map each line that takes a comment to the lines of the patch from the head of its hunk up to it.

    A range must stay in one hunk and on one side.
    """
    parts: dict[tuple[Side, int], range] = {}
    head = old_line = new_line = 0
    for at, line in enumerate(patch.split("\n")):
        if header := _HUNK.match(line):
            head, old_line, new_line = at, int(header[1]), int(header[3])
        elif line.startswith("+"):
            parts["RIGHT", new_line] = range(head, at + 1)
            new_line += 1
        elif line.startswith("-"):
            parts["LEFT", old_line] = range(head, at + 1)
            old_line += 1
        elif not line.startswith("\\"):
            parts["RIGHT", new_line] = parts["LEFT", old_line] = range(head, at + 1)
            old_line, new_line = old_line + 1, new_line + 1
    return parts
