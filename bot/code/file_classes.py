"""What kind of file a path is: how urgent it is to review, its language, or why it is not reviewed at all."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import PurePosixPath

from bot.code.diff import Diff, FileDiff
from bot.code.sections import cut
from bot.core.subjects import Side

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
#: Reasons that the change itself can make: a script that looks like a left-over, a file in which only pins change,
#: and code that an attribute of the repository declares to be binary.
NOISE, DECLARED_BINARY = "environment noise", "declared to be binary"
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
# What a test's name adds to that of the module under test.
_TESTING = re.compile(r"^test_|^Test(?=[A-Z])|_test$|Tests?$|_spec$")
_TEXT = re.compile(r"\.(?:mdx?|rst|txt|adoc|pot?|csv|tsv|ipynb|html?|s?css|less)$", re.I)
_SETTINGS = re.compile(r"\.(?:jsonc?|ya?ml|toml|ini|cfg|conf|xml|properties|env|gitignore|editorconfig)$", re.I)

_LANGUAGES = {
    "py": "python", "pyi": "python", "pyx": "cython", "js": "javascript", "mjs": "javascript", "jsx": "javascript",
    "ts": "typescript", "tsx": "typescript", "java": "java", "kt": "kotlin", "scala": "scala", "go": "go",
    "rs": "rust", "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "hpp": "c++", "cs": "c#", "rb": "ruby",
    "php": "php", "swift": "swift", "sh": "shell", "sql": "sql", "lua": "lua", "r": "r", "jl": "julia",
}  # fmt: skip

# What agents leave behind: scripts at the top that replay the report, copies of files, databases of test runs.
_STRAY_SCRIPT = re.compile(
    r"(?:[\w-]*[_-])?(?:repro|reproduc\w*|replicate|simulate)(?:[_-][\w-]*)?\.\w{1,5}", re.I
)
_STRAY = re.compile(r"\.(?:orig|rej|sqlite3)$", re.I)
# Files in which an environment is pinned, and what pins it or turns on the runner's summary.
_ENVIRONMENT = re.compile(r"(?:setup\.(?:py|cfg)|pyproject\.toml|tox\.ini|pytest\.ini|requirements[\w.-]*\.txt)")
_PIN = re.compile(r"==\s*[\w.*+!-]+|(?<=\s)-rA\b")


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


def topic(file: FileDiff) -> str:
    """What a file is about: equal for a source file and its tests, and for all settings."""
    kind = risk(file)
    if kind is Risk.SETTINGS:
        return "/settings"
    if kind not in (Risk.SENSITIVE, Risk.SOURCE, Risk.TEST):
        return file.path
    stem = _TESTING.sub("", PurePosixPath(file.path).name.split(".")[0])
    return f"{stem.lower()}.{language(file.path)}" if len(stem) > 2 and stem != "__init__" else file.path


def left_out(file: FileDiff) -> str | None:
    """Why a file is not worth a reviewer's time; None where it is.

    A change cannot exempt itself: vendored, generated and minified is only what was so before the change.
    """
    name = PurePosixPath(file.path).name
    if file.binary:
        return DECLARED_BINARY if language(file.path) else "binary"
    if _LOCKS.fullmatch(name):
        return "lock file"
    if _is_noise(file, name):
        return NOISE
    return claim(file) if _mark(file.old_path, file, "LEFT") else None


def claim(file: FileDiff) -> str | None:
    """Why the file as it is after the change would not be worth a reviewer's time; None where it is."""
    return _mark(file.path, file, "RIGHT")


def exempts_itself(file: FileDiff) -> bool:
    """Return True if the file is left out for a reason that the change itself may have made."""
    reason = left_out(file)
    return reason in (DECLARED_BINARY, NOISE) or (reason == "lock file" and file.change == "added")


def _mark(path: str | None, file: FileDiff, side: Side) -> str | None:
    """The reason to leave a file out that its path and its lines on one side give."""
    if path is None:
        return None
    if _VENDORED.search(path):
        return "vendored"
    if _GENERATED.search(PurePosixPath(path).name) or _is_signed(file, side):
        return "generated"
    return "minified" if _is_minified(file, side) else None


def judged(text: str, diff: Diff) -> tuple[str, tuple[str, ...]]:
    """A patch, read as ``diff``, without the files that nobody would judge, and these with the reason.

    Whole where nothing is left, or not all of it could be read.
    """
    reasons = {file.path: reason for file in diff.files if (reason := left_out(file)) is not None}
    if not reasons or len(reasons) == len(diff.files) or diff.flaws:
        return text, ()
    lines = text.split("\n")
    sections = cut(text)
    ends = [section.line - 1 for section in sections[1:]] + [len(lines)]
    kept: list[str] = []
    for section, end, file in zip(sections, ends, diff.files, strict=True):
        if file.path not in reasons:
            kept += lines[section.line - 1 : end]
    return "\n".join(kept), tuple(f"{path}: {reason}" for path, reason in reasons.items())


def _is_noise(file: FileDiff, name: str) -> bool:
    """Whether a file came with the place in which the change was made, and is no part of it."""
    if file.change == "added":
        return bool(_STRAY.search(name)) or (name == file.path and bool(_STRAY_SCRIPT.fullmatch(name)))
    if file.change != "modified" or not _ENVIRONMENT.fullmatch(name):
        return False
    sides = {mark: [line.text for hunk in file.hunks for line in hunk.lines if line.mark == mark] for mark in "-+"}
    bare = {mark: ["".join(_PIN.sub("", text).split()) for text in texts] for mark, texts in sides.items()}
    return bool(sides["+"]) and bare["+"] == bare["-"] and sides["+"] != sides["-"]


def _is_signed(file: FileDiff, side: Side) -> bool:
    lines = file.hunks[0].lines if file.hunks else ()
    top = (line.text for line in lines if 1 <= (line.number(side) or 0) <= _SIGNED_WITHIN)
    return any(_SIGNED.search(text) for text in top)


def _is_minified(file: FileDiff, side: Side) -> bool:
    """Whether the changed lines are far longer than people write; before an addition, the lines around it."""
    lines = [line for hunk in file.hunks for line in hunk.lines if line.number(side) is not None]
    changed = [line for line in lines if line.mark != " "]
    lengths = [len(line.text) for line in changed or (lines if side == "LEFT" else ())]
    return bool(lengths) and sum(lengths) / len(lengths) > _MINIFIED
