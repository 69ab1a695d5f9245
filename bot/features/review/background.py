"""The background of a change for a reviewer: linked issues, house rules, supported versions, all changed files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bot.code.context import Surroundings
from bot.code.packing import Packed
from bot.core.config import Instruction, gitignore
from bot.core.errors import ForgeError, NotRecorded
from bot.core.subjects import PullRequest
from bot.core.text import folded, without_middle
from bot.features.services import Services
from bot.features.shared import pull_requests
from bot.github.protocol import SourceTree, text_at

#: Files with rules for contributors and agents, most relevant first.
RULES = ("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md")
#: Characters of one such file, of all of them, and of a linked issue.
MAX_RULE, MAX_RULES, MAX_ISSUE = 6_000, 12_000, 12_000


class HouseRule(NamedTuple):
    """A rule of the repository, and its source."""

    source: str
    text: str


class LinkedIssue(NamedTuple):
    """An issue that a change says it is about."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Background:
    """The background that every question about a change contains; ``partly``: not all files are shown."""

    issues: tuple[LinkedIssue, ...] = ()
    runtimes: tuple[str, ...] = ()
    rules: tuple[HouseRule, ...] = ()
    files: tuple[str, ...] = ()
    partly: bool = False


def background(pull: PullRequest, packed: Packed, around: Surroundings, services: Services) -> Background:
    """Return the background of a change, without the parts that cannot be read."""
    paths = [file.path for file in packed.diff.files]
    tree = None if around.sides is None else around.sides.tree
    instructions = _instructions(services.config.review.instructions, paths)
    return Background(
        issues=_issues(pull, services),
        runtimes=_runtimes(tree) if tree else (),
        rules=(*instructions, *(_rules(tree, services) if tree else ())),
        files=packed.files,
        partly=any("not shown" in file for file in packed.files),
    )


def _issues(pull: PullRequest, services: Services) -> tuple[LinkedIssue, ...]:
    try:
        issues, _ = pull_requests.linked_issues(pull_requests.links(pull, services), services)
    except (ForgeError, NotRecorded):
        return ()
    return tuple(LinkedIssue(issue.title, folded(issue.body, MAX_ISSUE)) for issue in issues)


def _instructions(instructions: Iterable[Instruction], paths: Sequence[str]) -> Iterable[HouseRule]:
    """Yield the instructions of bouncer.yml about these files."""
    for instruction in instructions:
        globs = gitignore(instruction.paths)
        names = (path.encode("utf-8", "replace").decode() for path in paths)
        if not instruction.paths or any(globs.match_file(name) for name in names):
            yield HouseRule(f"review.instructions {' '.join(instruction.paths)}".strip(), instruction.text)


def _rules(tree: SourceTree, services: Services) -> Iterable[HouseRule]:
    """Yield the rule files of the default branch, never those of the change under review."""
    left = MAX_RULES
    existing = frozenset(tree.paths())
    for path in RULES:
        if path not in existing or left <= 0:
            continue
        if (content := text_at(services.forge, path, services.repository.default_branch)) is not None:
            text = without_middle(content, min(MAX_RULE, left))
            left -= len(text)
            yield HouseRule(path, text)


_PYTHON = re.compile(r"python_requires\s*=\s*['\"]?([^'\"\n#]{1,60})")
_GO = re.compile(r"^go\s+([\w.]{1,20})\s*$", re.M)
_JAVA = re.compile(r"<(?:maven\.compiler\.(?:release|source)|java\.version)>\s*([\w.]{1,20})\s*<")
#: Manifests at the top of a repository, and a pattern or the keys of the supported version in them.
_MANIFESTS: tuple[tuple[str, str, re.Pattern[str] | tuple[str, ...]], ...] = (
    ("pyproject.toml", "Python", ("project.requires-python", "tool.poetry.dependencies.python")),
    ("setup.cfg", "Python", _PYTHON),
    ("setup.py", "Python", _PYTHON),
    ("package.json", "Node", ("engines.node",)),
    ("go.mod", "Go", _GO),
    ("Cargo.toml", "Rust", ("package.rust-version",)),
    ("pom.xml", "Java", _JAVA),
)


def _runtimes(tree: SourceTree) -> tuple[str, ...]:
    """Return the supported versions, such as ``Python >=3.9 (pyproject.toml)``."""
    versions: dict[str, str] = {}
    for path, language, location in _MANIFESTS:
        text = tree.read(path)
        version = _read_version(text, path, location) if text else ""
        if version and language not in versions:
            versions[language] = f"{language} {' '.join(version.split())[:60]} ({path})"
    return tuple(versions.values())


def _read_version(text: str, path: str, location: re.Pattern[str] | tuple[str, ...]) -> str:
    if isinstance(location, re.Pattern):
        match = location.search(text)
        return match[1] if match else ""
    try:
        table = json.loads(text) if path.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return ""
    for keys in location:
        value: object = table
        for key in keys.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value and isinstance(value, str):
            return value
    return ""
