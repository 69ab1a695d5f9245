"""Which versions of languages a repository says it supports, by its manifests at the top. Pure but for reading."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable

from bot.forge.protocol import SourceTree

_REQUIRED = re.compile(r"python_requires\s*=\s*['\"]?([^'\"\n#]{1,60})")
_GO = re.compile(r"^go\s+([\w.]{1,20})\s*$", re.M)
_JAVA = re.compile(r"<(?:maven\.compiler\.(?:release|source)|java\.version)>\s*([\w.]{1,20})\s*<")


def runtimes(tree: SourceTree) -> tuple[str, ...]:
    """One line each, as ``Python >=3.9 (pyproject.toml)``; nothing where nothing is said or it cannot be read."""
    found: dict[str, str] = {}
    for path, language, read in (
        ("pyproject.toml", "Python", _pyproject),
        ("setup.cfg", "Python", _setup),
        ("setup.py", "Python", _setup),
        ("package.json", "Node", _package),
        ("go.mod", "Go", _first(_GO)),
        ("Cargo.toml", "Rust", _cargo),
        ("pom.xml", "Java", _first(_JAVA)),
    ):
        text = tree.read(path)
        version = read(text) if text else ""
        if version and language not in found:
            found[language] = f"{language} {' '.join(version.split())[:60]} ({path})"
    return tuple(found.values())


def _table(text: str, *keys: str) -> str:
    try:
        value: object = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _pyproject(text: str) -> str:
    return _table(text, "project", "requires-python") or _table(text, "tool", "poetry", "dependencies", "python")


def _cargo(text: str) -> str:
    return _table(text, "package", "rust-version")


def _package(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    engines = value.get("engines") if isinstance(value, dict) else None
    node = engines.get("node") if isinstance(engines, dict) else None
    return node if isinstance(node, str) else ""


def _setup(text: str) -> str:
    match = _REQUIRED.search(text)
    return match[1] if match else ""


def _first(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        match = pattern.search(text)
        return match[1] if match else ""

    return read
