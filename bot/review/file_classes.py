"""What kind of file a path is: how urgent it is to review, its language, or why it is not reviewed at all."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import PurePosixPath

from bot.review.diff import FileDiff

# Written by programs, for programs: package managers' locks, and what vendoring and generators leave behind.
_LOCKS = re.compile(
    r"(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|conda-lock\.yml|packages\.lock\.json|go\.(?:work\.)?sum"
    r"|package\.resolved|gradle\.lockfile|bun\.lockb|[\w.-]+\.lock)$",
    re.I,
)
_VENDORED = re.compile(r"(?:^|/)(?:_?vendor(?:ed)?|node_modules|bower_components|third[_-]?party|godeps)/", re.I)
_GENERATED = re.compile(
    r"(?:[._-]min\.(?:js|mjs|css)|\.(?:js|css)\.map|_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h|swift|rb)|\.g\.dart"
    r"|\.freezed\.dart|\.designer\.(?:cs|vb)|\.g\.cs|\.generated\.\w+|_generated\.\w+|\.snap|\.svg)$",
    re.I,
)
# The words with which generators sign, when they stand in the first lines of a file.
_SIGNED = re.compile(r"@generated\b|\bcode generated\b.*\bdo not edit\b|\bautomatically generated\b", re.I)
_SIGNED_WITHIN = 5
# Longer on average than people write.
_MINIFIED = 400

_RISKY = re.compile(
    r"(?:^|[/_.-])(?:auth\w*|login|session\w*|passw\w*|secret\w*|crypt\w*|token\w*|permission\w*|acl|security|"
    r"payment\w*|billing|migrations?|sql|query|queries|lock\w*|thread\w*|async\w*|concurren\w*|cache\w*|"
    r"serializ\w*|deserializ\w*|pickle|exec\w*|upload\w*|webhook\w*)(?=$|[/_.-])",
    re.I,
)
_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__|fixtures)/|(?:^|/)(?:test_|conftest)|[._-](?:test|spec)\."
)
_TEXT = re.compile(r"\.(?:md|rst|txt|adoc|pot?|csv|tsv|ipynb|html?|s?css|less)$", re.I)
_SETTINGS = re.compile(r"\.(?:jsonc?|ya?ml|toml|ini|cfg|conf|xml|properties|env|gitignore|editorconfig)$", re.I)

_LANGUAGES = {
    "py": "python", "pyi": "python", "pyx": "cython", "js": "javascript", "mjs": "javascript", "jsx": "javascript",
    "ts": "typescript", "tsx": "typescript", "java": "java", "kt": "kotlin", "scala": "scala", "go": "go",
    "rs": "rust", "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "hpp": "c++", "cs": "c#", "rb": "ruby",
    "php": "php", "swift": "swift", "sh": "shell", "sql": "sql", "lua": "lua", "r": "r", "jl": "julia",
}  # fmt: skip


class Risk(IntEnum):
    """How much a defect in a file of this kind tends to cost; the smaller, the sooner it is reviewed."""

    SENSITIVE = 0
    SOURCE = 1
    SETTINGS = 2
    TEST = 3
    TEXT = 4
    DELETED = 5


def language(path: str) -> str:
    """The programming language by the file's ending; empty where there is none or it is unknown."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lstrip(".").lower(), "")


def risk(file: FileDiff) -> Risk:
    """The urgency of a file: by what happened to it, where it lies and what it is called."""
    if file.change == "deleted":
        return Risk.DELETED
    if _TEST.search(file.path):
        return Risk.TEST
    if _TEXT.search(file.path):
        return Risk.TEXT
    if _SETTINGS.search(file.path):
        return Risk.SETTINGS
    return Risk.SENSITIVE if _RISKY.search(file.path) else Risk.SOURCE


def left_out(file: FileDiff) -> str | None:
    """Why a file is not worth a reviewer's time; None where it is."""
    name = PurePosixPath(file.path).name
    if file.binary:
        return "binary"
    if _LOCKS.fullmatch(name):
        return "lock file"
    if _VENDORED.search(file.path):
        return "vendored"
    if _GENERATED.search(name) or _is_signed(file):
        return "generated"
    return "minified" if _is_minified(file) else None


def _is_signed(file: FileDiff) -> bool:
    first = file.hunks[0].lines if file.hunks and file.hunks[0].new_start <= 1 else ()
    top = (line.text for line in first if line.new is not None and line.new <= _SIGNED_WITHIN)
    return any(_SIGNED.search(text) for text in top)


def _is_minified(file: FileDiff) -> bool:
    lengths = [len(line.text) for hunk in file.hunks for line in hunk.lines if line.mark == "+"]
    return bool(lengths) and sum(lengths) / len(lengths) > _MINIFIED
