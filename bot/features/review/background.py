"""The background of a change for a reviewer: linked issues, house rules, supported versions, all changed files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bot.code.change.packing import Packed
from bot.code.context.surroundings import Surroundings
from bot.core.config import Instruction, gitignore
from bot.core.errors import ForgeError, NotRecorded
from bot.core.subjects import PullRequest
from bot.core.text import folded, without_middle
from bot.features.services import Services
from bot.features.shared.links import issue_links, linked_issues
from bot.github.protocol import SourceTree, text_at

#: Files with rules for contributors and agents, most relevant first.
RULES = ("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md")
#: Characters of one such file, of all of them, and of a linked issue.
MAX_RULE, MAX_RULES, MAX_ISSUE = 6_000, 12_000, 12_000


class HouseRule(NamedTuple):
    """A rule of the repository, and its source."""

    source: str
    text: str


class IssueText(NamedTuple):
    """An issue that a change says it is about."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Background:
    """The background that every question about a change contains. ``partly``: not all files are shown."""

    issues: tuple[IssueText, ...] = ()
    runtimes: tuple[str, ...] = ()
    rules: tuple[HouseRule, ...] = ()
    files: tuple[str, ...] = ()
    partly: bool = False


def background(pull: PullRequest, packed: Packed, around: Surroundings, services: Services) -> Background:
    """Return the background of a change, without the parts that cannot be read."""
    paths = [file.path for file in packed.diff.files]
    tree = None if around.sides is None else around.sides.tree
    instructions = _instructions(services.config.review.instructions, paths)
    try:
        issues, _ = linked_issues(issue_links(pull, services), services)
    except (ForgeError, NotRecorded):
        issues = []
    return Background(
        issues=tuple(IssueText(issue.title, folded(issue.body, MAX_ISSUE)) for issue in issues),
        runtimes=_runtimes(tree) if tree else (),
        rules=(*instructions, *(_rules(tree, services) if tree else ())),
        files=packed.files,
        partly=any("not shown" in file for file in packed.files),
    )


def _instructions(instructions: Iterable[Instruction], paths: Sequence[str]) -> Iterable[HouseRule]:
    """Yield the instructions of bouncer.yml about these files."""
    for instruction in instructions:
        globs = gitignore(instruction.paths)
        names = (path.encode("utf-8", "replace").decode() for path in paths)
        if not instruction.paths or any(globs.match_file(name) for name in names):
            yield HouseRule(f"review.instructions {' '.join(instruction.paths)}".strip(), instruction.text)


def _rules(tree: SourceTree, services: Services) -> Iterable[HouseRule]:
    """Yield the rule files of the default branch, never those of the change under review."""
    remaining = MAX_RULES
    existing = frozenset(tree.paths())
    for path in RULES:
        if path not in existing or remaining <= 0:
            continue
        content = text_at(services.forge, path, services.repository.default_branch)
        rules = "" if content is None else _sections_on_code(content, is_for_agents="CONTRIBUTING" not in path)
        if rules:
            text = without_middle(rules, min(MAX_RULE, remaining))
            remaining -= len(text)
            yield HouseRule(path, text)


_HEADING = re.compile(r"^#{1,6}[ \t]+(.{1,200})$|^(.{1,200})\n(?:={3,}|-{3,})[ \t]*$", re.M)
_FENCED = re.compile(r"^[ \t]*(```|~~~)[\s\S]*?(?:^[ \t]*\1|\Z)", re.M)
_ON_CODE = re.compile(
    r"cod(?:e|ing)|style|convention|nam(?:es|ing)|lint|typ(?:es|ing)|tests?\b|testing|error|exception|architecture|"
    r"design|guideline|principle|rules?\b|security|performance|compatib|deprecat|api\b|review|pattern|practice",
    re.I,
)
_NOT_ON_CODE = re.compile(
    r"code of conduct|set(?:ting)? ?up|install|getting started|environment|commit|pull request|branch|"
    r"release|licen[cs]e|issue|bug report|question|communit|document|run(?:ning)? |build(?:ing)?\b|command|"
    r"process\b",
    re.I,
)


def _sections_on_code(text: str, *, is_for_agents: bool) -> str:
    """Return the sections on code by their headings; of a file for agents, all but those on other work."""
    # A comment in an example is no heading.
    headings = list(_HEADING.finditer(_FENCED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)))
    if not headings:
        return text.strip() if is_for_agents else ""
    sections = [text[: headings[0].start()].strip()] if is_for_agents else []
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        title = heading[1] or heading[2]
        is_on_code = _ON_CODE.search(title) is not None or is_for_agents
        body = text[heading.end() : end].strip()
        if body and is_on_code and not _NOT_ON_CODE.search(title):
            sections.append(f"{heading[0].strip()}\n{body}")
    return "\n\n".join(filter(None, sections))


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


#: Workflows, whose matrix names versions if no manifest does.
_WORKFLOW = re.compile(r"\.github/workflows/[^/]+\.ya?ml")
_MATRIX = re.compile(
    r"^[ \t-]*['\"]?(python|node|go|java|jdk|rust)(?:[-_]version)?['\"]?[ \t]*:"
    r"([ \t]*\[[^\]{}]{1,400}\]|(?:[ \t]*\n[ \t]*-[ \t][^\n:]{1,60}){1,30}|[^\n{]{1,60})",
    re.M,
)
_VERSION = re.compile(r"(?<![\w.$-])[~^<>=]*\d[\w.*+-]*")
MAX_WORKFLOWS, MAX_VERSIONS = 10, 12


def _runtimes(tree: SourceTree) -> tuple[str, ...]:
    """Return the supported versions, such as ``Python >=3.9 (pyproject.toml)``."""
    versions: dict[str, str] = {}
    for path, language, location in _MANIFESTS:
        text = tree.read(path)
        version = _read_version(text, path, location) if text else ""
        if version and language not in versions:
            versions[language] = f"{language} {' '.join(version.split())[:60]} ({path})"
    for language, text in _tested(tree).items():
        versions.setdefault(language, text)
    return tuple(versions.values())


def _tested(tree: SourceTree) -> dict[str, str]:
    """Return for each language the versions in the workflow that names most of them."""
    most: dict[str, tuple[int, str]] = {}
    workflows = [path for path in tree.paths() if _WORKFLOW.fullmatch(path)]
    for path in sorted(workflows)[:MAX_WORKFLOWS]:
        by_language: dict[str, dict[str, None]] = {}
        for key, text in _MATRIX.findall(tree.read(path) or ""):
            language = "Java" if key == "jdk" else key.capitalize()
            by_language.setdefault(language, {}).update(dict.fromkeys(_VERSION.findall(re.sub("#.*", "", text))))
        for language, all_versions in by_language.items():
            if len(all_versions) > most.get(language, (0, ""))[0]:
                versions = ", ".join(list(all_versions)[:MAX_VERSIONS])
                most[language] = len(all_versions), f"{language} {versions} ({path})"
    return {language: text for language, (_, text) in most.items()}


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
