"""Classes of files: urgency of the review, language, topic, and the reason to skip a file."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import PurePosixPath

from bot.code.change.diff import Diff, FileDiff
from bot.code.change.sections import cut
from bot.core.subjects import Side

# Files that programs write: lock files, vendored and generated code.
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
# Signatures of generators in the first lines of a file.
_SIGNED = re.compile(r"@generated\b|\bcode generated\b.*\bdo not edit\b|\bautomatically generated\b", re.I)
_SIGNED_WITHIN = 5
#: Reasons that a change can cause itself: a script that looks like a left-over, a file in which only pins change,
#: and code that a git attribute declares to be binary.
NOISE, DECLARED_BINARY = "environment noise", "declared to be binary"
# Mean line length above which code is minified.
_MINIFIED = 400

_RISKY = re.compile(
    r"(?:^|[/_.-])(?:auth\w*|login|session\w*|passw\w*|secret\w*|crypt\w*|token\w*|permission\w*|acl|security|"
    r"payment\w*|billing|migrations?|sql|query|queries|lock\w*|thread\w*|async\w*|concurren\w*|cache\w*|"
    r"serializ\w*|deserializ\w*|pickle|exec\w*|upload\w*|webhook\w*)(?=$|[/_.-])",
    re.I,
)
# By whole components and words: ``latest/contest.py`` is no test.
_TEST = re.compile(
    r"(?i:(?:^|/)(?:tests?|testing|specs?|__tests__|e2e|fixtures)/)|(?:^|/)(?:test_|conftest|tests?\.)"
    r"|[._-](?:test|spec)\.|[^/]Tests?\.(?:java|kt|cs)$"
)
# Prefixes and suffixes that a test's name adds to that of the module under test.
_TESTING = re.compile(r"^test_|^Test(?=[A-Z])|_test$|Tests?$|_spec$")
_TEXT = re.compile(r"\.(?:mdx?|rst|txt|adoc|pot?|csv|tsv|ipynb|html?|s?css|less)$", re.I)
_SETTINGS = re.compile(r"\.(?:jsonc?|ya?ml|toml|ini|cfg|conf|xml|properties|env|gitignore|editorconfig)$", re.I)

_LANGUAGES = {
    "py": "python", "pyi": "python", "pyx": "cython", "js": "javascript", "mjs": "javascript", "jsx": "javascript",
    "ts": "typescript", "tsx": "typescript", "java": "java", "kt": "kotlin", "scala": "scala", "go": "go",
    "rs": "rust", "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "hpp": "c++", "cs": "c#", "rb": "ruby",
    "php": "php", "swift": "swift", "sh": "shell", "sql": "sql", "lua": "lua", "r": "r", "jl": "julia",
}  # fmt: skip

# Left-overs of coding agents: scripts at the top that reproduce the report, copies of files, test databases.
_STRAY_SCRIPT = re.compile(
    r"(?:[\w-]*[_-])?(?:reproduc|(?:repro|replicate|simulate)(?=[_.-]))[\w-]*\.\w{1,5}", re.I
)
_STRAY = re.compile(r"\.(?:orig|rej|sqlite3)$", re.I)
# Files that pin an environment, and the pins (or the flag for pytest's summary) in them.
_ENVIRONMENT = re.compile(r"(?:setup\.(?:py|cfg)|pyproject\.toml|tox\.ini|pytest\.ini|requirements[\w.-]*\.txt)")
_PIN = re.compile(r"==\s*[\w.*+!-]+|(?<=\s)-rA\b")


class Risk(IntEnum):
    """The usual cost of a defect in a file; a smaller number is reviewed sooner."""

    SENSITIVE = 0
    SOURCE = 1
    SETTINGS = 2
    TEST = 3
    TEXT = 4
    DELETED = 5


def language(path: str) -> str:
    """Return the programming language by the file's suffix, or an empty text if it is unknown."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lstrip(".").lower(), "")


def risk(file: FileDiff) -> Risk:
    """Return the urgency of a file, by its change, its folder and its name."""
    if file.change == "deleted":
        return Risk.DELETED
    if is_test(file.path):
        return Risk.TEST
    if _TEXT.search(file.path):
        return Risk.TEXT
    if _SETTINGS.search(file.path):
        return Risk.SETTINGS
    return Risk.SENSITIVE if _RISKY.search(file.path) else Risk.SOURCE


def is_test(path: str) -> bool:
    """Return True if a path is that of a test, by its folder or its name."""
    return bool(_TEST.search(path))


def topic(file: FileDiff) -> str:
    """Return a key that is equal for a source file and its tests, and for all settings."""
    file_risk = risk(file)
    if file_risk is Risk.SETTINGS:
        return "/settings"
    if file_risk not in (Risk.SENSITIVE, Risk.SOURCE, Risk.TEST):
        return file.path
    stem = _TESTING.sub("", PurePosixPath(file.path).name.split(".")[0])
    return f"{stem.lower()}.{language(file.path)}" if len(stem) > 2 and stem != "__init__" else file.path


def skip_reason(file: FileDiff) -> str | None:
    """Return the reason to skip a file in review, or None to review it.

    A change cannot exempt itself: a file counts as vendored, generated or minified only if it was so before.
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
    """Return the reason to skip the file by its state after the change, or None."""
    return _mark(file.path, file, "RIGHT")


def exempts_itself(file: FileDiff) -> bool:
    """Return True if the file is left out for a reason that the change itself may have made."""
    reason = skip_reason(file)
    return reason in (DECLARED_BINARY, NOISE) or (reason == "lock file" and file.change == "added")


def _mark(path: str | None, file: FileDiff, side: Side) -> str | None:
    """Return the reason to skip a file by its path and its lines on one side, or None."""
    if path is None:
        return None
    if _VENDORED.search(path):
        return "vendored"
    if _GENERATED.search(PurePosixPath(path).name) or _is_signed(file, side):
        return "generated"
    return "minified" if _is_minified(file, side) else None


def reviewable_part(text: str, diff: Diff) -> tuple[str, tuple[str, ...]]:
    """Return a patch without the files to skip, and a line with the reason for each of these.

    ``diff`` is the parsed patch. The patch stays whole if no file would remain, or a part could not be read.
    """
    reasons = {file.path: reason for file in diff.files if (reason := skip_reason(file)) is not None}
    if not reasons or len(reasons) == len(diff.files) or diff.flaws:
        return text, ()
    lines = text.split("\n")
    sections = cut(text)
    ends = [section.line - 1 for section in sections[1:]] + [len(lines)]
    remaining: list[str] = []
    for section, end, file in zip(sections, ends, diff.files, strict=True):
        if file.path not in reasons:
            remaining += lines[section.line - 1 : end]
    return "\n".join(remaining), tuple(f"{path}: {reason}" for path, reason in reasons.items())


def _is_noise(file: FileDiff, name: str) -> bool:
    """Return True if a file is a left-over of the environment in which the change was made."""
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
    """Return True if the changed lines are minified; for a pure addition, check the lines around it."""
    lines = [line for hunk in file.hunks for line in hunk.lines if line.number(side) is not None]
    changed = [line for line in lines if line.mark != " "]
    lengths = [len(line.text) for line in changed or (lines if side == "LEFT" else ())]
    return bool(lengths) and sum(lengths) / len(lengths) > _MINIFIED
