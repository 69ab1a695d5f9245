"""A checkout of a repository as drafting reads it: its source files' text, within limits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.errors import OperatorError
from bot.reproduce.language import Language

MAX_FILES = 6_000
MAX_FILE_BYTES = 400_000
MAX_TOTAL_BYTES = 60_000_000
_SKIPPED = frozenset(
    {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env", "target", "vendor"}
)


@dataclass(frozen=True)
class Checkout:
    """What was read of a folder; paths are relative, with ``/``."""

    folder: Path
    sources: Mapping[str, str]
    """Text of the files of the repository's language."""
    tests: Mapping[str, str]
    """Those of them in which its test runner looks for tests."""
    paths: tuple[str, ...]
    """All files, sorted."""


def read_checkout(folder: Path, language: Language) -> Checkout:
    """Read a folder. Links are not followed, hidden and generated folders are skipped.

    Raises OperatorError where ``folder`` is no folder.
    """
    if not folder.is_dir():
        raise OperatorError(f"{folder}: no such folder")
    sources: dict[str, str] = {}
    paths: list[str] = []
    left = MAX_TOTAL_BYTES
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        paths.append(name)
        if PurePosixPath(name).suffix not in language.suffixes or len(sources) >= MAX_FILES:
            continue
        text = _text(path, min(left, MAX_FILE_BYTES))
        if text is not None:
            sources[name] = text
            left -= len(text)
    tests = {name: text for name, text in sources.items() if language.is_test_file(name)}
    return Checkout(folder=folder, sources=sources, tests=tests, paths=tuple(sorted(paths)))


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(files):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _text(path: Path, limit: int) -> str | None:
    if path.stat().st_size > limit:
        return None
    try:
        # Bytes, not text mode: line ends are part of a file's style and are kept.
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
