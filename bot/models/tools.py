"""What a model may do while it looks around: list, read and search the files of one commit. Nothing else.

Every answer is text of bounded size; a wrong request is answered with what is wrong about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

#: Lines of a file that one reading shows, matches that one search shows, entries that one listing shows.
LINES, MATCHES, ENTRIES = 200, 40, 200
#: Characters of one answer, and of one line in it.
ANSWER, LINE = 8_000, 300
#: Bytes beyond which a file is not opened.
LARGEST = 1_000_000


class Files:
    """The files below ``folder``; links are not followed and nothing outside is reached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def list(self, path: str) -> str:
        """Folders and files directly below ``path``; the top where it is empty."""
        folder = self._inside(path)
        if folder is None or not folder.is_dir():
            return f"there is no folder {path!r}"
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries if not entry.is_symlink()]
        return _bounded(names, ENTRIES) or "the folder is empty"

    def read(self, path: str, start: int = 1) -> str:
        """Numbered lines of a file, from line ``start`` on (the first is 1)."""
        file = self._inside(path)
        if file is None or not file.is_file():
            return f"there is no file {path!r}"
        text = _text(file)
        if text is None:
            return f"{path} is not text, or too large"
        lines = text.splitlines()
        shown = [f"{number}: {line}" for number, line in enumerate(lines, start=1) if number >= start]
        return _bounded(shown, LINES) or f"{path} ends at line {len(lines)}"

    def search(self, text: str) -> str:
        """Lines that hold ``text``, whatever its case, as ``path:line: content``."""
        wanted = text.strip().lower()
        if len(wanted) < 2:
            return "search for two characters at least"
        found: list[str] = []
        for file in self._walk(self._folder):
            content = _text(file)
            if content is None or wanted not in content.lower():
                continue
            path = file.relative_to(self._folder).as_posix()
            lines = enumerate(content.splitlines(), start=1)
            found += [f"{path}:{number}: {line.strip()}" for number, line in lines if wanted in line.lower()]
            if len(found) > MATCHES:
                break
        return _bounded(found, MATCHES) or f"no file holds {text!r}"

    def _inside(self, path: str) -> Path | None:
        """The place that ``path`` names, unless it is a link, leads through one, or lies outside."""
        if "\0" in path or len(path) > 1000 or any(len(part.encode()) > 255 for part in path.split("/")):
            return None
        place = self._folder / path.strip().lstrip("/")
        return place if place.resolve() == place and place.is_relative_to(self._folder) else None

    def _walk(self, folder: Path) -> Iterator[Path]:
        for entry in sorted(folder.iterdir(), key=lambda each: each.name):
            if entry.is_symlink() or entry.name == ".git":
                continue
            if entry.is_dir():
                yield from self._walk(entry)
            elif entry.is_file():
                yield entry


def _text(file: Path) -> str | None:
    if file.stat().st_size > LARGEST:
        return None
    content = file.read_bytes()
    return None if b"\0" in content else content.decode("utf-8", "replace")


def _bounded(lines: list[str], limit: int) -> str:
    """The first lines, with a word on what was left out."""
    kept: list[str] = []
    room = ANSWER
    for line in lines[:limit]:
        short = line if len(line) <= LINE else line[:LINE] + "…"
        room -= len(short) + 1
        if room < 0:
            break
        kept.append(short)
    left = len(lines) - len(kept)
    return "\n".join([*kept, f"({left} more)"] if left else kept)
